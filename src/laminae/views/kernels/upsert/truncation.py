"""TRUNCATE of a keyed table: rows with a smaller sequence are retracted, and later events below it are dropped.

The whole table is read and rewritten once; truncations are rare enough for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.combine import joined
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.run import Run
from laminae.trace.scan import everything
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.kernels.upsert.event_order import is_older
from laminae.views.kernels.upsert.keyed_table import SEQUENCE, TRUNCATED, KeyedTable, table_trace, truncated_trace
from laminae.zset.comparison import before, integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """`gone` rows are retracted without a successor; `state` holds the surviving rows and the new ones."""

    gone: pa.RecordBatch
    state: pa.RecordBatch


def cut(table: KeyedTable, runs: Sequence[Run], came: pa.RecordBatch, floor: pa.Scalar | None) -> Cut:
    """Remove rows below the floor (without a sequence: all rows), except the keys of `came`, which have a new row."""
    trace = table_trace(table)
    newer = [Run.of("the delta", came)] if came.num_rows else []
    gone, stay = [came.slice(0, 0)], []
    for batch in everything(trace, runs):
        keys = Wanted(integers(batch.column(HASH)), tuple(batch.column(name) for name in trace.keys))
        is_replaced = latest(trace, newer, keys).found
        is_doomed = np.ones(batch.num_rows, dtype=np.bool_)
        if floor is not None:
            is_doomed = is_older(batch.column(SEQUENCE), floor)
        is_live = integers(batch.column(WEIGHT)) != 0
        gone.append(batch.filter(pa.array(is_doomed & is_live & ~is_replaced)))
        stay.append(batch.filter(pa.array(~is_doomed & ~is_replaced)))
    return Cut(joined(trace.schema, gone), joined(trace.schema, [*stay, came]))


def floor_of(table: KeyedTable, manifest: Manifest, store: RunStore, truncate_at: pa.Scalar | None) -> pa.Scalar | None:
    """The sequence below which events are dropped: the higher of this truncation's and an earlier one's."""
    if table.sequence is None:
        return None
    trace = truncated_trace(table.sequence)
    runs = [store.open(run) for run in manifest.runs(TRUNCATED)]
    stored = latest(trace, runs, _one()).payload[SEQUENCE]
    if truncate_at is None:
        return stored[0] if stored[0].is_valid else None
    requested = pa.array([truncate_at.as_py()], stored.type)
    return stored[0] if stored[0].is_valid and bool(before([requested], [stored], 1)[0]) else requested[0]


def with_floor(table: KeyedTable, manifest: Manifest, store: RunStore, floor: pa.Scalar | None) -> Manifest:
    """The manifest with this truncation stored."""
    if table.sequence is None or floor is None:
        return manifest
    trace = truncated_trace(table.sequence)
    columns = [pa.array(_one().hashes), pa.array([floor.as_py()], floor.type), pa.array([1])]
    row = pa.RecordBatch.from_arrays(columns, schema=trace.schema)
    return manifest.with_runs(TRUNCATED, append(store, trace, manifest.runs(TRUNCATED), row))


def _one() -> Wanted:
    return Wanted(np.zeros(1, dtype=np.int64), ())
