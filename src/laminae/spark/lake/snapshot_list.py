"""The durable, numbered list of what the snapshots of an Iceberg table did; each is looked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laminae.errors import LaminaeError, SourceUnavailable
from laminae.spark.lake.iceberg_table import iceberg_table, why
from laminae.spark.lake.snapshots import Change, TableFile, files_since
from laminae.spark.logs.entries import EntryList
from laminae.spark.logs.head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.table import Table

    from laminae.spark.lake.iceberg_table import IcebergTable


class SnapshotList(EntryList[TableFile]):
    """`laminae.spark.logs.tails.Tail` of a table; its items are the files that snapshots added and removed."""

    def __init__(self, directory: LogDirectory, table: IcebergTable) -> None:
        super().__init__(directory)
        self.table = table

    def items(self, seen: int) -> int:
        items = self._directory.items(seen)
        last = self._last(items)
        if self.loaded().metadata.current_snapshot_id in (None, last and last.snapshot):
            return items
        with self._directory.writing() as head:
            # Loaded once more: another process may have written down what came meanwhile.
            table = self.loaded()
            found = self._asked(lambda: files_since(table, self.table, self._last(head.items), head.items))
            self._append(head, found)
            return head.items + len(found)

    def loaded(self) -> Table:
        """The table as it is now; SourceUnavailable while it cannot be asked."""
        return self._asked(self.table.load)

    def end_of(self, item: int) -> int:
        """The item behind the snapshot that the item before this one belongs to."""
        return next(self.entries(range(item - 1, item))).end if item else 0

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except LaminaeError:
            raise
        except Exception as problem:
            # Catalogs and stores of all kinds are behind it, each with errors of its own.
            raise SourceUnavailable(
                source=self.table.owner, location=self.table.location, problem=why(problem)
            ) from problem

    def _last(self, items: int) -> TableFile | None:
        return next(self.entries(range(items - 1, items))) if items else None

    def _described(self, entry: TableFile) -> Mapping[str, object]:
        reason = {} if entry.reason is None else {"reason": entry.reason}
        return {
            "path": entry.path,
            "size": entry.size,
            "modified": entry.modified,
            "change": str(entry.change),
            "snapshot": entry.snapshot,
            "sequence": entry.sequence,
            "schema": entry.schema,
            "end": entry.end,
            **reason,
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
        )


def snapshot_list(settings: Mapping[str, str]) -> SnapshotList:
    source = settings["source"]
    return SnapshotList(LogDirectory(source, settings["directory"]), iceberg_table(settings, source))
