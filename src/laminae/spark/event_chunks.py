"""Debezium's events by Arrow, many at once: the rows of a range with what is done with them, or nothing of it.

See `laminae.codec.event_lines`: one event that needs a closer look spoils the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.codec.event_avro import OP
from laminae.codec.event_lines import PLACE, ROW, event_reader
from laminae.codec.sent_values import without_rules
from laminae.spark import contract
from laminae.spark.change_events import EVENT, MOVES
from laminae.spark.rows import Watch
from laminae.spark.types import arrow_schema, spark_schema
from laminae.spark.workers import pass_over, settle_worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from laminae.codec.decoders import DecoderTable
    from laminae.codec.event_lines import EventReader
    from laminae.spark.rows import WatchedRows

VALUE, ITEM, OFFSET, STAMP = "value", "item", "offset", "version"
READ = (VALUE, ITEM, OFFSET, STAMP, MOVES)
# The version of a record that is too long: no version has this number.
TOO_LONG = -1


def event_rows(
    records: DataFrame, table: DecoderTable, keys: Sequence[str], order: str, are_short: bool = False
) -> WatchedRows | None:
    """The rows of these records (`READ`), each beside `_placed`; None where this way does not suit the table.

    With `are_short` a record that is not needs a closer look.
    """
    (newest, *others) = reversed(table.decoders)
    if others or newest.aliases or table.heads or table.writers is not None or table.version_field is not None:
        return None
    if not without_rules(newest.schema).equals(table.current, check_metadata=True):
        return None
    reader = event_reader(newest.schema, keys, order)
    if reader is None:
        return None
    watch = Watch.of(records.sparkSession)
    task = EventTask(reader, newest.version, watch)
    given = _none_long(records) if are_short else records
    found = given.select(*READ).mapInArrow(task, spark_schema(task.schema))
    event = F.struct(F.col(OP).alias("op"), F.col(PLACE).alias("sequence"), F.col(MOVES).alias("moves"))
    row = F.col(ROW).alias(contract.ROW)
    rows = found.select(f"{ROW}.*", F.struct(row, ITEM, OFFSET, event.alias(EVENT)).alias(contract.PLACED))
    return watch.rows(rows, is_bare=False, are_short=are_short)


def _none_long(records: DataFrame) -> DataFrame:
    """The values of records that are long do not go to Python at all."""
    is_long = F.octet_length(VALUE) > contract.SHORT_BYTES
    stamp = F.when(is_long, F.lit(TOO_LONG)).otherwise(F.col(STAMP))
    return records.withColumns({VALUE: F.when(~is_long, F.col(VALUE)), STAMP: stamp})


@dataclass(frozen=True, slots=True, eq=False)
class EventTask:
    """Reads the events of a partition, all of one version: a stamp may say that a record is of another."""

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
            found = None if is_other else self.reader.read(batch.column(VALUE))
            if found is None:
                # The job is for nothing from here on.
                self.watch.refuse(is_long=pc.any(pc.equal(batch.column(STAMP), TOO_LONG)).as_py() is True)
                pass_over(batches)
                return
            count += found.num_rows
            beside = [batch.column(name) for name in (ITEM, OFFSET, MOVES)]
            columns = [*(column.combine_chunks() for column in found.columns), *beside]
            yield from pa.table(columns, names=schema.names).cast(schema).to_batches()
        self.watch.count(count)
