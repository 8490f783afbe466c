"""The source of an Iceberg table: a lakehouse table whose versions are snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.spark.formats.registry import refuse_version_field
from laminae.spark.sources.base import settings_of
from laminae.spark.sources.iceberg.snapshot_list import snapshot_list
from laminae.spark.sources.iceberg.table import table_settings
from laminae.spark.sources.lakehouse.change_type_column import marks_of
from laminae.spark.sources.lakehouse.source import TableSource

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord


def open_source(source: SourceRecord, home: str) -> TableSource:
    own = table_settings(dict(spec_of(source).settings), source.name)
    refuse_version_field(source, "Iceberg")
    settings = settings_of(source, home, **own)
    return TableSource(settings, snapshot_list(settings), snapshot_list(settings), marks_of(source))
