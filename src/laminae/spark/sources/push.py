"""The log of a push source: one Parquet file of raw records for each insert, numbered without gaps.

A file is on disk before the head counts it, so an insert is atomic: after a crash it is stored whole or not at all.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laminae import durable
from laminae.codec.row_check import Inserted, refused_rows
from laminae.engine.source_spec import spec_of
from laminae.errors import SchemaMismatch, SourceTruncated
from laminae.spark.catalyst.paths import literal_path, reading_many
from laminae.spark.formats.protocol import RAW_COLUMNS, RAW_SCHEMA
from laminae.spark.sources.base import NumberedSource, no_records, settings_of
from laminae.spark.sources.latest_offset import HeadTail, log_at
from laminae.spark.sources.log_head import Head, log_directory
from laminae.spark.sources.push_rows import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.spark.sources.log_head import LogDirectory
    from laminae.spark.sources.protocol import LogRange
    from laminae.spark.sources.push_rows import Rows

# The columns of RAW_SCHEMA that a pushed row has; the others are read as NULL.
COLUMNS = pa.schema(
    [
        pa.field("value", pa.large_binary(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("item", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("version", pa.int32()),
    ]
)
# One task reads a row group, so a large insert is split to use all cores.
ROW_GROUP_ROWS = 250_000
# Reading a footer takes 0.3 ms. The limit is the default number of items in an epoch. In a longer range, unexpected
# versions are found only when the records are read, and the range is then read twice.
MOST_FOOTERS = 1000
# An insert reports which of this many rows will be dead letters; checking all rows would take as long as storing them.
MOST_CHECKED = 10_000


def append(
    source: SourceRecord,
    home: str,
    rows: Rows,
    version: int | None,
    refuses: bool = False,
    is_checked: bool = True,
    aliases: Callable[[], Collection[str]] = tuple,
) -> Inserted:
    """Store the rows as one item, each stamped with the schema version it was written for. Returns their number.

    With `refuses`, SchemaMismatch is raised if any row would become a dead letter, and nothing is stored. Otherwise
    such rows are only reported, among the first `MOST_CHECKED`. With `is_checked` False no row is checked: the
    documents need not be rows of the source's schema.
    """
    values = documents(rows, source.name, _whole_columns(source.schema))
    looked_at = values if refuses else values[:MOST_CHECKED]
    takes_numbers = spec_of(source).timestamp_unit is not None
    refused = refused_rows(looked_at, source.schema, takes_numbers, aliases) if is_checked else ()
    if refuses and refused:
        first = refused[0]
        problem = f"{first.reason} (row {first.row}, counted from 0; {len(refused)} of {len(values)} rows are refused)"
        raise SchemaMismatch(path=f"{source.name}.{first.column}", problem=problem)
    if values:
        directory = log_directory(source.name, source.id, home)
        with directory.writing() as head:
            _write_item(directory, head, values, version)
            directory.publish(Head(head.items + 1, head.extent + len(values)))
    return Inserted(len(values), refused, len(looked_at))


def _whole_columns(schema: pa.Schema) -> frozenset[str]:
    return frozenset(field.name for field in schema if pa.types.is_integer(field.type))


def open_source(source: SourceRecord, home: str) -> PushSource:
    settings = settings_of(source, home)
    return PushSource(settings, HeadTail(log_at(settings)))


class PushSource(NumberedSource):
    """Reads the Parquet files of a range, which store raw records in RAW_SCHEMA."""

    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        files = self._files(self._left(span) if span.only_left else self._items(span))
        if not files:
            return no_records(spark)
        with reading_many(spark, len(files)):
            return spark.read.schema(RAW_SCHEMA).parquet(*map(literal_path, files))

    def file_paths(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        return self._files(self._items(span)) or None

    def _left(self, span: LogRange) -> range:
        items = self._items(span)
        return range(max(items.start, self._directory.floor()), items.stop)

    def _files(self, items: range) -> list[str]:
        if not items:
            return []
        self._directory.items(items.stop)
        if items.start < (floor := self._directory.floor()):
            raise SourceTruncated(
                source=self._directory.source,
                wanted=f"item {items.start}",
                first=f"item {floor}",
                advice="To retain records longer: ALTER SOURCE ... SET (spool_retention = '...'). Removed "
                "records cannot be recovered.",
            )
        files = [item_file(self._directory, item) for item in items]
        for file in files:
            if not os.path.exists(file):
                raise self._directory.damaged(file, "it is missing")
        return files

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        items = self._items(span)
        if len(items) > MOST_FOOTERS:
            return set()
        return {stamp for item in items for stamp in _stamps(item_file(self._directory, item))}


def item_file(directory: LogDirectory, item: int) -> str:
    return os.path.join(directory.path, f"{item:012}.parquet")


def _stamps(file: str) -> set[int]:
    """The least and greatest version in the footer of an item's file; they are equal, as an insert has one version."""
    try:
        footer = pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):
        # Reading the records reports what is wrong with the file.
        return set()
    seen = footer.row_group(0).column(COLUMNS.get_field_index("version")).statistics
    return {seen.min, seen.max} if seen is not None and seen.has_min_max else set()


def _write_item(directory: LogDirectory, head: Head, values: list[bytes], version: int | None) -> None:
    rows = len(values)
    offsets = np.arange(head.extent, head.extent + rows)
    now = pa.scalar(datetime.now(UTC), COLUMNS.field("timestamp").type)
    columns = [values, offsets, pa.repeat(head.items, rows), pa.repeat(now, rows), pa.repeat(version, rows)]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)], COLUMNS)
    with durable.replace(item_file(directory, head.items)) as out:
        # Documents are mostly distinct: dictionary encoding them costs time and saves nothing.
        pq.write_table(table, out, row_group_size=ROW_GROUP_ROWS, use_dictionary=["timestamp", "version"])
