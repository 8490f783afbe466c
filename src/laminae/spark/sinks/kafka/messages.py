"""Encode a segment as Kafka messages: key and value as bytes, a tombstone (NULL value) for a deleted key. No Spark.

A pure function of the segment. The order must not depend on how the rows were split into files, so that a message has
the same sequence number in a repeated delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.engine.definitions.sinks import APPEND
from laminae.engine.options import SINK_OPTIONS, option
from laminae.spark.sinks.debezium import event_messages
from laminae.spark.sinks.json_lines import lines
from laminae.spark.sinks.modes import OWN, changes_of, mode_of, parts_of
from laminae.spark.sinks.segment import Holds
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment

KEY, VALUE, HEADERS, SEQUENCE = "key", "value", "headers", "sequence"
MESSAGE = pa.schema([(KEY, pa.binary()), (VALUE, pa.binary())])
HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SINK_HEADER, EPOCH_HEADER, SEQUENCE_HEADER = "laminae.sink", "laminae.epoch", "laminae.sequence"


class Encoder(Protocol):
    """Encodes rows of one schema as bytes, one value per row."""

    def __call__(self, rows: pa.RecordBatch) -> list[bytes]: ...


@dataclass(frozen=True, slots=True)
class RowEncoders:
    key: Encoder
    value: Encoder


def json_rows(rows: pa.RecordBatch) -> list[bytes]:
    return [line.rstrip(b"\n") for line in lines(rows)]


def row_messages(segment: Segment, sink: SinkRecord, encoders: RowEncoders) -> pa.Table:
    """One message per row under its key, a tombstone for a deleted row; in append mode messages have no key."""
    batches = _added(segment, sink, encoders) if mode_of(sink) == APPEND else _upserted(segment, sink, encoders)
    return _ordered(pa.Table.from_batches(batches, MESSAGE), segment)


def event_table(segment: Segment, sink: SinkRecord) -> pa.Table:
    """Debezium events under the key of their row, with a tombstone after each delete if `debezium.tombstones` is on."""
    wanted = option(sink.options, "debezium.tombstones", SINK_OPTIONS) == "true" and bool(segment.key)
    batches = (
        _batch(messages.keys.cast(pa.binary()), messages.values.cast(pa.binary()))
        for messages in event_messages(segment, sink, wanted)
    )
    return _ordered(pa.Table.from_batches(batches, MESSAGE), segment)


def with_headers(messages: pa.Table, epoch: int, identity: str) -> pa.Table:
    """Add headers with the sink, the epoch and the sequence number in it: together they identify duplicates."""
    total = messages.num_rows
    numbers = pa.array(np.arange(total))
    texts = [
        pa.repeat(pa.scalar(identity), total),
        pa.repeat(pa.scalar(str(epoch)), total),
        numbers.cast(pa.string()),
    ]
    # Concatenated column by column, then reordered so that the three values of a message are adjacent.
    values = pa.concat_arrays([text.cast(pa.binary()) for text in texts])
    places = pa.array(np.arange(3 * total).reshape(3, total).T.ravel())
    names = pa.array([SINK_HEADER, EPOCH_HEADER, SEQUENCE_HEADER]).take(pa.array(np.tile([0, 1, 2], total)))
    headers = pa.StructArray.from_arrays([names, values.take(places)], fields=list(HEADER))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * total + 1, 3), pa.int32()), headers)
    return messages.append_column(HEADERS, lists).append_column(SEQUENCE, numbers)


def _added(segment: Segment, sink: SinkRecord, encoders: RowEncoders) -> Iterator[pa.RecordBatch]:
    for part in parts_of(segment, sink):
        for batch in part:
            values = pa.array(encoders.value(batch), pa.binary())
            yield _batch(pa.nulls(len(values), pa.binary()), values)


def _upserted(segment: Segment, sink: SinkRecord, encoders: RowEncoders) -> Iterator[pa.RecordBatch]:
    key = list(segment.key or ())
    for batch in changes_of(segment, sink):
        stays = pc.starts_with(batch.column(OP), "+")
        rows = batch.select([name for name in batch.schema.names if name not in OWN])
        places = np.cumsum(np.asarray(stays)) - 1
        values = pa.array(encoders.value(rows.filter(stays)), pa.binary())
        keys = pa.array(encoders.key(rows.select(key)), pa.binary())
        yield _batch(keys, values.take(pa.array(places, mask=~np.asarray(stays))))


def _batch(keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([keys, values], schema=MESSAGE)


def _ordered(messages: pa.Table, segment: Segment) -> pa.Table:
    """Sort by key, keeping the order of the messages of one key.

    A snapshot that is rewritten after a crash may be split into other files, so without a key it is sorted by value.
    """
    if not segment.key and segment.holds is not Holds.SNAPSHOT:
        return messages
    by = KEY if segment.key else VALUE
    placed = messages.append_column(SEQUENCE, pa.array(np.arange(messages.num_rows)))
    return messages.take(pc.sort_indices(placed, sort_keys=[(by, "ascending"), (SEQUENCE, "ascending")]))
