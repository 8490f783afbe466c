"""Debezium events as a format: unwraps the rows from their envelopes, in JSON or in Avro.

A dead letter keeps the whole message. The column `_event` holds the operation that applies to the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.changelogs import key_of
from laminae.engine.source_spec import spec_of
from laminae.spark.formats.avro.decode import avro_records
from laminae.spark.formats.avro.format import refuse_without_registry
from laminae.spark.formats.debezium.arrow_events import READ, event_rows
from laminae.spark.formats.debezium.events import EVENT, MOVES
from laminae.spark.formats.debezium.json import BESIDE, MESSAGE, NO_VERSION, REFUSED, UNTOLD, opening
from laminae.spark.formats.debezium.keyless import whole_records
from laminae.spark.formats.decode_stages import kept_stages, through
from laminae.spark.formats.json.decode import is_decoded_at_once
from laminae.spark.formats.json.records import as_newest, json_records, wanted_by
from laminae.spark.formats.parquet.footers import Refused
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION, Decoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.catalyst.column_list import Columns
    from laminae.spark.formats.protocol import QuickRows, Records


def open_format(source: SourceRecord) -> DebeziumFormat:
    spec = spec_of(source)
    if spec.is_framed:
        refuse_without_registry(source)
    return DebeziumFormat(spec.events.order, key_of(source))


@dataclass(frozen=True, slots=True)
class DebeziumFormat:
    """`laminae.spark.formats.protocol.RecordFormat` for envelopes. `sequence` is the path of the field that orders
    events, such as `source.lsn`.

    `key` are the columns of the table's primary key. For a table without one, both rows of an event (before and after)
    are read, and never by a fast path.
    """

    sequence: str
    key: tuple[str, ...]

    def decoded(self, records: Records, table: DecoderTable) -> Decoded:
        return self._decoded(records.frame((*RAW_COLUMNS, MOVES)), table)

    def decoded_again(self, letters: DataFrame, table: DecoderTable, reopened: Records | None) -> Decoded:
        if reopened is not None:
            letters = letters.unionByName(reopened.frame())
        if table.writers is not None:
            return self._decoded(letters, table)
        return self._decoded(as_newest(letters, table), table)

    def decodes_in_one_plan(self, table: DecoderTable) -> bool:
        return is_decoded_at_once(table)

    def arrow_rows(self, records: Records, table: DecoderTable, are_short: bool) -> QuickRows | None:
        """Each row comes with its `_event` (in the struct `PLACED`)."""
        if table.has_old_rows:
            return None
        raw = records.frame(READ)
        moves = F.coalesce(MOVES, F.lit(False)) if MOVES in raw.columns else F.lit(False)
        return event_rows(raw.withColumn(MOVES, moves), table, self.key, self.sequence, are_short)

    def fast_rows(self, records: Records, table: DecoderTable, fits: str | None) -> QuickRows | None:
        return None

    def make_ready(self, spark: SparkSession, table: DecoderTable, records: Records | None) -> None:
        """Nothing to prepare: there is no plan template of events."""

    def grown(self, records: Records, decoder: Decoder) -> pa.Schema | Refused:
        return Refused("schemas are not inferred from Debezium events")

    def _decoded(self, raw: DataFrame, table: DecoderTable) -> Decoded:
        if MOVES not in raw.columns:
            raw = raw.withColumn(MOVES, F.lit(False))
        if table.writers is not None:
            return Decoded(avro_records(raw, table), lambda current: current)
        spark = raw.sparkSession

        def make() -> Sequence[Columns]:
            return opening(spark, table.heads, self.sequence, table.has_old_rows)

        opened = through(raw, kept_stages(table, self.sequence, make))
        if table.has_old_rows:
            return whole_records(opened, table)
        decoded = json_records(opened, table, BESIDE)
        # Messages with an inline schema (negative versions) are left out: that schema already says what they add.
        rows = decoded.records.where(F.col(VERSION) > 0)
        whole = {"value": F.col(MESSAGE), ERROR: _error(), UNKNOWN: F.col(UNKNOWN) | F.col(UNTOLD)}
        records = decoded.records.withColumns({**whole, ROW: F.when(F.col(REFUSED).isNull(), F.col(ROW))})
        names = (*RAW_COLUMNS, ROW, ERROR, UNKNOWN, VERSION, EVENT, UNTOLD)
        return Decoded(records.select(*names), lambda current: wanted_by(rows, table, current))


def _error() -> Column:
    """Why the envelope was refused, else why its row was. A decoder error for a message without a row is ignored."""
    has_row = F.col(VERSION) != NO_VERSION
    return F.coalesce(F.col(REFUSED), F.when(has_row, F.col(ERROR)))
