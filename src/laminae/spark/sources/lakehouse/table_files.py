"""The durable, numbered list of the files that a table's versions added and removed; each version is read once.

Subclasses define what a version is (an Iceberg snapshot, a Delta commit) and how its files are found.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from laminae.errors import LaminaeError, SourceUnavailable
from laminae.spark.sources.files.listing import FileEntry
from laminae.spark.sources.item_log import EntryList
from laminae.spark.sources.lakehouse.error_text import cause, why

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from laminae.spark.sources.log_head import LogDirectory

Answer = TypeVar("Answer")


class Change(StrEnum):
    """What a version of the table did to the rows of a file."""

    ADDED = "added"
    REMOVED = "removed"
    SAID = "said"
    """A change data file: the change of each row is in its column `_change_type`."""
    REFUSED = "refused"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class TableFile(FileEntry):
    """A file of a version (`snapshot`) of the table; `modified` is the time of that version.

    `sequence` is the version's sequence number, `schema` the table's schema id at that version, `end` the item after
    the last one of the version, `reason` why the file is refused, `partition` the values of columns that are not in the
    file. A version that changed no rows is an entry, too: the search for newer versions starts after the last entry.
    """

    change: Change
    snapshot: int
    sequence: int
    schema: int
    end: int
    reason: str | None = None
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """What a version did to one file. `partition` has the values of columns that are not in the file, as text."""

    change: Change
    path: str = ""
    size: int = 0
    reason: str | None = None
    partition: tuple[tuple[str, str | None], ...] = ()


def numbered(done: Sequence[Done], first: int, time: int, snapshot: int, sequence: int, schema: int) -> list[TableFile]:
    """The changes of one version as items numbered from `first`. `time` is in milliseconds."""
    # Removals come first, so that a row that is removed and added again exists at the end.
    files = sorted(done, key=lambda file: file.change is not Change.REMOVED) or [Done(Change.NOTHING)]
    place = (snapshot, sequence, schema, first + len(files))
    return [
        TableFile(first + i, file.path, file.size, time * 1000, file.change, *place, file.reason, file.partition)
        for i, file in enumerate(files)
    ]


class TableFiles(EntryList[TableFile]):
    """`laminae.spark.sources.latest_offset.Tail` of a table. `name` and `location` are for messages."""

    def __init__(self, directory: LogDirectory, name: str, location: str) -> None:
        super().__init__(directory)
        self.name = name
        self.location = location

    @abstractmethod
    def _present(self) -> int | None:
        """The current version of the table; None if it has none."""

    @abstractmethod
    def _since(self, last: TableFile | None, first: int) -> list[TableFile]:
        """The changes after `last`, numbered from `first`. Without `last`: all files of the current version."""

    @abstractmethod
    def wanted(self, current: pa.Schema, ids: Sequence[int], is_first: bool) -> pa.Schema:
        """`current` after the schema changes between these ids, in order. With `is_first` (the first read of the table)
        it also takes over the field ids of its columns.
        """

    def items(self, seen: int) -> int:
        items = self._directory.items(seen)
        last = self._last(items)
        if self.asked(self._present) in (None, last and last.snapshot):
            return items
        with self._directory.writing() as head:
            # Another process may have stored some of it meanwhile.
            files = self.asked(lambda: self._since(self._last(head.items), head.items))
            self._append(head, files)
            return head.items + len(files)

    def end_of(self, item: int) -> int:
        """The end item of the version to which the item before this one belongs."""
        return next(self.entries(range(item - 1, item))).end if item else 0

    def asked(self, ask: Callable[[], Answer]) -> Answer:
        """The result of `ask`; SourceUnavailable if the table cannot be accessed."""
        # Resolved before the call: a secret that is stored in a file may be rotated during it.
        secrets = self._secrets()
        try:
            return ask()
        except LaminaeError:
            raise
        except Exception as problem:  # noqa: BLE001  # each kind of catalog and store has its own errors
            source, reason = self._directory.source, why(problem, secrets)
            raise SourceUnavailable(source=source, location=self.location, problem=reason) from cause(problem, secrets)

    def _secrets(self) -> Sequence[str]:
        """The secrets that were passed to the catalog or store and must not appear in errors."""
        return ()

    def _last(self, items: int) -> TableFile | None:
        return next(self.entries(range(items - 1, items))) if items else None

    def _described(self, entry: TableFile) -> Mapping[str, object]:
        rare = {"reason": entry.reason, "partition": dict(entry.partition)}
        return {
            "path": entry.path,
            "size": entry.size,
            "modified": entry.modified,
            "change": str(entry.change),
            "snapshot": entry.snapshot,
            "sequence": entry.sequence,
            "schema": entry.schema,
            "end": entry.end,
            **{name: value for name, value in rare.items() if value},
        }

    def _read(self, item: int, line: dict[str, Any]) -> TableFile:
        return TableFile(
            item=item,
            path=str(line["path"]),
            size=int(line["size"]),
            modified=int(line["modified"]),
            change=Change(line["change"]),
            snapshot=int(line["snapshot"]),
            sequence=int(line["sequence"]),
            schema=int(line["schema"]),
            end=int(line["end"]),
            reason=line.get("reason"),
            partition=tuple(line.get("partition", {}).items()),
        )
