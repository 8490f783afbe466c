"""Apply a sink's mode to a segment: rows only (append), every change (changelog), or net changes per key (upsert).

Shared by all formats and connectors. A pure function of the segment: a repeated delivery produces the same output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.engine.changelogs import WEIGHTS
from laminae.engine.definitions.sinks import APPEND, UPSERT
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import InvalidOption
from laminae.spark.sinks.segment import Holds, batches
from laminae.zset import CdcOperation
from laminae.zset.changelog import EPOCH, OP, TIMESTAMP, WEIGHT
from laminae.zset.upserts import upserts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.model import SinkRecord
    from laminae.engine.changelogs import WeightedBy
    from laminae.spark.sinks.segment import Segment

OWN = (EPOCH, OP, WEIGHT, TIMESTAMP)
BEFORE = CdcOperation.UPDATE_BEFORE.value


def mode_of(sink: SinkRecord) -> str:
    """The sink's mode. CREATE SINK stores the mode it decided on, unless that is append."""
    return option(sink.options, "mode", SINK_OPTIONS) or APPEND


def is_as_stored(segment: Segment, sink: SinkRecord) -> bool:
    """Whether the sink can use the segment's files unchanged."""
    return mode_of(sink) == APPEND and not segment.has_changes and segment.weighted_by is None


def parts_of(segment: Segment, sink: SinkRecord) -> list[Iterator[pa.RecordBatch]]:
    """What the sink writes for the segment, part by part. Each part has at least one batch, possibly empty."""
    return [part for shape in segment.shapes() for part in _parts(shape, sink)]


def _parts(segment: Segment, sink: SinkRecord) -> list[Iterator[pa.RecordBatch]]:
    mode = mode_of(sink)
    if mode == UPSERT and segment.holds is Holds.CHANGES:
        return [_net_changes(segment)]
    if mode == APPEND:
        return [_rows(segment, file, sink) for file in segment.files()]
    return [changes_in(segment, file) for file in segment.files()]


def changes_of(segment: Segment, sink: SinkRecord) -> Iterator[pa.RecordBatch]:
    """The changes of a segment of one shape, for every mode, as one sequence; net changes in upsert mode."""
    if mode_of(sink) == UPSERT and segment.holds is Holds.CHANGES:
        yield from _net_changes(segment)
        return
    for file in segment.files():
        yield from changes_in(segment, file)


def changes_in(segment: Segment, file: str) -> Iterator[pa.RecordBatch]:
    """`_epoch`, `_op`, `_weight`, `_timestamp` and the row's columns; rows that are stored without an `_op` are +I."""
    for stored in _stored(segment, file):
        batch = stored if segment.weighted_by is None else _weighted(stored, segment.weighted_by)
        size = batch.num_rows
        own = {
            EPOCH: pa.repeat(pa.scalar(segment.epoch, pa.int64()), size),
            OP: pa.repeat("+I", size),
            WEIGHT: pa.repeat(pa.scalar(1, pa.int64()), size),
            TIMESTAMP: pa.repeat(pa.scalar(segment.time, pa.timestamp("us", tz="UTC")), size),
        }
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if segment.has_changes:
            own |= {name: columns[name] for name in (OP, WEIGHT, TIMESTAMP)}
        elif segment.weighted_by is not None:
            own |= {name: columns[name] for name in (OP, WEIGHT)}
        rest = {name: column for name, column in columns.items() if name not in OWN}
        yield pa.RecordBatch.from_pydict({**own, **rest})


def _weighted(batch: pa.RecordBatch, by: WeightedBy) -> pa.RecordBatch:
    """Add `_op` and `_weight` from the row's weight or operation field, and drop rows of weight 0.

    That field is not data, so it is set to NULL.
    """
    place = batch.schema.get_field_index(by.field)
    values = batch.column(place)
    weights = pa.array([WEIGHTS[value] for value in values.to_pylist()]) if by.is_operation else values.cast("int64")
    ops = pc.if_else(pc.greater(weights, 0), "+I", "-D")
    bare = batch.set_column(place, by.field, pa.nulls(batch.num_rows, values.type))
    return bare.append_column(OP, ops).append_column(WEIGHT, weights).filter(pc.not_equal(weights, 0))


def _net_changes(segment: Segment) -> Iterator[pa.RecordBatch]:
    """At most one change per key and epoch, even if the changes of a key are spread over several files."""
    if segment.key is None:
        raise AssertionError(f"the rows of epoch {segment.epoch} have no key")
    changes = [batch for file in segment.files() for batch in changes_in(segment, file)]
    whole = pa.Table.from_batches(changes)
    yield from upserts(whole, segment.key).to_batches() or [changes[0].slice(0, 0)]


def _rows(segment: Segment, file: str, sink: SinkRecord) -> Iterator[pa.RecordBatch]:
    for batch in _stored(segment, file):
        if not segment.has_changes:
            yield batch
            continue
        weights = np.asarray(batch.column(WEIGHT))
        if (weights < 0).any():
            raise InvalidOption(
                option="mode",
                owner=sink.name,
                problem=f"it is append, and {sink.relation} retracted a row in epoch {segment.epoch}",
                advice="Create another sink with mode = 'changelog'.",
            )
        rows = batch.select([name for name in batch.schema.names if name not in OWN])
        yield rows if (weights == 1).all() else rows.take(pa.array(np.repeat(np.arange(len(weights)), weights)))


def _stored(segment: Segment, file: str) -> Iterator[pa.RecordBatch]:
    empty = True
    for batch in batches(file, segment.schema):
        empty = False
        yield batch if segment.shows_old else batch.filter(pc.not_equal(batch.column(OP), BEFORE))
    if empty:
        columns = [pa.array([], field.type) for field in segment.schema]
        yield pa.RecordBatch.from_arrays(columns, segment.schema.names)
