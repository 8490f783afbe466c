"""A source and the format of its records, paired: what epochs, SELECT and backfill read through."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import LongType, StructField, StructType

from laminae.errors import LaminaeError
from laminae.spark.formats.file_records import refused_files
from laminae.spark.formats.protocol import RAW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import Decoded, QuickRows, RecordFormat
    from laminae.spark.sources.files.listing import FileEntry
    from laminae.spark.sources.protocol import LogRange, Source


@dataclass(frozen=True, slots=True)
class RangeRecords:
    """`laminae.spark.formats.protocol.Records` of a range of a source."""

    source: Source
    spark: SparkSession
    span: LogRange

    def frame(self, columns: Sequence[str] = RAW_COLUMNS, boundaries: Collection[int] | None = None) -> DataFrame:
        return self.source.read(self.spark, self.span, columns, boundaries)

    def files(self) -> Sequence[FileEntry] | None:
        return self.source.files(self.span)

    def file_paths(self, columns: Sequence[str]) -> Sequence[str] | None:
        return self.source.file_paths(self.span, columns)

    def planned(self, columns: Sequence[str]) -> object | None:
        return self.source.planned(self.spark, self.span)(columns)


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads ranges of one source incarnation. Opening it reads and writes nothing; its methods do."""

    source: Source
    format: RecordFormat

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        """The decoded records of a range, and one dead letter for each broken item of it."""
        decoded = self.format.decoded(RangeRecords(self.source, spark, span), table)
        broken = self.source.broken_files(span) if span.broken else ()
        return _with_refused(spark, decoded, broken, table.current)

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        """Decode dead letters of this source (RAW_SCHEMA) again, as records of the newest version of the table."""
        reopened = self.source.reopened(letters)
        if reopened is None:
            return self.format.decoded_again(letters, table, None)
        single = letters.where(F.col("value").isNotNull())
        decoded = self.format.decoded_again(single, table, reopened.records)
        return _with_refused(letters.sparkSession, decoded, reopened.refused, table.current)

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        """Whether `decoded` reads a range only once, regardless of the number of versions in the table."""
        return self.format.decodes_in_one_plan(table)

    def arrow_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, are_short: bool = False
    ) -> QuickRows | None:
        """The rows of a range of plain text by the fastest path; None if it is not available."""
        if span.refused or span.broken:
            return None
        return self.format.arrow_rows(RangeRecords(self.source, spark, span), table, are_short)

    def fast_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        """The rows of a range by a faster path than `decoded`; None if there is none."""
        return None if span.broken else self.format.fast_rows(RangeRecords(self.source, spark, span), table, fits)

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        """Prepare in advance what `fast_rows` needs for the first range read with this table.

        `like` is a range that was read before, as an example of the ranges to come.
        """
        records = None
        if like is not None and self.source.item(like.end) > self.source.item(like.start):
            newest = replace(like, start=self.source.at(self.source.item(like.end) - 1))
            # Files are often moved away after they were read.
            with suppress(LaminaeError):
                if self.source.file_paths(newest, ("value",)) is not None:
                    records = RangeRecords(self.source, spark, newest)
        self.format.make_ready(spark, table, records)

    def stamps(self, spark: SparkSession, span: LogRange, version_field: str | None) -> set[int]:
        """The versions that records of a range are stamped with, by the source or in the field `version_field`."""
        stamp = F.col("version").cast("bigint")
        if version_field is not None:
            inside = F.from_json(F.col("value").cast("string"), StructType([StructField(version_field, LongType())]))
            stamp = F.coalesce(stamp, inside.getField(version_field))
        read = self.source.read(spark, span, ("version", "value"))
        rows = read.select(stamp.alias("stamp")).distinct().collect()
        return {row["stamp"] for row in rows if row["stamp"] is not None}


def _with_refused(
    spark: SparkSession, decoded: Decoded, refused: Sequence[tuple[FileEntry, Refused]], current: pa.Schema
) -> Decoded:
    for letters in refused_files(spark, refused, current):
        decoded = replace(decoded, records=decoded.records.unionByName(letters, allowMissingColumns=True))
    return decoded
