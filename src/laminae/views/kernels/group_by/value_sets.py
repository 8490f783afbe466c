"""MIN, MAX and COUNT(DISTINCT): values with weights in a separate trace, the results cached in the group's row.

The values of a group are read again only when its current extremum is retracted and the delta holds no better one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.cluster import clusters
from laminae.trace.compaction import append
from laminae.trace.extremes import extremes
from laminae.trace.lookup import Wanted, weights
from laminae.zset.comparison import before, gathered, integers, same

if TYPE_CHECKING:
    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.group_by.aggregates import ValueSet
    from laminae.views.kernels.group_by.delta import Delta, Slot
    from laminae.zset.wide_integers import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetAfter:
    columns: dict[str, pa.Array]
    has_negative: Bools
    runs: tuple[RunEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """The distinct values of a delta per group, sorted by group and value, with their weights before and after."""

    members: Int64s
    values: pa.Array
    old: Int64s
    new: Int64s

    @property
    def gone(self) -> Bools:
        return (self.old > 0) & (self.new <= 0)


def value_set_after(kept: ValueSet, trace: TraceSpec, slot: Slot) -> ValueSetAfter:
    """The new columns for every group of the delta, and the trace with the delta's values added."""
    old, delta = slot.old, slot.delta
    changed = _changed(trace, slot)
    slot = replace(slot, runs=append(slot.store, trace, slot.runs, _rows(trace, delta.groups, changed)))
    distinct = integers(old[f"{kept.id}_distinct"]) + _summed(
        delta, changed, _positive(changed.new) - _positive(changed.old)
    )
    negative = integers(old[f"{kept.id}_negative"]) + _summed(
        delta, changed, _positive(-changed.new) - _positive(-changed.old)
    )
    columns = {f"{kept.id}_distinct": pa.array(distinct), f"{kept.id}_negative": pa.array(negative)}
    for end, keeps in (("min", kept.keeps_min), ("max", kept.keeps_max)):
        if keeps:
            name = f"{kept.id}_{end}"
            # A group with values but no cached extremum: MAX(x), say, was added to a view that already had MIN(x).
            is_unknown = np.asarray(old[name].is_null()) & (integers(old[f"{kept.id}_distinct"]) > 0)
            columns[name] = _extreme(trace, old[name], is_unknown, slot, changed, largest=end == "max")
    return ValueSetAfter(columns, negative != 0, slot.runs)


def _changed(trace: TraceSpec, slot: Slot) -> Changed:
    members, columns, change = slot.delta.valued(slot.number, trace.values)
    value = gathered(columns[0] if columns else pa.nulls(0), trace.schema.field(trace.values[0]).type)
    if value.null_count:
        seen = np.asarray(value.is_valid())
        members, value, change = members[seen], value.drop_null(), change[seen]
    by_value = clusters(members, (), (value,))
    if not by_value.are_single:
        change = np.add.reduceat(change[by_value.order], by_value.starts)
    else:
        change = change[by_value.order]
    members, value = members[by_value.firsts], value.take(pa.array(by_value.firsts))
    owner = slot.delta.groups.take(members)
    wanted = Wanted(owner.hashes, owner.keys, (value,))
    stored = weights(trace, [slot.store.open(run) for run in slot.runs], wanted)
    return Changed(members, value, stored, stored + change)


def _rows(trace: TraceSpec, groups: Wanted, changed: Changed) -> pa.RecordBatch:
    owner = groups.take(changed.members)
    columns = [pa.array(owner.hashes), *owner.keys, changed.values, pa.array(changed.new - changed.old)]
    return pa.RecordBatch.from_arrays(columns, schema=trace.schema)


def _extreme(
    trace: TraceSpec, cached: pa.Array, is_unknown: Bools, slot: Slot, changed: Changed, *, largest: bool
) -> pa.Array:
    """The cached extremum, a better one from the delta, or (when it is gone or unknown) the best remaining value."""
    delta = slot.delta
    best = _best(delta, changed, largest=largest)
    is_better = _is_better(best, cached, largest=largest)
    is_lost = np.zeros(len(delta), dtype=np.bool_)
    gone = np.flatnonzero(changed.gone)
    at = changed.members[gone]
    is_lost[at[same(changed.values.take(pa.array(gone)), cached.take(pa.array(at)))]] = True
    result = pc.if_else(pa.array(is_better), best, cached)
    stale = np.flatnonzero((is_lost & ~is_better) | is_unknown)
    if not len(stale):
        return result
    stored_extremes = extremes(
        trace, [slot.store.open(run) for run in slot.runs], delta.groups.take(stale), largest=largest
    )
    source = np.arange(len(delta))
    source[stale] = len(delta) + np.arange(len(stale))
    return pa.concat_arrays([result, stored_extremes]).take(pa.array(source))


def _best(delta: Delta, changed: Changed, *, largest: bool) -> pa.Array:
    """The extreme value of the delta with a positive weight, NULL for groups without one."""
    source = np.full(len(delta), -1, dtype=np.int64)
    present = np.flatnonzero(changed.new > 0)
    # Values are sorted within a group: of several writes to one index, numpy keeps the last.
    present = present if largest else present[::-1]
    source[changed.members[present]] = present
    return changed.values.take(pa.array(source, mask=source < 0))


def _is_better(best: pa.Array, cached: pa.Array, *, largest: bool) -> Bools:
    has_best, has_cached = np.asarray(best.is_valid()), np.asarray(cached.is_valid())
    left, right = (cached, best) if largest else (best, cached)
    return has_best & (~has_cached | before([left], [right], len(best)))


def _positive(weight: Int64s) -> Int64s:
    return (weight > 0).astype(np.int64)


def _summed(delta: Delta, changed: Changed, steps: Int64s) -> Int64s:
    sums = np.zeros(len(delta), dtype=np.int64)
    np.add.at(sums, changed.members, steps)
    return sums
