"""The files of an Iceberg table's snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.sources.iceberg.schema import through_schemas
from laminae.spark.sources.iceberg.snapshots import files_since
from laminae.spark.sources.iceberg.table import iceberg_table
from laminae.spark.sources.lakehouse.table_files import TableFiles
from laminae.spark.sources.log_head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.table import Table

    from laminae.spark.sources.iceberg.table import IcebergTable
    from laminae.spark.sources.lakehouse.table_files import TableFile


class SnapshotList(TableFiles):
    def __init__(self, directory: LogDirectory, table: IcebergTable) -> None:
        super().__init__(directory, table.name, table.location)
        self._table = table

    def loaded(self) -> Table:
        """The table as it is now; SourceUnavailable if it cannot be loaded."""
        return self.asked(self._table.load)

    def wanted(self, current: pa.Schema, ids: Sequence[int], is_first: bool) -> pa.Schema:
        return through_schemas(current, self.loaded(), ids, is_first)

    def _present(self) -> int | None:
        return self._table.load().metadata.current_snapshot_id

    def _secrets(self) -> Sequence[str]:
        return self._table.secrets()

    def _since(self, last: TableFile | None, first: int) -> list[TableFile]:
        return files_since(self._table.load(), self._table, last, first)


def snapshot_list(settings: Mapping[str, str]) -> SnapshotList:
    source = settings["source"]
    return SnapshotList(LogDirectory(source, settings["directory"]), iceberg_table(settings, source))
