"""Rows whose primary key changed, stored until the insert under the new key arrives: that event may lack values.

They are found by the position of the change, because the old key may hold another row by then. They are stored in the
shard of the old key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.combine import joined
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.scan import scan
from laminae.views.kernels.upsert.event_order import is_older, values_at
from laminae.views.kernels.upsert.keyed_table import MOVED, SEQUENCE, moved_trace
from laminae.zset.comparison import integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.run import Run
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.upsert.value_source import KeyedEvents
    from laminae.zset.wide_integers import Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """The manifest with the departed rows, and how many of their values are unknown."""

    manifest: Manifest
    unseen: int = 0


def remember(
    keyed: KeyedEvents, manifest: Manifest, store: RunStore, arrived: Int64s, floor: pa.Scalar | None = None
) -> Remembered:
    """Store the rows that moving deletes remove, until the positions of their inserts are among `arrived`.

    Rows older than a truncation (`floor`) are dropped as well.
    """
    entries = manifest.runs(MOVED)
    if not (bool(keyed.moved.any()) or entries):
        return Remembered(manifest)
    trace, runs = moved_trace(keyed.table), [store.open(entry) for entry in entries]
    left, unseen = _left(keyed, arrived)
    ended = _ended(trace, runs, arrived, floor)
    return Remembered(
        manifest.with_runs(MOVED, append(store, trace, entries, joined(trace.schema, [ended, left]))), unseen
    )


def _left(keyed: KeyedEvents, arrived: Int64s) -> tuple[pa.RecordBatch, int]:
    trace, lacks = moved_trace(keyed.table), keyed.lacks()
    leaves = keyed.taken & keyed.deletes & keyed.moved
    events = np.flatnonzero(leaves & ~np.isin(keyed.places, arrived))
    rows, none = keyed.before(events), np.zeros(len(leaves), dtype=np.bool_)
    columns = [values_at(keyed, name, lacks.get(name, none), rows) for name in trace.payload]
    # A missing row is stored as well; otherwise its insert would wait for a delete that was already read.
    is_there = ~keyed.has_no_value(none)[rows]
    unseen = sum(int(np.count_nonzero(is_unknown & is_there)) for _, is_unknown in columns)
    unseen += int(np.count_nonzero(~is_there & np.append(~none, keyed.known.found)[rows]))
    return _rows(trace, keyed.places[events], [values for values, _ in columns], weight=1), unseen


def _ended(trace: TraceSpec, runs: Sequence[Run], arrived: Int64s, floor: pa.Scalar | None) -> pa.RecordBatch:
    """Tombstones for departed rows that are no longer needed."""
    places = np.unique(arrived)
    gone = [places[latest(trace, runs, Wanted(places, (pa.array(places),))).live]]
    if floor is not None:
        columns = (batch.column(SEQUENCE) for batch in scan(trace, runs))
        gone += [integers(column)[is_older(column, floor)] for column in columns]
    ended = np.unique(np.concatenate(gone))
    nulls = [pa.nulls(len(ended), trace.schema.field(name).type) for name in trace.payload]
    return _rows(trace, ended, nulls, weight=0)


def _rows(trace: TraceSpec, places: Int64s, payload: Sequence[pa.Array], weight: int) -> pa.RecordBatch:
    """A position is its own hash: a trace is searched by hash but does not need hashes to be well distributed."""
    weights = pa.array(np.full(len(places), weight))
    return pa.RecordBatch.from_arrays([pa.array(places), pa.array(places), *payload, weights], schema=trace.schema)
