"""REFRESH SCHEMA of a source over a lakehouse table: takes the columns that the table has now. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.ports import FoundSchema
from laminae.engine.source_spec import spec_of
from laminae.schema.external.table_changes import refreshed
from laminae.spark.formats.column_matching import grown
from laminae.spark.sources.delta import schema as delta_schema
from laminae.spark.sources.delta.commits import commit_list
from laminae.spark.sources.delta.table import opened, table_path
from laminae.spark.sources.iceberg import schema as iceberg_schema
from laminae.spark.sources.iceberg.snapshot_list import snapshot_list
from laminae.spark.sources.iceberg.table import table_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog


def open_finder(catalog: Catalog, home: Callable[[], str], spark: Callable[[], SparkSession]) -> TableFinder:
    return TableFinder()


@dataclass(frozen=True, slots=True)
class TableFinder:
    """`laminae.engine.ports.SchemaFinder` of lakehouse tables; SourceUnavailable if a table cannot be loaded."""

    def find(self, source: SourceRecord) -> FoundSchema:
        number, outside = COLUMNS[spec_of(source).connector.name](source)
        # `refreshed` adds and drops columns; `grown` finds wider types and renames by comparing the columns.
        return FoundSchema(grown(refreshed(source.schema, outside), outside), schema_id=number)


def _iceberg(source: SourceRecord) -> tuple[int | None, pa.Schema]:
    settings = table_settings(dict(spec_of(source).settings), source.name)
    table = snapshot_list({**settings, "source": source.name, "directory": ""}).loaded()
    return table.metadata.current_schema_id, iceberg_schema.table_columns(table.schema())


def _delta(source: SourceRecord) -> tuple[int | None, pa.Schema]:
    path = table_path(dict(spec_of(source).settings), source.name)
    listed = commit_list({"source": source.name, "directory": "", "path": path})
    table = listed.asked(lambda: opened(path, source.name))
    return None, delta_schema.table_columns(table.schema().to_json())


COLUMNS: dict[str, Callable[[SourceRecord], tuple[int | None, pa.Schema]]] = {"iceberg": _iceberg, "delta": _delta}
"""The schema id and the columns of a table, by connector."""
