"""Rows that leave their keys are remembered until they come to others: the event that inserts them may lack values.

Its place finds them again, as the key that they left may have another row by then. They are kept where they were.
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
from laminae.trace.values import integers
from laminae.views.kernels.events import is_older, values_at
from laminae.views.kernels.keyed_table import MOVED, SEQUENCE, moved_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.run import Run
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.heard import Heard
    from laminae.zset.wide import Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """The manifest with the rows that are under way, and how many of their values nobody knows."""

    manifest: Manifest
    unseen: int = 0


def remember(
    heard: Heard, manifest: Manifest, store: RunStore, arrived: Int64s, floor: pa.Scalar | None = None
) -> Remembered:
    """What stood under the keys of deletes that say that it goes on under others, until its place is among `arrived`.

    What is older than a truncation is forgotten, too.
    """
    entries = manifest.runs(MOVED)
    if not (bool(heard.moved.any()) or entries):
        return Remembered(manifest)
    trace, runs = moved_trace(heard.table), [store.open(entry) for entry in entries]
    left, unseen = _left(heard, arrived)
    ended = _ended(trace, runs, arrived, floor)
    return Remembered(
        manifest.with_runs(MOVED, append(store, trace, entries, joined(trace.schema, [ended, left]))), unseen
    )


def _left(heard: Heard, arrived: Int64s) -> tuple[pa.RecordBatch, int]:
    trace, lacks = moved_trace(heard.table), heard.lacks()
    leaves = heard.taken & heard.deletes & heard.moved
    events = np.flatnonzero(leaves & ~np.isin(heard.places, arrived))
    rows, none = heard.before(events), np.zeros(len(leaves), dtype=np.bool_)
    is_there = ~heard.silent(none)[rows]
    events, rows = events[is_there], rows[is_there]
    found = [values_at(heard, name, lacks.get(name, none), rows) for name in trace.payload]
    unseen = sum(int(np.count_nonzero(is_unknown)) for _, is_unknown in found)
    return _rows(trace, heard.places[events], [values for values, _ in found], weight=1), unseen


def _ended(trace: TraceSpec, runs: Sequence[Run], arrived: Int64s, floor: pa.Scalar | None) -> pa.RecordBatch:
    """Tombstones of what need not be remembered any more."""
    places = np.unique(arrived)
    gone = [places[latest(trace, runs, Wanted(places, (pa.array(places),))).live]]
    if floor is not None:
        columns = (batch.column(SEQUENCE) for batch in scan(trace, runs))
        gone += [integers(column)[is_older(column, floor)] for column in columns]
    ended = np.unique(np.concatenate(gone))
    nulls = [pa.nulls(len(ended), trace.schema.field(name).type) for name in trace.payload]
    return _rows(trace, ended, nulls, weight=0)


def _rows(trace: TraceSpec, places: Int64s, payload: Sequence[pa.Array], weight: int) -> pa.RecordBatch:
    """A place is its own hash: a trace is searched by hashes, and need not be spread by them."""
    weights = pa.array(np.full(len(places), weight))
    return pa.RecordBatch.from_arrays([pa.array(places), pa.array(places), *payload, weights], schema=trace.schema)
