"""REFRESH SCHEMA of a source that is a table: the columns that the table has now. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.options import option
from laminae.engine.ports import FoundSchema
from laminae.schema.following import refreshed
from laminae.spark.files.matching import grown
from laminae.spark.lake import delta_schema, iceberg_schema
from laminae.spark.lake.delta_commits import commit_list
from laminae.spark.lake.delta_table import opened, table_path
from laminae.spark.lake.iceberg_table import table_settings
from laminae.spark.lake.snapshot_list import snapshot_list

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from laminae.catalog.model import SourceRecord


@dataclass(frozen=True, slots=True)
class TableFinder:
    """`laminae.engine.ports.SchemaFinder` of tables; SourceUnavailable when one cannot be had."""

    def find(self, source: SourceRecord) -> FoundSchema:
        number, outside = COLUMNS[option(source.options, "connector") or ""](source)
        # What is wider or has another name there is seen on the columns themselves.
        return FoundSchema(grown(refreshed(source.schema, outside), outside), schema_id=number)


def _iceberg(source: SourceRecord) -> tuple[int | None, pa.Schema]:
    given = table_settings(dict(source.options), source.name)
    table = snapshot_list({**given, "source": source.name, "directory": ""}).loaded()
    return table.metadata.current_schema_id, iceberg_schema.table_columns(table.schema())


def _delta(source: SourceRecord) -> tuple[int | None, pa.Schema]:
    path = table_path(dict(source.options), source.name)
    listed = commit_list({"source": source.name, "directory": "", "path": path})
    table = listed.asked(lambda: opened(path, source.name))
    return None, delta_schema.table_columns(table.schema().to_json())


COLUMNS: dict[str, Callable[[SourceRecord], tuple[int | None, pa.Schema]]] = {"iceberg": _iceberg, "delta": _delta}
"""The schema id and the columns of a table, by connector."""
