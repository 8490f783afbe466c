"""Add a delta to accumulators: one function per kind of accumulator, vectorised over all groups.

Each returns the new columns of the group rows and, for accumulators with a separate trace, its new runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa

from laminae.errors import AggregateOverflow
from laminae.trace.compaction import append
from laminae.trace.lookup import matches
from laminae.views.kernels.group_by.aggregates import (
    HIGH,
    Accumulator,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    IntegerTotal,
    Tally,
    ValueSet,
    key_text,
    state_fields,
    values_trace,
)
from laminae.views.kernels.group_by.value_sets import value_set_after
from laminae.zset.comparison import integers
from laminae.zset.exact_float import FloatSums
from laminae.zset.wide_conversion import of_columns, of_parts, to_columns
from laminae.zset.wide_integers import WideInts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.lookup import Wanted
    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec
    from laminae.views.kernels.group_by.delta import Delta, Slot
    from laminae.zset.wide_integers import Bools, Int64s

State = dict[str, pa.Array]


@dataclass(frozen=True, slots=True, eq=False)
class Accumulated:
    """New columns of the group rows, which groups still have state, and the runs of the accumulator's own trace."""

    columns: State
    holds: Bools
    runs: tuple[RunEntry, ...] = field(default=())


def accumulated(aggregate: Aggregate, slot: Slot) -> Accumulated:
    """The state of the accumulator in this slot after the delta."""
    accumulator, old, delta = aggregate.accumulators[slot.number - 1], slot.old, slot.delta
    match accumulator:
        case Tally():
            count = _count(accumulator, old, delta)
            return Accumulated({f"{accumulator.id}_n": pa.array(count)}, count != 0)
        case IntegerTotal():
            low, high = (delta.sums(f"{accumulator.id}_{half}") for half in ("lo", "hi"))
            return _total(accumulator, old, delta, _joined_halves(low, high))
        case DecimalTotal():
            _check_partial_sums(aggregate, accumulator, delta)
            return _total(accumulator, old, delta, _decimal_change(accumulator, delta))
        case FloatTotal():
            return _float_total(accumulator, values_trace(aggregate, accumulator), slot)
        case ValueSet():
            after = value_set_after(accumulator, values_trace(aggregate, accumulator), slot)
            holds = (integers(after.columns[f"{accumulator.id}_distinct"]) != 0) | after.has_negative
            return Accumulated(after.columns, holds, after.runs)
        case _:
            assert_never(accumulator)


def _count(found: Accumulator, old: Mapping[str, pa.Array], delta: Delta) -> Int64s:
    return integers(old[f"{found.id}_n"]) + delta.sums(f"{found.id}_n")


def _total(
    found: IntegerTotal | DecimalTotal, old: Mapping[str, pa.Array], delta: Delta, change: WideInts
) -> Accumulated:
    names = [column.name for column in state_fields(found)]
    total = of_columns([integers(old[name]) for name in names[1:]]) + change
    count = _count(found, old, delta)
    columns = dict(zip(names, [pa.array(count), *to_columns(total)], strict=True))
    return Accumulated(columns, (count != 0) | ~total.is_zero())


def _decimal_change(found: DecimalTotal, delta: Delta) -> WideInts:
    change = delta.decimal_sums(f"{found.id}_sum")
    if f"{found.id}_high" not in delta.table.column_names:
        return change
    # Two multiplications, because a factor must fit 64 bits.
    half = np.full(len(delta), 10 ** (HIGH // 2), dtype=np.int64)
    return change + delta.decimal_sums(f"{found.id}_high").times(half).times(half)


def _check_partial_sums(aggregate: Aggregate, found: DecimalTotal, delta: Delta) -> None:
    """Spark's SUM of decimals is NULL when it needs more than 38 digits; treating that as 0 would be a silent error."""
    sums, counts = delta.column(f"{found.id}_sum"), integers(delta.column(f"{found.id}_n"))
    lost = np.flatnonzero(np.asarray(sums.is_null()) & (counts != 0))
    if len(lost):
        raise AggregateOverflow(
            view=aggregate.view,
            aggregate=f"a sum of {found.id}",
            key=key_text(aggregate, delta.groups, int(delta.members[lost[0]])),
            value="longer than 38 digits within one epoch",
            type=sums.type,
        )


def _joined_halves(low: Int64s, high: Int64s) -> WideInts:
    """high * 2**32 + low by shifts: `of_parts` multiplies, which took a fifth of an epoch with 46,000 groups."""
    upper = np.stack([(high << 32).view(np.uint64), (high >> 32).view(np.uint64)])
    return WideInts(upper) + WideInts.of_int64(low)


def _float_total(found: FloatTotal, trace: TraceSpec, slot: Slot) -> Accumulated:
    """Read and round the bins of the changed groups only; the other groups keep their rounded sum."""
    delta, runs = slot.delta, slot.runs
    count = _count(found, slot.old, delta)
    names = (*trace.values, *trace.payload)
    members, columns, weights = delta.valued(slot.number, names)
    if len(members):
        runs = append(slot.store, trace, runs, _bin_rows(trace, delta.groups, members, columns, weights))
    touched = np.unique(np.concatenate([members, np.flatnonzero(count == 0)]))
    stored = matches(trace, [slot.store.open(run) for run in runs], delta.groups.take(touched), names)
    sums = _float_sums(stored.wanted, [stored.columns[name] for name in names])
    total = np.array(slot.old[f"{found.id}_sum"].fill_null(0.0))
    total[touched] = sums.finalize(len(touched))
    holds = count != 0
    holds[touched[sums.groups]] = True
    return Accumulated({f"{found.id}_n": pa.array(count), f"{found.id}_sum": pa.array(total)}, holds, runs)


def _bin_rows(
    trace: TraceSpec, groups: Wanted, members: Int64s, columns: Sequence[pa.Array], weights: Int64s
) -> pa.RecordBatch:
    """Parts are stored without carrying: after a carry, a later retraction would not bring each part back to zero."""
    owner = groups.take(members)
    rows = [pa.array(owner.hashes), *owner.keys, *(column.cast(pa.int64()) for column in columns), pa.array(weights)]
    return pa.RecordBatch.from_arrays(rows, schema=trace.schema)


def _float_sums(groups: Int64s, columns: Sequence[pa.Array]) -> FloatSums:
    bins, *parts = [integers(column) for column in columns]
    return FloatSums.of_rows(groups, bins, of_parts(parts))
