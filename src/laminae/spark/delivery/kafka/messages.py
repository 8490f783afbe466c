"""What a segment is as messages: key and value as bytes, a value that is NULL for a key that is gone. No Spark here.

A pure function of the segment, in an order that does not rest on how its files were cut: delivered again, a message has
the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.sinks import APPEND
from laminae.spark.delivery.debezium import event_messages
from laminae.spark.delivery.json_lines import lines
from laminae.spark.delivery.modes import OWN, changes_of, mode_of, parts_of
from laminae.spark.delivery.segment import Holds
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment

KEY, VALUE, HEADERS, SEQUENCE = "key", "value", "headers", "sequence"
MESSAGE = pa.schema([(KEY, pa.binary()), (VALUE, pa.binary())])
HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SINK_HEADER, EPOCH_HEADER, SEQUENCE_HEADER = "laminae.sink", "laminae.epoch", "laminae.sequence"


class Encoder(Protocol):
    """Writes rows of one shape as bytes, one for each row."""

    def __call__(self, rows: pa.RecordBatch) -> list[bytes]: ...


@dataclass(frozen=True, slots=True)
class RowEncoders:
    key: Encoder
    value: Encoder


def json_rows(rows: pa.RecordBatch) -> list[bytes]:
    return [line.rstrip(b"\n") for line in lines(rows)]


def row_messages(segment: Segment, sink: SinkRecord, encoders: RowEncoders) -> pa.Table:
    """The row under its key, nothing under the key of a row that is gone; rows that are only added have no key."""
    found = _added(segment, sink, encoders) if mode_of(sink) == APPEND else _upserted(segment, sink, encoders)
    return _ordered(pa.Table.from_batches(found, MESSAGE), segment)


def event_table(segment: Segment, sink: SinkRecord) -> pa.Table:
    """Debezium's events under the key of their row, with a tombstone behind each that deletes one, if it is wanted."""
    wanted = option(sink.options, "debezium.tombstones", SINK_OPTIONS) == "true" and bool(segment.key)
    found = (
        _batch(messages.keys.cast(pa.binary()), messages.values.cast(pa.binary()))
        for messages in event_messages(segment, sink, wanted)
    )
    return _ordered(pa.Table.from_batches(found, MESSAGE), segment)


def with_headers(messages: pa.Table, epoch: int, identity: str) -> pa.Table:
    """Each with the sink, the epoch and its number in it: a reader that has seen the three has seen the message."""
    total = messages.num_rows
    numbers = pa.array(np.arange(total))
    texts = [
        pa.repeat(pa.scalar(identity), total),
        pa.repeat(pa.scalar(str(epoch)), total),
        numbers.cast(pa.string()),
    ]
    # One behind the other, then in the order of the messages: three for each.
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
    """By key, with the messages of one key as they come.

    A snapshot that is written again after a crash may be cut into other files; without a key its values order it.
    """
    if not segment.key and segment.holds is not Holds.SNAPSHOT:
        return messages
    by = KEY if segment.key else VALUE
    placed = messages.append_column(SEQUENCE, pa.array(np.arange(messages.num_rows)))
    return messages.take(pc.sort_indices(placed, sort_keys=[(by, "ascending"), (SEQUENCE, "ascending")]))
