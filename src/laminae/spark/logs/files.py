"""The log of a files source: each file of a directory is one item. JSON lines are read here, line by line, as bytes.

Files that are not lines of bytes (CSV with its header, Parquet) are decoded by a reader, from `descriptors` of a range.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from laminae.errors import SourceUnavailable
from laminae.spark.contract import RAW_COLUMNS, Decoded
from laminae.spark.expression import Expression
from laminae.spark.files.broken import shown_path, why_broken
from laminae.spark.files.footers import Refused
from laminae.spark.files.json_chunks import chunked_rows
from laminae.spark.files.parquet import ParquetReader
from laminae.spark.files.records import PATH, line_number, path_of, place_columns, refused_files
from laminae.spark.logs.listing import FileEntry, FileList
from laminae.spark.logs.numbered import NumberedLog, as_newest, no_records
from laminae.spark.paths import literal_path, reading_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.contract import LogRange, QuickRows
    from laminae.spark.logs.tails import Settings


GONE = "it is gone"


class FileReader(Protocol):
    """Decodes files whose records are not lines of bytes; made for one source."""

    def decoded(self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> Decoded:
        """The records of these files; one that cannot be read is one record without a value."""
        ...

    def quick_rows(
        self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable, fits: str | None
    ) -> QuickRows | None:
        """As of a log, None where the records need a closer look or the reader has no shorter way."""
        ...

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        """Dead letters that have a value, as records of the newest version of the table."""
        ...

    def grown(self, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        """The version's schema with what these files have beyond it, by a bounded part of each; no Spark is needed."""
        ...


class FilesLog(NumberedLog):
    """Its settings have the `path` that is looked at. Without a reader its records are lines of JSON.

    `has_order`: the records of a file must say which comes first.
    """

    def __init__(self, settings: Settings, reader: FileReader | None = None, has_order: bool = False) -> None:
        super().__init__(settings)
        self._has_order = has_order
        self._list = FileList(self._directory, settings["path"])
        self.reader = reader

    def descriptors(self, span: LogRange) -> tuple[FileEntry, ...]:
        """The files of a range, each as it was when it was found; SourceUnavailable when one has changed since."""
        items = self._items(span)
        if not items:
            return ()
        self._directory.items(items.stop)
        left_out = {*span.refused, *dict(span.broken)}
        found = tuple(entry for entry in self._list.entries(items) if entry.item not in left_out)
        for entry in found:
            # Fails on a name that is no text: sent to the JVM it would take the connection down.
            entry.path.encode()
            self._check(entry)
        return found

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        is_parquet, known = isinstance(self.reader, ParquetReader), dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item not in known]
        for entry in entries:
            self._check(entry)
        found = ((entry.item, why_broken(entry.path, is_parquet)) for entry in entries)
        return (*span.broken, *((item, reason) for item, reason in found if reason is not None))

    def with_broken(self, spark: SparkSession, span: LogRange, table: DecoderTable, found: Decoded) -> Decoded:
        if not span.broken:
            return found
        reasons = dict(span.broken)
        entries = [entry for entry in self._list.entries(self._items(span)) if entry.item in reasons]
        named = [replace(entry, path=shown_path(entry.path)) for entry in entries]
        (letters,) = refused_files(spark, [(entry, Refused(reasons[entry.item])) for entry in named], table.current)
        records = found.records.unionByName(letters, allowMissingColumns=True)
        return Decoded(records, found.wanted)

    def newest(self, count: int) -> tuple[FileEntry, ...]:
        """The last files that are there now, oldest first; those that are gone again are left out."""
        items = self._list.items(0)
        found = (_as_it_is(entry) for entry in self._list.entries(range(max(0, items - count), items)))
        return tuple(entry for entry in found if entry is not None)

    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
        return lines(spark, self.descriptors(span), columns, self._has_order)

    def files(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        found = [entry.path for entry in self.descriptors(span)]
        return found if found and tuple(columns) == ("value",) else None

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        if self.reader is None:
            return self.with_broken(spark, span, table, super().decoded(spark, span, table))
        found = self.reader.decoded(spark, self.descriptors(span), table)
        return self.with_broken(spark, span, table, found)

    def chunked_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, are_short: bool = False
    ) -> QuickRows | None:
        # Nobody has looked how long the lines of a file are.
        if self.reader is not None or span.broken or are_short:
            return None
        return chunked_rows(spark, self.descriptors(span), table)

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        if span.broken:
            return None
        if self.reader is None:
            return super().quick_rows(spark, span, table, fits)
        return self.reader.quick_rows(spark, self.descriptors(span), table, fits)

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        if self.reader is None:
            super().make_ready(spark, table, like)

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        whole = letters.where(F.col("value").isNull()).select("item", "partition", "timestamp")
        files = sorted((_named(row) for row in whole.distinct().collect()), key=lambda entry: entry.item)
        is_parquet = isinstance(self.reader, ParquetReader)
        broken = [(entry, Refused(reason)) for entry in files if (reason := _why_not_again(entry, is_parquet))]
        again = [entry for entry in files if entry not in [entry for entry, _ in broken]]
        spark, single = letters.sparkSession, letters.where(F.col("value").isNotNull())
        if self.reader is None:
            mended = super().decoded_again(single.unionByName(lines(spark, again, has_order=self._has_order)), table)
            records = mended.records
        else:
            newest = replace(table, decoders=table.decoders[-1:])
            mended = self.reader.decoded(spark, again, newest)
            records = mended.records.union(self.reader.decoded_again(as_newest(single, newest), newest))
        for refused in refused_files(spark, broken, table.current):
            records = records.unionByName(refused, allowMissingColumns=True)
        return Decoded(records, mended.wanted)

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


def lines(
    spark: SparkSession, files: Sequence[FileEntry], columns: Sequence[str] = RAW_COLUMNS, has_order: bool = False
) -> DataFrame:
    """The lines of these files as raw records.

    They have no offset, as Spark does not say where in its file one begins, unless their order is asked for.
    """
    if not files:
        return no_records(spark)
    with reading_many(spark, len(files)):
        # A newline alone ends a line: a carriage return may stand between two tokens of a document.
        text = spark.read.option("lineSep", "\n").text([literal_path(entry.path) for entry in files])
    if tuple(columns) == ("value",):
        return text.selectExpr("CAST(value AS BINARY) AS value")
    offset = line_number() if has_order else Expression("CAST(NULL AS BIGINT)")
    read = text.select(
        "value", path_of(Expression("_metadata.file_path")).column.alias(PATH), offset.column.alias("offset")
    )
    raw = {
        "key": F.lit(None).cast("binary"),
        "value": F.col("value").cast("binary"),
        "offset": F.col("offset"),
        **{name: made.column for name, made in place_columns(files).items()},
    }
    return read.select(*(raw[name].alias(name) for name in RAW_COLUMNS if name in columns))


def _as_it_is(entry: FileEntry) -> FileEntry | None:
    try:
        status = os.stat(entry.path)
    except OSError:
        return None
    return replace(entry, size=status.st_size, modified=status.st_mtime_ns // 1000)


def _why_not_again(entry: FileEntry, is_parquet: bool) -> str | None:
    """Why a file that was refused as a whole still cannot be read."""
    return why_broken(entry.path, is_parquet) if os.path.exists(entry.path) else GONE


def _named(letter: Row) -> FileEntry:
    """The file of a letter as it is now: it may have been mended. One that is gone cannot be read, and says so."""
    entry = FileEntry(letter["item"], letter["partition"], 0, 0)
    return _as_it_is(entry) or entry
