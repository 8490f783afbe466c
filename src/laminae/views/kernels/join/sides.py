"""The rows of one side of a join: what its trace stores, which of them an epoch changes, and those of given keys.

A row is visible as often as its weight says, and not at all while the weight is negative (a delete before its insert).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import clusters
from laminae.trace.combine import combined, rows_of
from laminae.trace.lookup import Wanted, matches, span_of
from laminae.trace.spec import HASH, WEIGHT, TraceSpec
from laminae.views.operators import ADDED
from laminae.zset.comparison import all_same, integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide_integers import Bools, Int64s

ROW = "_row"
"""The hash of a row's columns in canonical types. It orders the rows of a key, so that one of them is found quickly."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinSide:
    """`keys` have the common canonical types of both sides, under the same names; `columns` are those of the rows."""

    name: str
    keys: tuple[pa.Field, ...]
    columns: tuple[pa.Field, ...]

    @property
    def input(self) -> tuple[str, ...]:
        """The columns of its changes."""
        return (HASH, *(field.name for field in self.keys), ROW, *self.names, WEIGHT)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.columns)

    def trace(self) -> TraceSpec:
        # The hash of a row skips NULLs, so that a column added later, which older runs lack, changes no hash.
        spec = TraceSpec.sum(self.name, self.keys, (pa.field(ROW, pa.int64()), *self.columns))
        return replace(spec, late=tuple(name for name in self.names if name.startswith(ADDED)))


@dataclass(frozen=True, slots=True, eq=False)
class SideRows:
    """Rows with their visible weight, or the change of it, and the number of the key that each belongs to."""

    groups: Int64s
    columns: tuple[pa.Array, ...]
    weights: Int64s

    def __len__(self) -> int:
        return len(self.groups)

    def where(self, mask: Bools) -> SideRows:
        if bool(mask.all()):
            return self
        places = np.flatnonzero(mask)
        return SideRows(self.groups[places], self.taken(places), self.weights[places])

    def taken(self, places: Int64s) -> tuple[pa.Array, ...]:
        rows = pa.array(places)
        return tuple(column.take(rows) for column in self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class SideChange:
    """The net changes of a side in an epoch, sorted as its trace is, with the weight of each row before."""

    rows: pa.RecordBatch
    before: Int64s

    @property
    def weights(self) -> Int64s:
        return integers(self.rows.column(WEIGHT))

    @property
    def visible(self) -> Int64s:
        """By how much the visible weight of each row changes."""
        change: Int64s = np.maximum(self.before + self.weights, 0) - np.maximum(self.before, 0)
        return change

    def anomalies(self) -> tuple[int, int]:
        """How many rows got a negative weight, and how many of those that had one recovered."""
        was, now = self.before < 0, self.before + self.weights < 0
        return int(np.count_nonzero(now & ~was)), int(np.count_nonzero(was & ~now))


def side_change(side: JoinSide, runs: Sequence[Run], delta: pa.Table, keep: Bools | None = None) -> SideChange:
    """The changes of a side. `keep` selects the rows of the delta that matter to the join."""
    spec = side.trace()
    rows = rows_of(spec, delta)
    if keep is not None:
        rows = rows.filter(pa.array(keep))
    rows = combined(spec, [rows], is_oldest=True)
    return SideChange(rows, _weights(spec, runs, rows))


def visible_rows(side: JoinSide, batch: pa.RecordBatch, groups: Int64s, weights: Int64s) -> SideRows:
    columns = tuple(batch.column(name) for name in side.names)
    return SideRows(groups, columns, weights).where(weights != 0)


def stored_rows(side: JoinSide, runs: Sequence[Run], wanted: Wanted, groups: Int64s) -> SideRows:
    """The visible rows of these keys; `groups` are the numbers of the keys."""
    spec = side.trace()
    names = (ROW, *side.names, WEIGHT)
    found = matches(spec, runs, wanted, names)
    numbers, columns = groups[found.wanted], [found.columns[name] for name in side.names]
    equal = clusters(integers(found.columns[ROW]), [pa.array(numbers), *columns])
    weights = integers(found.columns[WEIGHT])[equal.order]
    if not equal.are_single:
        weights = np.add.reduceat(weights, equal.starts)
    firsts = pa.array(equal.firsts)
    rows = SideRows(numbers[equal.firsts], tuple(column.take(firsts) for column in columns), np.maximum(weights, 0))
    return rows.where(rows.weights != 0)


def _weights(spec: TraceSpec, runs: Sequence[Run], rows: pa.RecordBatch) -> Int64s:
    """The stored weight of each row, 0 if it does not exist."""
    totals = np.zeros(rows.num_rows, dtype=np.int64)
    hashes, ids = integers(rows.column(HASH)), integers(rows.column(ROW))
    identity = [rows.column(name) for name in spec.identity]
    for run in runs:
        stored = integers(run.batch.column(ROW))
        low, high = span_of(run, hashes)
        low = _first(stored, ids, low, high)
        left = np.flatnonzero(low < high)
        left = left[stored[low[left]] == ids[left]]
        while len(left):
            places, mine = low[left], pa.array(left)
            columns = run.take(spec, places, spec.identity)
            same = all_same(columns, [column.take(mine) for column in identity], len(left))
            totals[left[same]] += run.weights[places[same]]
            # Another row with the same hash: the next one may be the wanted one.
            low[left] += 1
            left = left[~same & (low[left] < high[left])]
            left = left[stored[low[left]] == ids[left]]
    return totals


def _first(stored: Int64s, ids: Int64s, low: Int64s, high: Int64s) -> Int64s:
    """Binary search in each span for the first stored id that is not smaller than the wanted one."""
    low, high = low.copy(), high.copy()
    while len(open_spans := np.flatnonzero(low < high)):
        middle = (low[open_spans] + high[open_spans]) // 2
        less = stored[middle] < ids[open_spans]
        low[open_spans[less]] = middle[less] + 1
        high[open_spans[~less]] = middle[~less]
    return low
