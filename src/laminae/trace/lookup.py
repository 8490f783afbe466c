"""Look up the keys of a delta in the runs of a trace: one vectorised binary search per run.

A hash only narrows the search; every returned row was compared on its key columns. Looking up sorted hashes is five
times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.spec import WEIGHT, TraceSpec
from laminae.zset.comparison import all_same, before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide_integers import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Rows to look up: hashes, key columns and (in a SUM trace) value columns, aligned by position."""

    hashes: Int64s
    keys: tuple[pa.Array, ...]
    values: tuple[pa.Array, ...] = ()

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, places: Int64s | Bools) -> Wanted:
        rows = pa.array(np.flatnonzero(places) if places.dtype == np.bool_ else places)
        keys, values = (tuple(column.take(rows) for column in columns) for columns in (self.keys, self.values))
        return Wanted(self.hashes[places], keys, values)


@dataclass(frozen=True, slots=True, eq=False)
class Latest:
    """For each wanted key: whether a row was found, whether it is live, and its payload by name (NULL if not found)."""

    found: Bools
    live: Bools
    payload: dict[str, pa.Array]

    def take(self, mask: Bools) -> Latest:
        """The results for the keys selected by the mask."""
        selected = pa.array(mask)
        return Latest(self.found[mask], self.live[mask], {k: v.filter(selected) for k, v in self.payload.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Matching rows of runs, not summed yet: `wanted[i]` is the index of the key that row i belongs to."""

    wanted: Int64s
    columns: dict[str, pa.Array]


def latest(spec: TraceSpec, runs: Sequence[Run], wanted: Wanted) -> Latest:
    """The newest row of each key of a REPLACE trace. Once found, a key is not looked up in older runs."""
    names = (*spec.payload, WEIGHT)
    left = np.arange(len(wanted))
    places: list[Int64s] = []
    parts: list[list[pa.Array]] = []
    for run in reversed(runs):
        if not len(left):
            break
        rest = wanted if len(left) == len(wanted) else wanted.take(left)
        indexes, rows = _rows_with_key(spec, run, rest)
        if not len(indexes):
            continue
        places.append(left[indexes])
        parts.append(run.take(spec, rows, names))
        is_left = np.ones(len(left), dtype=np.bool_)
        is_left[indexes] = False
        left = left[is_left]
    return _spread(spec, names, len(wanted), places, parts)


def matches(spec: TraceSpec, runs: Sequence[Run], wanted: Wanted, names: Sequence[str]) -> Matches:
    """Every row of these keys in every run, whatever its value."""
    places: list[Int64s] = [np.zeros(0, dtype=np.int64)]
    parts = [[pa.nulls(0, spec.schema.field(name).type) for name in names]]
    for run in runs:
        indexes, rows = _rows_with_key(spec, run, wanted)
        places.append(indexes)
        parts.append(run.take(spec, rows, names))
    joined = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
    return Matches(np.concatenate(places), dict(zip(names, joined, strict=True)))


def weights(spec: TraceSpec, runs: Sequence[Run], wanted: Wanted) -> Int64s:
    """The weight of each (key, value) in a SUM trace, 0 if it does not exist."""
    totals = np.zeros(len(wanted), dtype=np.int64)
    for run in runs:
        low, high = span_of(run, wanted.hashes)
        low = _first_not_before(spec, run, wanted.values, low, high)
        left = np.flatnonzero(low < high)
        while len(left):
            rows = low[left]
            columns = run.take(spec, rows, spec.identity)
            keys, values = columns[: len(spec.keys)], columns[len(spec.keys) :]
            here = wanted.take(left)
            same_value = all_same(values, here.values, len(left))
            same = same_value & all_same(keys, here.keys, len(left))
            totals[left[same]] += run.weights[rows[same]]
            # Another key with the same hash and value: the next row may be the wanted one.
            low[left] += 1
            left = left[same_value & ~same & (low[left] < high[left])]
    return totals


def span_of(run: Run, hashes: Int64s) -> tuple[Int64s, Int64s]:
    """The start and end position in the run of the rows with each hash."""
    low = np.searchsorted(run.hashes, hashes)
    near = np.minimum(low, len(run) - 1)
    is_there = run.hashes[near] == hashes
    high = low + is_there
    several = np.flatnonzero(is_there & (high < len(run)) & (run.hashes[np.minimum(high, len(run) - 1)] == hashes))
    if len(several):
        high[several] = np.searchsorted(run.hashes, hashes[several], side="right")
    return low, high


def expanded(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """Every (index, row) pair with low[index] <= row < high[index]."""
    sizes = high - low
    if not bool((sizes > 1).any()):
        indexes = np.flatnonzero(sizes)
        return indexes, low[indexes]
    indexes = np.repeat(np.arange(len(low)), sizes)
    within = np.arange(len(indexes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return indexes, low[indexes] + within


def _rows_with_key(spec: TraceSpec, run: Run, wanted: Wanted) -> tuple[Int64s, Int64s]:
    indexes, rows = expanded(*span_of(run, wanted.hashes))
    if not len(spec.keys):
        return indexes, rows
    keys = run.take(spec, rows, spec.keys)
    same = all_same(keys, [key.take(pa.array(indexes)) for key in wanted.keys], len(indexes))
    return (indexes, rows) if bool(same.all()) else (indexes[same], rows[same])


def _first_not_before(spec: TraceSpec, run: Run, values: tuple[pa.Array, ...], low: Int64s, high: Int64s) -> Int64s:
    """Binary search in each span for the first row whose value is not smaller than the wanted one."""
    low, high = low.copy(), high.copy()
    while len(open_spans := np.flatnonzero(low < high)):
        middle = (low[open_spans] + high[open_spans]) // 2
        stored = run.take(spec, middle, spec.values)
        wanted = [value.take(pa.array(open_spans)) for value in values]
        less = before(stored, wanted, len(open_spans))
        low[open_spans[less]] = middle[less] + 1
        high[open_spans[~less]] = middle[~less]
    return low


def _spread(
    spec: TraceSpec, names: Sequence[str], count: int, places: list[Int64s], parts: list[list[pa.Array]]
) -> Latest:
    is_found = np.zeros(count, dtype=np.bool_)
    if not parts:
        return Latest(
            is_found, is_found, {name: pa.nulls(count, spec.schema.field(name).type) for name in spec.payload}
        )
    at = np.concatenate(places)
    source = np.zeros(count, dtype=np.int64)
    source[at], is_found[at] = np.arange(len(at)), True
    rows = pa.array(source, mask=None if bool(is_found.all()) else ~is_found)
    columns = [pa.concat_arrays(column).take(rows) for column in zip(*parts, strict=True)]
    live = np.asarray(columns.pop().fill_null(0)) != 0
    return Latest(is_found, live, dict(zip(spec.payload, columns, strict=True)))
