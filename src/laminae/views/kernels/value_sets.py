"""MIN, MAX and COUNT(DISTINCT): values with weights in a trace of their own, the answers cached in the group's row.

A group's values are read again only when its present extremum goes away and the delta brings no better one.
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
from laminae.trace.values import before, gathered, integers, same

if TYPE_CHECKING:
    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.aggregates import ValueSet
    from laminae.views.kernels.delta import Delta, Slot
    from laminae.zset.wide import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetAfter:
    columns: dict[str, pa.Array]
    has_negative: Bools
    runs: tuple[RunEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """The values of a delta, each once per group, sorted by group and value: weights before and after."""

    members: Int64s
    values: pa.Array
    old: Int64s
    new: Int64s

    @property
    def gone(self) -> Bools:
        return (self.old > 0) & (self.new <= 0)


def value_set_after(kept: ValueSet, trace: TraceSpec, slot: Slot) -> ValueSetAfter:
    """The columns of every group of the delta, and the trace with the delta's values added."""
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
            # Values without an extremum: it was not kept when they came, MAX(x) say has been added beside MIN(x).
            is_unknown = np.asarray(old[name].is_null()) & (integers(old[f"{kept.id}_distinct"]) > 0)
            columns[name] = _extreme(trace, old[name], is_unknown, slot, changed, largest=end == "max")
    return ValueSetAfter(columns, negative != 0, slot.runs)


def _changed(trace: TraceSpec, slot: Slot) -> Changed:
    members, columns, change = slot.delta.valued(slot.number, trace.values)
    value = gathered(columns[0] if columns else pa.nulls(0), trace.schema.field(trace.values[0]).type)
    if value.null_count:
        seen = np.asarray(value.is_valid())
        members, value, change = members[seen], value.drop_null(), change[seen]
    found = clusters(members, (), (value,))
    if not found.are_single:
        change = np.add.reduceat(change[found.order], found.starts)
    else:
        change = change[found.order]
    members, value = members[found.firsts], value.take(pa.array(found.firsts))
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
    """The cached extremum, a better one from the delta, or (when it is gone or unknown) the best of what is left."""
    delta = slot.delta
    best = _best(delta, changed, largest=largest)
    is_better = _is_better(best, cached, largest=largest)
    is_lost = np.zeros(len(delta), dtype=np.bool_)
    gone = np.flatnonzero(changed.gone)
    at = changed.members[gone]
    is_lost[at[same(changed.values.take(pa.array(gone)), cached.take(pa.array(at)))]] = True
    result = pc.if_else(pa.array(is_better), best, cached)
    asked = np.flatnonzero((is_lost & ~is_better) | is_unknown)
    if not len(asked):
        return result
    found = extremes(trace, [slot.store.open(run) for run in slot.runs], delta.groups.take(asked), largest=largest)
    source = np.arange(len(delta))
    source[asked] = len(delta) + np.arange(len(asked))
    return pa.concat_arrays([result, found]).take(pa.array(source))


def _best(delta: Delta, changed: Changed, *, largest: bool) -> pa.Array:
    """The extreme value of the delta that is there now, NULL for groups without one."""
    source = np.full(len(delta), -1, dtype=np.int64)
    there = np.flatnonzero(changed.new > 0)
    # Sorted by value within a group: of several writes to one place the last one stays.
    there = there if largest else there[::-1]
    source[changed.members[there]] = there
    return changed.values.take(pa.array(source, mask=source < 0))


def _is_better(best: pa.Array, cached: pa.Array, *, largest: bool) -> Bools:
    has_best, has_cached = np.asarray(best.is_valid()), np.asarray(cached.is_valid())
    left, right = (cached, best) if largest else (best, cached)
    return has_best & (~has_cached | before([left], [right], len(best)))


def _positive(weight: Int64s) -> Int64s:
    return (weight > 0).astype(np.int64)


def _summed(delta: Delta, changed: Changed, steps: Int64s) -> Int64s:
    found = np.zeros(len(delta), dtype=np.int64)
    np.add.at(found, changed.members, steps)
    return found
