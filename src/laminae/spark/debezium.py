"""The log of Debezium's events: those of another log, with the rows in their envelopes as records.

A dead letter keeps the whole message. `_event` says what is done with the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.change_events import EVENT, MOVES
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION, Decoded
from laminae.spark.decode import decode, kept_stages, through
from laminae.spark.envelopes import BESIDE, MESSAGE, NO_VERSION, REFUSED, UNTOLD, opening
from laminae.spark.event_chunks import READ, event_rows
from laminae.spark.json_records import json_records, wanted_by
from laminae.spark.logs.numbered import as_newest
from laminae.spark.whole_events import whole_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.columns import Columns
    from laminae.spark.contract import LogRange, OnProblem, Outside, QuickRows
    from laminae.spark.logs.numbered import NumberedLog


@dataclass(frozen=True, slots=True)
class DebeziumLog:
    """`laminae.spark.contract.SourceLog` over a log of envelopes. `sequence` is `source.lsn`, or another such path.

    `key` are the columns of the table's primary key; of one without a key both rows of an event are read, and none
    of them quickly.
    """

    inner: NumberedLog
    sequence: str
    key: tuple[str, ...]

    def initial(self) -> str:
        return self.inner.initial()

    def latest(self) -> str:
        return self.inner.latest()

    def item(self, offset: str) -> int:
        return self.inner.item(offset)

    def at(self, item: int) -> str:
        return self.inner.at(item)

    def stamps(self, spark: SparkSession, span: LogRange, version_field: str | None) -> set[int]:
        return self.inner.stamps(spark, span, version_field)

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        return self.inner.stamps_at_hand(span)

    def outside(self, span: LogRange) -> Outside | None:
        return self.inner.outside(span)

    def stream(self, spark: SparkSession, on_problem: OnProblem | None = None) -> DataFrame:
        return self.inner.stream(spark, on_problem)

    def decoded(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> Decoded:
        found = self._decoded(self.inner.read(spark, span, (*RAW_COLUMNS, MOVES)), table)
        return self.inner.with_broken(spark, span, table, found)

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        return self.inner.broken(span)

    def chunked_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, are_short: bool = False
    ) -> QuickRows | None:
        """With what is done with each row beside it."""
        if span.refused or span.broken or table.has_old_rows:
            return None
        records = self.inner.read(spark, span, READ)
        moves = F.coalesce(MOVES, F.lit(False)) if MOVES in records.columns else F.lit(False)
        records = records.withColumn(MOVES, moves)
        return event_rows(records, table, self.key, self.sequence, are_short)

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        """There is no quick way to prepare."""

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        if table.writers is not None:
            return self._decoded(letters, table)
        return self._decoded(as_newest(letters, table), table)

    def _decoded(self, raw: DataFrame, table: DecoderTable) -> Decoded:
        if MOVES not in raw.columns:
            raw = raw.withColumn(MOVES, F.lit(False))
        if table.writers is not None:
            return Decoded(decode(raw, table), lambda current: current)
        spark = raw.sparkSession

        def make() -> Sequence[Columns]:
            return opening(spark, table.heads, self.sequence, table.has_old_rows)

        opened = through(raw, kept_stages(table, self.sequence, make))
        if table.has_old_rows:
            return whole_records(opened, table)
        found = json_records(opened, table, BESIDE)
        # What a message with a schema asks for beyond the source's, its schema tells.
        rows = found.records.where(F.col(VERSION) > 0)
        whole = {"value": F.col(MESSAGE), ERROR: _error(), UNKNOWN: F.col(UNKNOWN) | F.col(UNTOLD)}
        records = found.records.withColumns({**whole, ROW: F.when(F.col(REFUSED).isNull(), F.col(ROW))})
        names = (*RAW_COLUMNS, ROW, ERROR, UNKNOWN, VERSION, EVENT, UNTOLD)
        return Decoded(records.select(*names), lambda current: wanted_by(rows, table, current))


def _error() -> Column:
    """Of a message without a row the decoders say nothing that matters."""
    has_row = F.col(VERSION) != NO_VERSION
    return F.coalesce(F.col(REFUSED), F.when(has_row, F.col(ERROR)))
