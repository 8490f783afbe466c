"""The smallest and largest values of keys in a SUM trace, without reading whole groups.

Runs are sorted by value within a hash, so a few rows from one end of each run nearly always contain the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.lookup import expanded, span_of
from laminae.zset.comparison import all_same, rank_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.lookup import Wanted
    from laminae.trace.run import Run
    from laminae.trace.spec import TraceSpec
    from laminae.zset.wide_integers import Bools, Int64s

FIRST_LOOK, GROWTH = 16, 16
"""Rows read from each run in the first attempt, and the factor by which it grows for groups without a certain result.
"""


def extremes(spec: TraceSpec, runs: Sequence[Run], wanted: Wanted, *, largest: bool) -> pa.Array:
    """For each key the smallest (or largest) value with a positive weight, NULL if there is none."""
    result = pa.nulls(len(wanted), spec.schema.field(spec.values[0]).type)
    left, look = np.arange(len(wanted)), FIRST_LOOK
    while len(left):
        answers, is_sure = _attempt(spec, runs, wanted.take(left), look, largest=largest)
        source = np.arange(len(result))
        source[left[is_sure]] = len(result) + np.flatnonzero(is_sure)
        result = pa.concat_arrays([result, answers]).take(pa.array(source))
        left, look = left[~is_sure], look * GROWTH
    return result


def _attempt(
    spec: TraceSpec, runs: Sequence[Run], wanted: Wanted, look: int, *, largest: bool
) -> tuple[pa.Array, Bools]:
    """Results from the outermost rows of each run, and which of them are certain, whatever rows lie further inside."""
    asked: list[Int64s] = [np.zeros(0, dtype=np.int64)]
    is_bound: list[Bools] = [np.zeros(0, dtype=np.bool_)]
    weight: list[Int64s] = [np.zeros(0, dtype=np.int64)]
    values: list[pa.Array] = [pa.nulls(0, spec.schema.field(spec.values[0]).type)]
    for run in runs:
        low, high = span_of(run, wanted.hashes)
        is_cut = high - low > look
        low, high = (np.maximum(low, high - look), high) if largest else (low, np.minimum(high, low + look))
        here, rows = expanded(low, high)
        if not len(here):
            continue
        columns = run.take(spec, rows, spec.identity)
        own = all_same(columns[:-1], [key.take(pa.array(here)) for key in wanted.keys], len(here))
        innermost = np.where(is_cut, low if largest else high - 1, -1)
        asked.append(here)
        values.append(columns[-1])
        weight.append(np.where(own, run.weights[rows], 0))
        is_bound.append(rows == innermost[here])
    column = pa.concat_arrays(values)
    order = rank_of(column)
    if largest:
        order = ~order
    return _answers(len(wanted), np.concatenate(asked), column, order, np.concatenate(weight), np.concatenate(is_bound))


def _answers(
    count: int, asked: Int64s, values: pa.Array, order: Int64s, weight: Int64s, is_bound: Bools
) -> tuple[pa.Array, Bools]:
    """Rows beyond the innermost row of a truncated span are unknown: only values before all such rows are certain."""
    horizon, is_cut = np.full(count, np.iinfo(np.int64).max), np.zeros(count, dtype=np.bool_)
    np.minimum.at(horizon, asked[is_bound], order[is_bound])
    is_cut[asked[is_bound]] = True
    by = np.lexsort((order, asked))
    asked, order, weight = asked[by], order[by], weight[by]
    is_first = np.ones(len(asked), dtype=np.bool_)
    is_first[1:] = (asked[1:] != asked[:-1]) | (order[1:] != order[:-1])
    starts = np.flatnonzero(is_first)
    totals = np.add.reduceat(weight, starts) if len(starts) else weight
    group, place = asked[starts], order[starts]
    chosen = np.flatnonzero((totals > 0) & ((place < horizon[group]) | ~is_cut[group]))
    groups, first = np.unique(group[chosen], return_index=True)
    source = np.full(count, -1, dtype=np.int64)
    source[groups] = by[starts[chosen[first]]]
    has_answer = source >= 0
    return values.take(pa.array(source, mask=~has_answer)), has_answer | ~is_cut
