"""The log of a files source: each file of a directory is one item. JSON lines are read here, line by line, as bytes.

Files that are not lines of bytes (CSV with its header, Parquet) are read by decoding, from `descriptors` of a range.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from laminae.errors import NotAvailable, SourceUnavailable
from laminae.spark.logs.listing import FileList
from laminae.spark.logs.numbered import NumberedLog, literal_path, no_records, reading_many

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.spark.contract import LogRange
    from laminae.spark.logs.listing import FileEntry
    from laminae.spark.logs.tails import Settings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DESCRIPTORS = pa.schema([("partition", pa.string()), ("item", pa.int64()), ("timestamp", pa.timestamp("us", "UTC"))])


class FilesLog(NumberedLog):
    """Its settings have the `path` that is looked at and the `format` of the files in it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._list = FileList(self._directory, settings["path"])

    def descriptors(self, span: LogRange) -> tuple[FileEntry, ...]:
        """The files of a range, each as it was when it was found; SourceUnavailable when one has changed since."""
        items = self._items(span)
        if not items:
            return ()
        self._directory.items(items.stop)
        found = tuple(self._list.entries(items))
        for entry in found:
            self._check(entry)
        return found

    def read(self, spark: SparkSession, span: LogRange) -> DataFrame:
        if self._settings["format"] != "json":
            raise NotAvailable(
                feature=f"Reading {self._settings['format']} files as lines",
                problem=f"the records of source {self._directory.source} are not lines of bytes",
                advice="Use format = 'json'.",
            )
        files = self.descriptors(span)
        return _lines(spark, files) if files else no_records(spark)

    def _check(self, entry: FileEntry) -> None:
        """A record must be the same at every reading; a file that was appended to would have more of them."""
        try:
            size = os.stat(entry.path).st_size
        except OSError as error:
            problem = error.strerror or str(error)
            raise SourceUnavailable(source=self._directory.source, location=entry.path, problem=problem) from error
        if size != entry.size:
            problem = f"it has {size} bytes, and had {entry.size} when it was found (write files elsewhere and rename)"
            raise SourceUnavailable(source=self._directory.source, location=entry.path, problem=problem)


def _lines(spark: SparkSession, files: tuple[FileEntry, ...]) -> DataFrame:
    with reading_many(spark, len(files)):
        # A newline alone ends a line: a carriage return may stand between two tokens of a document.
        text = spark.read.option("lineSep", "\n").text([literal_path(entry.path) for entry in files])
    if len(files) == 1:
        entry = files[0]
        return _raw(text, F.lit(entry.path), F.lit(entry.item), F.lit(_instant(entry)))
    described = spark.createDataFrame(_table(files))
    read = text.select("value", _path_of(F.col("_metadata.file_path")).alias("partition"))
    joined = read.join(F.broadcast(described), "partition", "left")
    unknown = F.raise_error(F.concat(F.lit("laminae: not a file of this epoch: "), F.col("partition")))
    return _raw(joined, F.col("partition"), F.coalesce("item", unknown.cast("bigint")), F.col("timestamp"))


def _raw(lines: DataFrame, partition: Column, item: Column, timestamp: Column) -> DataFrame:
    """RAW_SCHEMA. Lines have no offset: Spark does not say where in its file one begins."""
    return lines.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        partition.alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        item.cast("bigint").alias("item"),
        timestamp.alias("timestamp"),
        F.lit(None).cast("int").alias("version"),
    )


def _path_of(uri: Column) -> Column:
    """Spark names a file by its percent-encoded URI, in which a plus sign stands for itself."""
    decoded = F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(decoded, "^file:/+", "/")


def _table(files: tuple[FileEntry, ...]) -> pa.Table:
    rows = [{"partition": entry.path, "item": entry.item, "timestamp": _instant(entry)} for entry in files]
    return pa.Table.from_pylist(rows, _DESCRIPTORS)


def _instant(entry: FileEntry) -> datetime:
    return _EPOCH + timedelta(microseconds=entry.modified)
