"""REFRESH SCHEMA of an Iceberg source: the columns that its table has now. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.ports import FoundSchema
from laminae.schema.following import refreshed
from laminae.spark.files.matching import grown
from laminae.spark.lake.iceberg_schema import table_columns
from laminae.spark.lake.iceberg_table import table_settings
from laminae.spark.lake.snapshot_list import snapshot_list

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord


@dataclass(frozen=True, slots=True)
class IcebergFinder:
    """`laminae.engine.ports.SchemaFinder` of the iceberg connector; SourceUnavailable when the table cannot be had."""

    def find(self, source: SourceRecord) -> FoundSchema:
        settings = table_settings(dict(source.options), source.name)
        table = snapshot_list({**settings, "source": source.name, "directory": ""}).loaded()
        outside = table_columns(table.schema())
        # What is wider or has another name there is seen on the columns themselves.
        wanted = grown(refreshed(source.schema, outside), outside)
        return FoundSchema(wanted, schema_id=table.metadata.current_schema_id)
