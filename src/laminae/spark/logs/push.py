"""The log of a push source: one Parquet file of raw records for each insert, numbered without gaps.

A file is on disk before the head counts it, so an insert is there whole or not at all, after any crash.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laminae.errors import SourceTruncated
from laminae.spark.contract import RAW_COLUMNS, RAW_SCHEMA
from laminae.spark.logs.head import Head, log_directory, sync_directory
from laminae.spark.logs.numbered import NumberedLog, no_records
from laminae.spark.logs.rows import documents
from laminae.spark.paths import literal_path, reading_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.spark.contract import LogRange
    from laminae.spark.logs.head import LogDirectory
    from laminae.spark.logs.rows import Rows

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
# So that the cores share a large insert: a row group is read by one task.
ROW_GROUP_ROWS = 250_000
# A footer takes 0.3 ms to read. Of a longer range, versions that are not expected come to light when it is read.
MOST_FOOTERS = 64


def append(source: SourceRecord, home: str, rows: Rows, version: int | None) -> int:
    """Store the rows as one item, each stamped with the schema version it was made for. Returns how many."""
    values = documents(rows, source.name)
    if values:
        directory = log_directory(source.name, source.id, home)
        with directory.writing() as head:
            _write_item(directory, head, values, version)
            directory.publish(Head(head.items + 1, head.extent + len(values)))
    return len(values)


class PushLog(NumberedLog):
    """Reads the files of a range; they hold raw records as they are read."""

    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
        files = self._files(self._items(span))
        if not files:
            return no_records(spark)
        with reading_many(spark, len(files)):
            return spark.read.schema(RAW_SCHEMA).parquet(*map(literal_path, files))

    def files(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        return self._files(self._items(span)) or None

    def _files(self, items: range) -> list[str]:
        if not items:
            return []
        self._directory.items(items.stop)
        if items.start < (floor := self._directory.floor()):
            raise SourceTruncated(
                source=self._directory.source,
                wanted=f"item {items.start}",
                first=f"item {floor}",
                advice="Keep them longer with ALTER SOURCE ... SET (spool_retention = '...'); what is gone stays gone.",
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
    """The versions between which the stamps of an item lie, which is one: an insert stamps all its rows alike."""
    try:
        footer = pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):
        # Whoever reads the records says what is wrong with the file.
        return set()
    seen = footer.row_group(0).column(COLUMNS.get_field_index("version")).statistics
    return {seen.min, seen.max} if seen is not None and seen.has_min_max else set()


def _write_item(directory: LogDirectory, head: Head, values: list[bytes], version: int | None) -> None:
    rows = len(values)
    offsets = np.arange(head.extent, head.extent + rows)
    now = pa.scalar(datetime.now(UTC), COLUMNS.field("timestamp").type)
    columns = [values, offsets, pa.repeat(head.items, rows), pa.repeat(now, rows), pa.repeat(version, rows)]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)], COLUMNS)
    file = item_file(directory, head.items)
    temporary = f"{file}.tmp"
    with open(temporary, "wb") as out:
        # Documents differ from each other: a dictionary of them costs time and saves nothing.
        pq.write_table(table, out, row_group_size=ROW_GROUP_ROWS, use_dictionary=["timestamp", "version"])
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, file)
    sync_directory(directory.path)
