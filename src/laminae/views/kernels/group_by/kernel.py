"""The GROUP BY kernel: add the delta to the groups it touches and emit the changes of their rows.

A group is shown while its row weight is positive. It is removed from the state only when all its weights and sums are
zero, so a delete that arrives before its insert still leads to the right result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.scan import scan
from laminae.trace.spec import HASH
from laminae.views.kernels.changelog import Rows, changes
from laminae.views.kernels.group_by.accumulate import accumulated
from laminae.views.kernels.group_by.aggregates import (
    GROUPS,
    ROWS,
    Aggregate,
    FloatTotal,
    ValueSet,
    groups_trace,
    values_name,
    values_trace,
)
from laminae.views.kernels.group_by.delta import Slot, delta_of
from laminae.views.kernels.group_by.outputs import outputs
from laminae.views.kernels.group_by.stored_runs import kept_groups, refuse_lost, without
from laminae.views.kernels.step import Counts, Input, Step, state_rows
from laminae.zset.comparison import all_same, integers

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from laminae.trace.lookup import Latest
    from laminae.trace.manifest import Manifest
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.group_by.delta import Delta
    from laminae.views.kernels.step import ShardState
    from laminae.zset.wide_integers import Bools

State = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class ClosedWindows:
    """Windows whose `end` column is at or before `until`, in microseconds, accept no more rows."""

    end: str
    until: int


@dataclass(frozen=True, slots=True, eq=False)
class GroupByKernel:
    """A GROUP BY or DISTINCT as a `Kernel`."""

    aggregate: Aggregate
    closed: ClosedWindows | None = None
    fresh: frozenset[str] = frozenset()
    """Accumulators that start empty with this delta; values that older runs hold under their names are ignored."""

    inputs = (Input("groups"),)

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        (delta,) = deltas
        arrived = delta.num_rows
        if self.closed is not None:
            ends = delta.column(self.closed.end)
            micros = ends.cast(pa.timestamp("us", tz=ends.type.tz)).cast(pa.int64())
            delta = delta.filter(pc.greater(micros, self.closed.until))
        manifest = state.manifest
        if self.fresh:
            manifest = without(self.aggregate, self.fresh, manifest, state.store)
        result = step(self.aggregate, delta, manifest, state.store, self.fresh)
        return replace(result, counts=replace(result.counts, late=arrived - delta.num_rows))

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        return rows(self.aggregate, manifest, store)

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        valued = [
            accumulator for accumulator in self.aggregate.accumulators if isinstance(accumulator, FloatTotal | ValueSet)
        ]
        return [groups_trace(self.aggregate), *(values_trace(self.aggregate, accumulator) for accumulator in valued)]


def step(
    aggregate: Aggregate, table: pa.Table, manifest: Manifest, store: RunStore, fresh: Container[str] = ()
) -> Step:
    """Apply one epoch to one shard: `table` has `_hash`, keys, `_weight`, the slot and the columns of the accumulators.

    `fresh` accumulators have no state yet in groups that already exist: this delta fills them.
    """
    trace, delta = groups_trace(aggregate), delta_of(aggregate, table)
    before = latest(trace, kept_groups(aggregate, manifest, store), delta.groups)
    refuse_lost(aggregate, before.payload, before.found, fresh)
    rows = integers(before.payload[ROWS]) + delta.sums("_weight")
    state: State = {ROWS: pa.array(rows)}
    holds = rows != 0
    for number, accumulator in enumerate(aggregate.accumulators, 1):
        values = values_name(accumulator)
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
    return Step((shown,), manifest, counts)


def rows(aggregate: Aggregate, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """The current rows of the view, in batches."""
    trace = groups_trace(aggregate)
    for batch in scan(trace, kept_groups(aggregate, manifest, store)):
        state = {name: batch.column(name) for name in trace.payload}
        refuse_lost(aggregate, state, np.ones(batch.num_rows, dtype=np.bool_))
        groups = Wanted(integers(batch.column(HASH)), tuple(batch.column(name) for name in trace.keys))
        visible = _is_visible(aggregate, state)
        columns = [*_keys(aggregate, groups), *outputs(aggregate, state, visible, groups)]
        output = pa.RecordBatch.from_arrays(columns, schema=pa.schema(aggregate.fields))
        if (output := output.filter(pa.array(visible))).num_rows:
            yield output


def _shown(
    aggregate: Aggregate, state: Mapping[str, pa.Array], exists: Bools, delta: Delta, keys: list[pa.Array]
) -> Rows:
    visible = exists & _is_visible(aggregate, state) if not aggregate.is_global else exists
    columns = outputs(aggregate, state, visible, delta.groups)
    return Rows(visible, [*keys, *columns])


def _is_visible(aggregate: Aggregate, state: Mapping[str, pa.Array]) -> Bools:
    if aggregate.is_global:
        return np.ones(len(state[ROWS]), dtype=np.bool_)
    return integers(state[ROWS]) > 0


def _is_negative(aggregate: Aggregate, state: Mapping[str, pa.Array]) -> Bools:
    """Groups with more deletes than inserts: of rows, of non-NULL values, or of one value."""
    is_negative = integers(state[ROWS]) < 0
    for accumulator in aggregate.accumulators:
        if isinstance(accumulator, ValueSet):
            is_negative = is_negative | (integers(state[f"{accumulator.id}_negative"]) > 0)
        else:
            is_negative = is_negative | (integers(state[f"{accumulator.id}_n"]) < 0)
    return is_negative


def _keys(aggregate: Aggregate, groups: Wanted) -> list[pa.Array]:
    return [column.cast(field.type) for field, column in zip(aggregate.keys, groups.keys, strict=True)]


def _state_rows(aggregate: Aggregate, delta: Delta, before: Latest, state: State, holds: Bools) -> pa.RecordBatch:
    """New state rows of the groups that changed; a tombstone for a group that existed and now has no state."""
    trace = groups_trace(aggregate)
    columns = [state[name] for name in trace.payload]
    same = all_same([before.payload[name] for name in trace.payload], columns, len(delta))
    written = np.where(holds, ~(before.live & same), before.live)
    weight = pa.array(holds.astype(np.int64))
    whole = [pa.array(delta.groups.hashes), *delta.groups.keys, *columns, weight]
    return pa.RecordBatch.from_arrays(whole, schema=trace.schema).filter(pa.array(written))
