"""What the logs have in common: numbered items, offsets as `{"item": n}`, one stream reader."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import LongType, StructField, StructType

from laminae.errors import LaminaeError
from laminae.spark.contract import RAW_COLUMNS, RAW_SCHEMA
from laminae.spark.decode import is_decoded_at_once
from laminae.spark.json_records import json_records
from laminae.spark.logs.head import offset_text
from laminae.spark.logs.stream import LogOffsets, log_stream
from laminae.spark.logs.tails import log_at, open_tail
from laminae.spark.quick import make_ready, quick_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.contract import Decoded, LogRange, OnProblem, Outside, QuickRows
    from laminae.spark.logs.tails import Settings
    from laminae.spark.quick import Planned

LIMIT = "max_files_per_epoch"


class NumberedLog(ABC):
    """`laminae.spark.contract.SourceLog` for records of JSON bytes; each kind of log says how these are read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = log_at(settings)
        self._tail = open_tail(settings)

    def initial(self) -> str:
        return offset_text(0)

    def latest(self) -> str:
        return offset_text(self._tail.items(0))

    def item(self, offset: str) -> int:
        try:
            return int(json.loads(offset)["item"])
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{offset!r} is not an offset of this log, which are like {self.initial()}"
            raise self._directory.damaged(self._directory.path, problem) from error

    def at(self, item: int) -> str:
        return offset_text(item)

    def stamps(self, spark: SparkSession, span: LogRange, version_field: str | None) -> set[int]:
        stamp = F.col("version").cast("bigint")
        if version_field is not None:
            inside = F.from_json(F.col("value").cast("string"), StructType([StructField(version_field, LongType())]))
            stamp = F.coalesce(stamp, inside.getField(version_field))
        found = self.read(spark, span, ("version", "value")).select(stamp.alias("stamp")).distinct().collect()
        return {row["stamp"] for row in found if row["stamp"] is not None}

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        return set()

    def outside(self, span: LogRange) -> Outside | None:
        return None

    def stream(self, spark: SparkSession, on_problem: OnProblem | None = None) -> DataFrame:
        return log_stream(spark, self.offsets(), on_problem)

    def offsets(self) -> LogOffsets:
        """How far each epoch goes."""
        limit = self._settings.get(LIMIT)
        return LogOffsets(self._tail, None if limit is None else int(limit))

    @abstractmethod
    def read(self, spark: SparkSession, span: LogRange, columns: Sequence[str] = RAW_COLUMNS) -> DataFrame:
        """The raw records of a range (RAW_SCHEMA), with these columns at least."""

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        return json_records(self.read(spark, span), table)

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        return ()

    def with_broken(self, spark: SparkSession, span: LogRange, table: DecoderTable, found: Decoded) -> Decoded:
        """What was decoded, and a letter for each item of the range that is broken."""
        return found

    def chunked_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, are_short: bool = False
    ) -> QuickRows | None:
        return None

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        if not is_decoded_at_once(table):
            return None
        read, files, planned = partial(self.read, spark, span), partial(self.files, span), self.planned(spark, span)
        return quick_rows(spark, table, read, fits, files, planned)

    def files(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        """What `read` reads of a range, where from range to range nothing but the files differs."""
        return None

    def planned(self, spark: SparkSession, span: LogRange) -> Planned:
        """The RDD below what `read` reads of a range, where from range to range nothing else differs; else None."""
        return lambda columns: None

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        if not is_decoded_at_once(table):
            return
        read = None
        if like is not None and self._items(like):
            newest = replace(like, start=self.at(self.item(like.end) - 1))
            # Files are often moved away when they have been read.
            with suppress(LaminaeError):
                read = partial(self.read, spark, newest) if self.files(newest, ("value",)) is not None else None
        make_ready(spark, table, read)

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        return json_records(as_newest(letters, table), replace(table, has_stamps=True))

    def _items(self, span: LogRange) -> range:
        return range(self.item(span.start), self.item(span.end))


def no_records(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], RAW_SCHEMA)


def as_newest(letters: DataFrame, table: DecoderTable) -> DataFrame:
    """What was refused under an older version is read with the version in force when it is put through again."""
    return letters.withColumn("version", F.lit(table.newest))
