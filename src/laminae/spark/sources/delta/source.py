"""The source of a Delta table: a lakehouse table whose versions are commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.spark.formats.registry import refuse_version_field
from laminae.spark.sources.base import settings_of
from laminae.spark.sources.delta.commits import commit_list
from laminae.spark.sources.delta.table import table_path
from laminae.spark.sources.lakehouse.change_type_column import marks_of
from laminae.spark.sources.lakehouse.source import TableSource

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord


def open_source(source: SourceRecord, home: str) -> TableSource:
    path = table_path(dict(spec_of(source).settings), source.name)
    refuse_version_field(source, "Delta")
    settings = settings_of(source, home, path=path)
    return TableSource(settings, commit_list(settings), commit_list(settings), marks_of(source))
