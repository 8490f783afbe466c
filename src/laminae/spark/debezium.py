"""Debezium's events as records: the row is taken out of its envelope as text and read by the decoders of the source.

So it is judged like any other record, while a dead letter keeps the whole envelope. `_event` says what is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.contract import ERROR, ROW, Decoded
from laminae.spark.expression import Expression, call, cases, column, first_text, literal, struct, when
from laminae.spark.json_records import json_records
from laminae.spark.logs.numbered import as_newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable
    from laminae.spark.contract import LogRange, OnProblem, Outside, QuickRows
    from laminae.spark.logs.numbered import NumberedLog

EVENT = "_event"
"""A struct: `op`, and `sequence`, the BIGINT that orders events."""
PUT, DELETE, TRUNCATE, MESSAGE, TOMBSTONE = ("c", "r", "u"), "d", "t", "m", "tombstone"
IGNORED = (MESSAGE, TOMBSTONE)
REASONS = {
    "event": "the record is no Debezium event: it has no op",
    "op": "op is none of c, r, u, d, t and m: ",
    "after": "after is missing, which is the row",
    "before": "before is missing, which has the key of the row that goes",
    "sequence": "{name} is missing, which orders events",
}
_DOCUMENT, _ENVELOPE = "_document", "_envelope"
_ROWS = ("before", "after")


@dataclass(frozen=True, slots=True)
class DebeziumLog:
    """`laminae.spark.contract.SourceLog` over a log of envelopes. `sequence` is `source.lsn`, or another such path."""

    inner: NumberedLog
    sequence: str

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
        found = self._decoded(self.inner.read(spark, span), table)
        return self.inner.with_broken(spark, span, table, found)

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        return self.inner.broken(span)

    def chunked_rows(self, spark: SparkSession, span: LogRange, table: DecoderTable) -> QuickRows | None:
        return None

    def quick_rows(
        self, spark: SparkSession, span: LogRange, table: DecoderTable, fits: str | None = None
    ) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, like: LogRange | None) -> None:
        """There is no quick way to prepare."""

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> Decoded:
        return self._decoded(as_newest(letters, table), replace(table, has_stamps=True))

    def _decoded(self, raw: DataFrame, table: DecoderTable) -> Decoded:
        """The envelope goes through the decoders as the record's key, which these logs have no other use for."""
        inside = self._opened(raw, "value")
        envelope = column(_ENVELOPE)
        row = cases(
            [
                (envelope.field("op").is_one_of(PUT), envelope.field("after")),
                (envelope.field("op").compared("=", literal(DELETE)), envelope.field("before")),
            ]
        )
        given = call("coalesce", row, literal("{}")).cast("BINARY").column
        found = json_records(inside.withColumns({"key": F.col("value"), "value": given}).drop(_ENVELOPE), table)
        again = self._opened(found.records, "key")
        event = struct([("op", envelope.field("op")), ("sequence", envelope.field("sequence"))])
        has_row = envelope.field("op").is_one_of([*PUT, DELETE])
        refused = first_text([self._reason(envelope), when(has_row, column(ERROR))])
        records = again.withColumns(
            {
                "value": F.col("key"),
                "key": F.lit(None).cast("binary"),
                ERROR: refused.column,
                ROW: when(has_row, column(ROW)).column,
                EVENT: event.column,
            }
        )
        return Decoded(records.drop(_ENVELOPE), found.wanted)

    def _opened(self, records: DataFrame, name: str) -> DataFrame:
        """What the envelope in a column says, with or without the wrapper of schema and payload.

        As a VARIANT, which keeps every digit of a number: `from_json` copies inner documents by way of doubles.
        """
        text = column(name).cast("STRING")
        is_tombstone = call("trim", call("coalesce", text, literal(""))).is_one_of(["", "null"])
        wrapped = _said("$.payload", "variant")
        is_wrapped = wrapped.is_there() & ~call("is_variant_null", wrapped)

        def said(path: str, kind: str) -> Expression:
            return when(is_wrapped, _said(f"$.payload.{path}", kind), _said(f"$.{path}", kind))

        rows = [(row, call("nullif", call("to_json", said(row, "variant")), literal("null"))) for row in _ROWS]
        op = when(is_tombstone, literal(TOMBSTONE), said("op", "string"))
        envelope = struct([("op", op), *rows, ("sequence", said(self.sequence, "bigint"))])
        parsed = records.withColumn(_DOCUMENT, call("try_parse_json", text).column)
        return parsed.withColumn(_ENVELOPE, envelope.column).drop(_DOCUMENT)

    def _reason(self, envelope: Expression) -> Expression:
        op = envelope.field("op")
        known: Sequence[str] = [*PUT, DELETE, TRUNCATE, *IGNORED]
        return cases(
            [
                (op.is_null(), literal(REASONS["event"])),
                (~op.is_one_of(known), call("concat", literal(REASONS["op"]), op)),
                (op.is_one_of(PUT) & envelope.field("after").is_null(), literal(REASONS["after"])),
                (op.is_one_of([DELETE]) & envelope.field("before").is_null(), literal(REASONS["before"])),
                (
                    ~op.is_one_of(IGNORED) & envelope.field("sequence").is_null(),
                    literal(REASONS["sequence"].format(name=self.sequence)),
                ),
            ]
        )


def _said(path: str, kind: str) -> Expression:
    return call("try_variant_get", column(_DOCUMENT), literal(path), literal(kind))
