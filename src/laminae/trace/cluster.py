"""Bring rows of one identity together: sorted by hash, then value, then arrival, and never trusting the hash alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.values import all_same, codes, ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide import Bools, Int64s

_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Rows in sorted order, and where in it each cluster of equal rows begins."""

    order: Int64s
    starts: Int64s

    @property
    def firsts(self) -> Int64s:
        """The row that came first in each cluster."""
        return self.order[self.starts]

    @property
    def lasts(self) -> Int64s:
        return self.order[np.append(self.starts[1:], len(self.order)) - 1] if len(self.starts) else self.starts

    @property
    def are_single(self) -> bool:
        return len(self.starts) == len(self.order)

    def members(self) -> Int64s:
        """The cluster number of each row."""
        found = np.empty(len(self.order), dtype=np.int64)
        sizes = np.diff(np.append(self.starts, len(self.order)))
        found[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return found


def clusters(hashes: Int64s, keys: Sequence[pa.Array], values: Sequence[pa.Array] = ()) -> Clusters:
    """Rows with equal keys and values. Keys with one hash are told apart by their columns."""
    order = _sorted_by(hashes)
    is_new = _changes(hashes[order])
    if values and not bool(is_new.all()):
        order, is_new = _sorted_within(order, is_new, [level for column in values for level in ranks(column)])
    tied = np.flatnonzero(~is_new)
    if len(tied) and not bool(_same_keys(keys, order[tied - 1], order[tied]).all()):
        order, is_new = _sorted_within(order, is_new, [codes(keys, len(hashes))])
    return Clusters(order, np.flatnonzero(is_new))


def _sorted_by(hashes: Int64s) -> Int64s:
    if bool((hashes[1:] >= hashes[:-1]).all()):
        return np.arange(len(hashes))
    return np.argsort(hashes, kind="stable")


def _sorted_within(order: Int64s, is_new: Bools, columns: Sequence[Int64s]) -> tuple[Int64s, Bools]:
    """Each cluster sorted further and split where a column changes; arrival still decides among equals."""
    for column in columns:
        number, level = np.cumsum(is_new), column[order]
        low = int(level.min(initial=0))
        span = int(level.max(initial=0)) - low + 1
        # One sort of one column is four times as fast as a sort by two (0.15 against 0.57 s for 1.5M rows).
        if span * len(order) < _LIMIT:
            place = number * span + (level - low)
            if not bool((place[1:] >= place[:-1]).all()):
                order = order[np.argsort(place, kind="stable")]
        else:
            order = order[np.lexsort((level, number))]
        # Clusters keep their places and sizes, so `is_new` still marks where they begin.
        is_new = is_new | _changes(column[order])
    return order, is_new


def _changes(sorted_column: Int64s) -> Bools:
    found = np.ones(len(sorted_column), dtype=np.bool_)
    np.not_equal(sorted_column[1:], sorted_column[:-1], out=found[1:])
    return found


def _same_keys(keys: Sequence[pa.Array], left: Int64s, right: Int64s) -> Bools:
    a, b = pa.array(left), pa.array(right)
    return all_same([key.take(a) for key in keys], [key.take(b) for key in keys], len(left))
