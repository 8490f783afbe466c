"""GROUP BY as a kernel: add the delta to the groups it touches and show what changed of them.

A group is shown while its row weight is positive. It leaves the state when nothing is left in it at all, so a row that
is deleted before it is inserted comes out right in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.scan import scan
from laminae.trace.spec import HASH
from laminae.trace.values import all_same, integers
from laminae.views.kernels.accumulate import accumulated
from laminae.views.kernels.aggregates import GROUPS, ROWS, Aggregate, ValueSet, groups_trace, values_name
from laminae.views.kernels.changelog import Rows, changes
from laminae.views.kernels.delta import Slot, delta_of
from laminae.views.kernels.kept import kept_groups
from laminae.views.kernels.outputs import outputs
from laminae.views.kernels.step import Counts, Step, state_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from laminae.trace.lookup import Latest
    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.views.kernels.delta import Delta
    from laminae.zset.wide import Bools

State = dict[str, pa.Array]


def step(aggregate: Aggregate, table: pa.Table, manifest: Manifest, store: RunStore) -> Step:
    """One epoch of one shard: `_hash`, keys, `_weight`, `_slot` and the columns that the accumulators name."""
    trace, delta = groups_trace(aggregate), delta_of(aggregate, table)
    before = latest(trace, kept_groups(aggregate, manifest, store), delta.groups)
    rows = integers(before.payload[ROWS]) + delta.sums("_weight")
    state: State = {ROWS: pa.array(rows)}
    holds = rows != 0
    for number, found in enumerate(aggregate.accumulators, 1):
        values = values_name(found)
        after = accumulated(aggregate, Slot(number, before.payload, delta, store, manifest.runs(values)))
        state.update(after.columns)
        holds |= after.holds
        manifest = manifest.with_runs(values, after.runs)
    holds |= aggregate.is_global
    keys = _keys(aggregate, delta.groups)
    old = _shown(aggregate, before.payload, before.live, delta, keys)
    new = _shown(aggregate, state, holds, delta, keys)
    unchanged = all_same(old.columns[len(keys) :], new.columns[len(keys) :], len(delta))
    shown = changes(aggregate.fields, old, new, unchanged)
    batch = _state_rows(aggregate, delta, before, state, holds)
    manifest = manifest.with_runs(GROUPS, append(store, trace, manifest.runs(GROUPS), batch))
    was, now = _is_negative(aggregate, before.payload), _is_negative(aggregate, state)
    counts = Counts(
        rows_in=table.num_rows,
        rows_out=shown.num_rows,
        anomalies=int(np.count_nonzero(now & ~was)),
        recovered=int(np.count_nonzero(was & ~now)),
        state_rows=state_rows(manifest),
    )
    return Step(shown, manifest, counts)


def rows(aggregate: Aggregate, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """The rows that the view shows now, in batches."""
    trace = groups_trace(aggregate)
    for batch in scan(trace, kept_groups(aggregate, manifest, store)):
        state = {name: batch.column(name) for name in trace.payload}
        groups = Wanted(integers(batch.column(HASH)), tuple(batch.column(name) for name in trace.keys))
        visible = _is_visible(aggregate, state)
        columns = [*_keys(aggregate, groups), *outputs(aggregate, state, visible, groups)]
        found = pa.RecordBatch.from_arrays(columns, schema=pa.schema(aggregate.fields))
        if (found := found.filter(pa.array(visible))).num_rows:
            yield found


def _shown(
    aggregate: Aggregate, state: Mapping[str, pa.Array], exists: Bools, delta: Delta, keys: list[pa.Array]
) -> Rows:
    visible = exists & _is_visible(aggregate, state) if not aggregate.is_global else exists
    found = outputs(aggregate, state, visible, delta.groups)
    return Rows(visible, [*keys, *found])


def _is_visible(aggregate: Aggregate, state: Mapping[str, pa.Array]) -> Bools:
    if aggregate.is_global:
        return np.ones(len(state[ROWS]), dtype=np.bool_)
    return integers(state[ROWS]) > 0


def _is_negative(aggregate: Aggregate, state: Mapping[str, pa.Array]) -> Bools:
    found = integers(state[ROWS]) < 0
    for kept in aggregate.accumulators:
        if isinstance(kept, ValueSet):
            found = found | (integers(state[f"{kept.id}_negative"]) > 0)
    return found


def _keys(aggregate: Aggregate, groups: Wanted) -> list[pa.Array]:
    return [column.cast(field.type) for field, column in zip(aggregate.keys, groups.keys, strict=True)]


def _state_rows(aggregate: Aggregate, delta: Delta, before: Latest, state: State, holds: Bools) -> pa.RecordBatch:
    """New rows of the groups that changed; a tombstone for one that was there and holds nothing now."""
    trace = groups_trace(aggregate)
    columns = [state[name] for name in trace.payload]
    same = all_same([before.payload[name] for name in trace.payload], columns, len(delta))
    written = np.where(holds, ~(before.live & same), before.live)
    weight = pa.array(holds.astype(np.int64))
    whole = [pa.array(delta.groups.hashes), *delta.groups.keys, *columns, weight]
    return pa.RecordBatch.from_arrays(whole, schema=trace.schema).filter(pa.array(written))
