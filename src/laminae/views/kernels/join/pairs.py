"""Pairs of rows with equal keys, in slices of bounded size, and how many partners each row has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.views.operators import MIRRORED
from laminae.zset.comparison import before, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.views.kernels.join.sides import SideRows
    from laminae.zset.wide_integers import Bools, Int64s

    Residual = Sequence[tuple[int, str, int]]
    """(place of the left column, sign, place of the right column) of each comparison."""


def pair_slices(left: SideRows, right: SideRows, residual: Residual, limit: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Places of the left and right row of each pair that the residual conditions accept.

    Memory follows `limit`, not the number of pairs: the pairs of one key may be in several slices.
    """
    if not len(left) or not len(right):
        return
    order = np.argsort(right.groups, kind="stable")
    ordered = right.groups[order]
    low = np.searchsorted(ordered, left.groups)
    sizes = np.searchsorted(ordered, left.groups, side="right") - low
    ends = np.cumsum(sizes)
    for begin in range(0, int(ends[-1]), limit):
        numbers = np.arange(begin, min(begin + limit, int(ends[-1])))
        rows = np.searchsorted(ends, numbers, side="right")
        partners = order[low[rows] + numbers - (ends[rows] - sizes[rows])]
        if residual:
            accepted = _accepted(left, rows, right, partners, residual)
            rows, partners = rows[accepted], partners[accepted]
        yield rows, partners


def partner_counts(rows: SideRows, others: SideRows, residual: Residual, limit: int) -> Int64s:
    """The sum of the weights of each row's partners."""
    counts = np.zeros(len(rows), dtype=np.int64)
    for places, partners in pair_slices(rows, others, residual, limit):
        np.add.at(counts, places, others.weights[partners])
    return counts


def mirrored(residual: Residual) -> Residual:
    """The same conditions with the sides exchanged."""
    return [(right, MIRRORED[sign], left) for left, sign, right in residual]


def _accepted(left: SideRows, rows: Int64s, right: SideRows, partners: Int64s, residual: Residual) -> Bools:
    accepted = np.ones(len(rows), dtype=np.bool_)
    for one, sign, other in residual:
        a, b = left.columns[one].take(pa.array(rows)), right.columns[other].take(pa.array(partners))
        accepted &= _compared(a, sign, b)
    return accepted


def _compared(a: pa.Array, sign: str, b: pa.Array) -> Bools:
    """Row by row: does the comparison hold? A comparison with NULL does not, but for `<=>`."""
    if sign == "<=>":
        return same(a, b)
    valid = np.asarray(a.is_valid()) & np.asarray(b.is_valid())
    if not bool(valid.all()):
        holds = np.zeros(len(a), dtype=np.bool_)
        known = pa.array(np.flatnonzero(valid))
        holds[valid] = _compared(a.take(known), sign, b.take(known))
        return holds
    match sign:
        case "=":
            return same(a, b)
        case "<>":
            return ~same(a, b)
        case "<":
            return before([a], [b], len(a))
        case ">":
            return before([b], [a], len(a))
        case "<=":
            return ~before([b], [a], len(a))
        case ">=":
            return ~before([a], [b], len(a))
    raise AssertionError(f"a join compares by {sign}")
