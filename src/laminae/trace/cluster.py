"""Group rows by identity: sorted by hash, then value, then arrival. Hash collisions are resolved by the key columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.zset.comparison import all_same, codes, ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide_integers import Bools, Int64s

_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The sorted order of the rows, and where in it each cluster of equal rows begins."""

    order: Int64s
    starts: Int64s

    @property
    def firsts(self) -> Int64s:
        """The row of each cluster that arrived first."""
        return self.order[self.starts]

    @property
    def lasts(self) -> Int64s:
        return self.order[np.append(self.starts[1:], len(self.order)) - 1] if len(self.starts) else self.starts

    @property
    def are_single(self) -> bool:
        return len(self.starts) == len(self.order)

    def members(self) -> Int64s:
        """The cluster number of each row."""
        numbers = np.empty(len(self.order), dtype=np.int64)
        sizes = np.diff(np.append(self.starts, len(self.order)))
        numbers[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return numbers


def clusters(hashes: Int64s, keys: Sequence[pa.Array], values: Sequence[pa.Array] = ()) -> Clusters:
    """Clusters of rows with equal keys and values. Different keys with the same hash are separated by their columns."""
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
    """Sort each cluster by more columns and split it where they change; equal rows stay in order of arrival."""
    for column in columns:
        number, level = np.cumsum(is_new), column[order]
        low = int(level.min(initial=0))
        span = int(level.max(initial=0)) - low + 1
        # Sorting one combined column is four times as fast as sorting by two (0.15 against 0.57 s for 1.5M rows).
        if span * len(order) < _LIMIT:
            place = number * span + (level - low)
            if not bool((place[1:] >= place[:-1]).all()):
                order = order[np.argsort(place, kind="stable")]
        else:
            order = order[np.lexsort((level, number))]
        # Clusters keep their positions and sizes, so `is_new` still marks where they begin.
        is_new = is_new | _changes(column[order])
    return order, is_new


def _changes(sorted_column: Int64s) -> Bools:
    is_change = np.ones(len(sorted_column), dtype=np.bool_)
    np.not_equal(sorted_column[1:], sorted_column[:-1], out=is_change[1:])
    return is_change


def _same_keys(keys: Sequence[pa.Array], left: Int64s, right: Int64s) -> Bools:
    a, b = pa.array(left), pa.array(right)
    return all_same([key.take(a) for key in keys], [key.take(b) for key in keys], len(left))
