"""The durable, numbered list of the files that a table's versions added and removed; each version is looked at once.

What a version is, and how its files are found, each kind of table says.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from laminae.errors import LaminaeError, SourceUnavailable
from laminae.spark.lake.outside_words import cause, why
from laminae.spark.logs.entries import EntryList
from laminae.spark.logs.listing import FileEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from laminae.spark.logs.head import LogDirectory

Answer = TypeVar("Answer")


class Change(StrEnum):
    """What became of the rows of a file."""

    ADDED = "added"
    REMOVED = "removed"
    SAID = "said"
    """Each row says it itself, in a column `_change_type`."""
    REFUSED = "refused"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class TableFile(FileEntry):
    """A file of a version (`snapshot`) of the table; `modified` is the time of that version.

    `sequence` is its number, `schema` the table's schema id then, `end` the item behind the last one of the version,
    `reason` why the file is refused, `partition` the values of columns that are not in it. A version that did nothing
    is an entry, too: the next one is looked for behind it.
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
    """What a version did to one file. `partition` has the columns that are not in the file, as text."""

    change: Change
    path: str = ""
    size: int = 0
    reason: str | None = None
    partition: tuple[tuple[str, str | None], ...] = ()


def numbered(done: Sequence[Done], first: int, time: int, snapshot: int, sequence: int, schema: int) -> list[TableFile]:
    """What one version did, as items from `first` on. `time` is in milliseconds."""
    # What went comes first: a row that is put again is there at the end.
    kept = sorted(done, key=lambda each: each.change is not Change.REMOVED) or [Done(Change.NOTHING)]
    place = (snapshot, sequence, schema, first + len(kept))
    return [
        TableFile(first + i, each.path, each.size, time * 1000, each.change, *place, each.reason, each.partition)
        for i, each in enumerate(kept)
    ]


class TableFiles(EntryList[TableFile]):
    """`laminae.spark.logs.tails.Tail` of a table. `name` and `location` are for messages."""

    def __init__(self, directory: LogDirectory, name: str, location: str) -> None:
        super().__init__(directory)
        self.name = name
        self.location = location

    @abstractmethod
    def _present(self) -> int | None:
        """The version that the table has now, None when it has none."""

    @abstractmethod
    def _since(self, last: TableFile | None, first: int) -> list[TableFile]:
        """What came behind `last`, numbered from `first`. Without a last one: all files of the present version."""

    @abstractmethod
    def wanted(self, current: pa.Schema, ids: Sequence[int], is_first: bool) -> pa.Schema:
        """`current` after the schemas with these ids, one after the other; at first sight it learns of field ids."""

    def items(self, seen: int) -> int:
        items = self._directory.items(seen)
        last = self._last(items)
        if self.asked(self._present) in (None, last and last.snapshot):
            return items
        with self._directory.writing() as head:
            # Another process may have written some of it down meanwhile.
            found = self.asked(lambda: self._since(self._last(head.items), head.items))
            self._append(head, found)
            return head.items + len(found)

    def end_of(self, item: int) -> int:
        """The item behind the version that the item before this one belongs to."""
        return next(self.entries(range(item - 1, item))).end if item else 0

    def asked(self, ask: Callable[[], Answer]) -> Answer:
        """The answer; SourceUnavailable while the table cannot be asked."""
        # Before it is asked: a secret in a file may be another one afterwards.
        secrets = self._secrets()
        try:
            return ask()
        except LaminaeError:
            raise
        except Exception as problem:  # noqa: BLE001  # catalogs and stores of all kinds, each with errors of its own
            source, told = self._directory.source, why(problem, secrets)
            raise SourceUnavailable(source=source, location=self.location, problem=told) from cause(problem, secrets)

    def _secrets(self) -> Sequence[str]:
        """What whoever is asked was given, and must not be shown."""
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
