"""Encode a segment as Debezium events, one JSON line per event.

The encoding must not read the clock: a repeated delivery produces the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from laminae.engine.options import SINK_OPTIONS, option
from laminae.spark.sinks.modes import changes_of
from laminae.spark.sinks.segment import Holds
from laminae.zset.changelog import EPOCH, OP
from laminae.zset.debezium.envelope import CdcSource
from laminae.zset.debezium.messages import encode_changelog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment
    from laminae.zset.debezium.envelope import Nulls
    from laminae.zset.debezium.json_text import Json
    from laminae.zset.debezium.messages import Messages

DATABASE = "laminae"


def event_lines(segment: Segment, sink: SinkRecord) -> Iterator[bytes]:
    for messages in event_messages(segment, sink):
        yield from (f"{event}\n".encode() for event in messages.values.to_pylist())


def event_messages(segment: Segment, sink: SinkRecord, tombstones: bool = False) -> Iterator[Messages]:
    """`source` carries the epoch and, as `sequence`, the event's number within it: together a permanent event id.

    A tombstone belongs to the delete event before it and gets no sequence number.
    """
    is_snapshot = segment.holds is Holds.SNAPSHOT
    origin: dict[str, Json] = {"snapshot": str(is_snapshot).lower(), "epoch": segment.epoch}
    source = CdcSource(sink.relation, DATABASE, sink.relation, None, origin)
    nulls = cast("Nulls", option(sink.options, "debezium.nulls", SINK_OPTIONS))
    number = 0
    for shape in segment.shapes():
        for table in with_whole_updates(changes_of(shape, sink)):
            messages = encode_changelog(
                table.drop_columns([EPOCH]),
                source,
                key=shape.key or (),
                nulls=nulls,
                tombstones=tombstones,
                snapshot=is_snapshot,
                first_sequence=number,
            )
            yield messages
            number += len(messages.values) - messages.values.null_count


def with_whole_updates(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Regroup the changes so that a -U is in the same table as its +U: a batch may end between the two."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        ends_open = batch.column(OP)[-1].as_py() == "-U"
        whole = batch.slice(0, batch.num_rows - 1) if ends_open else batch
        yield pa.Table.from_batches([*held, whole])
        held = [batch.slice(batch.num_rows - 1)] if ends_open else []
    if held:
        yield pa.Table.from_batches(held)
