"""Decodes batches of Debezium JSON events with Arrow: all rows of a range with their operations, or none of them.

If one event needs the full decoder, the whole range is refused; see `laminae.codec.debezium.json_lines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.debezium.avro_schema import OP
from laminae.codec.debezium.json_lines import PLACE, ROW, event_reader
from laminae.codec.value_encodings import without_rules
from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow
from laminae.spark.catalyst.python_worker import pass_over, settle_worker
from laminae.spark.catalyst.types import arrow_schema, spark_schema
from laminae.spark.formats import protocol as contract
from laminae.spark.formats.debezium.events import EVENT, MOVES
from laminae.spark.formats.frame_rows import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from laminae.codec.debezium.json_lines import EventReader
    from laminae.codec.decoders import DecoderTable
    from laminae.spark.formats.frame_rows import WatchedRows

VALUE, ITEM, OFFSET, STAMP = "value", "item", "offset", "version"
READ = (VALUE, ITEM, OFFSET, STAMP, MOVES)
# Stamped on records that are too long; no schema version has this number.
TOO_LONG = -1


def event_rows(
    records: DataFrame, table: DecoderTable, keys: Sequence[str], order: str, are_short: bool = False
) -> WatchedRows | None:
    """The rows of these records (columns `READ`), each with the column `PLACED`; None if the table is not supported.

    With `are_short`, a record of more than `SHORT_BYTES` needs the full decoder.
    """
    (newest, *older) = reversed(table.decoders)
    if older or newest.aliases or table.heads or table.writers is not None or table.version_field is not None:
        return None
    if not without_rules(newest.schema).equals(table.current, check_metadata=True):
        return None
    reader = event_reader(newest.schema, keys, order)
    if reader is None:
        return None
    watch = Watch.of(records.sparkSession)
    task = EventTask(reader, newest.version, watch)
    input_records = _none_long(records) if are_short else records
    decoded = map_in_arrow(input_records.select(*READ), task, spark_schema(task.schema))
    event = F.struct(F.col(OP).alias("op"), F.col(PLACE).alias("sequence"), F.col(MOVES).alias("moves"))
    row = F.col(ROW).alias(contract.ROW)
    rows = decoded.select(f"{ROW}.*", F.struct(row, ITEM, OFFSET, event.alias(EVENT)).alias(contract.PLACED))
    return watch.rows(rows, is_bare=False, are_short=are_short)


def _none_long(records: DataFrame) -> DataFrame:
    """The records without the values of long ones, so that these are not sent to Python at all."""
    is_long = F.octet_length(VALUE) > contract.SHORT_BYTES
    stamp = F.when(is_long, F.lit(TOO_LONG)).otherwise(F.col(STAMP))
    return records.withColumns({VALUE: F.when(~is_long, F.col(VALUE)), STAMP: stamp})


@dataclass(frozen=True, slots=True, eq=False)
class EventTask:
    """Decodes the events of a partition, all with one version; a record stamped with another one refuses the range."""

    reader: EventReader
    version: int
    watch: Watch

    @property
    def schema(self) -> pa.Schema:
        row = arrow_schema(spark_schema(pa.schema(list(self.reader.made.field(ROW).type))))
        own = [pa.field(OP, pa.string()), pa.field(PLACE, pa.int64()), pa.field(ROW, pa.struct(list(row)))]
        beside = [pa.field(ITEM, pa.int64()), pa.field(OFFSET, pa.int64()), pa.field(MOVES, pa.bool_())]
        return pa.schema([*own, *beside])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        schema, count = self.schema, 0
        for batch in batches:
            is_other = pc.any(pc.not_equal(batch.column(STAMP), self.version)).as_py()
            decoded = None if is_other else self.reader.read(batch.column(VALUE))
            if decoded is None:
                # The output of the job will be discarded, so the rest of the input is skipped.
                self.watch.refuse(is_long=pc.any(pc.equal(batch.column(STAMP), TOO_LONG)).as_py() is True)
                pass_over(batches)
                return
            count += decoded.num_rows
            beside = [batch.column(name) for name in (ITEM, OFFSET, MOVES)]
            columns = [*(column.combine_chunks() for column in decoded.columns), *beside]
            yield from pa.table(columns, names=schema.names).cast(schema).to_batches()
        self.watch.count(count)
