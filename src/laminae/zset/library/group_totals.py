"""Integer totals of many groups, kept in 64 bits as long as they provably fit and in wide integers beyond that.

The total is bounded by largest value * largest weight * rows, so the common case is one pass without any check.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from laminae.zset.wide_integers import LIMBS_OF_INT64_SUM, Int64s, WideInts, magnitude

_LIMIT = 1 << 63

_CHUNK = 1 << 15
"""Rows processed at a time: intermediate arrays stay in the CPU cache."""
_COUNT_BITS = 21
_COUNT_LIMIT = 1 << (_COUNT_BITS - 1)
_SUM_LIMIT = 1 << (63 - _COUNT_BITS)


class GroupTotals:
    """One total per group number, counted from 0; a group without additions has 0."""

    __slots__ = ("_beyond", "_bound", "_count", "_limbs", "_small")

    def __init__(self, limbs: int = LIMBS_OF_INT64_SUM) -> None:
        self._limbs = limbs
        self.reset()

    def reset(self) -> None:
        self._count = 0
        self._small = np.zeros(0, dtype=np.int64)
        self._bound = 0
        """Upper bound of the magnitude of every small total."""
        self._beyond: WideInts | None = None
        """Totals moved out of the small ones, and additions that did not fit there."""

    def __len__(self) -> int:
        return self._count

    def reserve(self, count: int) -> None:
        """Make room for at least this many groups."""
        if count > len(self._small):
            grown = np.zeros(max(count, 2 * len(self._small)), dtype=np.int64)
            grown[: len(self._small)] = self._small
            self._small = grown
        self._count = max(self._count, count)

    def add(self, groups: Int64s, values: Int64s, weights: Int64s | None) -> None:
        """Add values * weights, each to its group; None means weight 1 for every row."""
        self.reserve(group_count(groups))
        bound = magnitude(values) * (1 if weights is None else magnitude(weights)) * len(values)
        if bound >= _LIMIT:
            integers = WideInts.of_int64(values, self._limbs)
            self._add_beyond(groups, integers if weights is None else integers.times(weights))
            return
        self._make_room(bound)
        np.add.at(self._small, groups, values if weights is None else values * weights)

    def add_ones(self, groups: Int64s) -> None:
        """Add 1 for each row."""
        count = group_count(groups)
        self.reserve(count)
        self._make_room(len(groups))
        self._small[:count] += np.bincount(groups, minlength=count)

    def add_wide(self, groups: Int64s, integers: WideInts) -> None:
        self.reserve(group_count(groups))
        self._add_beyond(groups, integers)

    def merge(self, other: GroupTotals) -> None:
        self.reserve(len(other))
        self._make_room(other._bound)
        self._small[: len(other)] += other._small[: len(other)]
        if other._beyond is not None:
            self._keep_beyond(other._beyond)

    def totals(self) -> WideInts:
        totals = WideInts.of_int64(self._small[: self._count], self._limbs)
        return totals if self._beyond is None else totals + self._beyond_of(self._count)

    def _make_room(self, bound: int) -> None:
        if self._bound + bound >= _LIMIT:
            self._keep_beyond(WideInts.of_int64(self._small[: self._count], self._limbs))
            self._small[:] = 0
            self._bound = 0
        self._bound += bound

    def _add_beyond(self, groups: Int64s, integers: WideInts) -> None:
        self._keep_beyond(integers.sum_groups(groups, self._count))

    def _keep_beyond(self, more: WideInts) -> None:
        count = max(len(more), 0 if self._beyond is None else len(self._beyond))
        mine = self._beyond_of(count)
        self._beyond = mine + WideInts(_padded(more.limbs, count))

    def _beyond_of(self, count: int) -> WideInts:
        if self._beyond is None:
            return WideInts.zeros(count, self._limbs)
        return WideInts(_padded(self._beyond.limbs, count))


class SumsAndCounts:
    """The sum of the values and the sum of the weights of many groups.

    While both are small they share one integer, the count in the low bits and the sum in the high bits: one scattered
    addition instead of two, and scattering is most of the work (4.6 ns a row against 6.4 with 1,000 groups).
    """

    __slots__ = ("_bound", "_counts", "_packed", "_sums", "_weight")

    def __init__(self, limbs: int = LIMBS_OF_INT64_SUM) -> None:
        self._sums, self._counts = GroupTotals(limbs), GroupTotals()
        self.reset()

    def reset(self) -> None:
        self._sums.reset()
        self._counts.reset()
        self._packed = np.zeros(0, dtype=np.int64)
        self._weight = self._bound = 0
        """Upper bounds of the magnitude of every packed count and every packed sum."""

    def reserve(self, count: int) -> None:
        """Make room for at least this many groups."""
        self._counts.reserve(count)

    def add(self, groups: Int64s, values: Int64s, weights: Int64s | None) -> None:
        for begin in range(0, len(groups), _CHUNK):
            here = slice(begin, begin + _CHUNK)
            self._add_chunk(groups[here], values[here], None if weights is None else weights[here])

    def add_wide(self, groups: Int64s, integers: WideInts, weights: Int64s | None) -> None:
        """Add each integer unchanged to the sum of its group, and its weight to the count."""
        self._sums.add_wide(groups, integers)
        self.add_weights(groups, weights)

    def add_weights(self, groups: Int64s, weights: Int64s | None) -> None:
        if weights is None:
            self._counts.add_ones(groups)
        else:
            self._counts.add(groups, weights, None)

    def merge(self, other: SumsAndCounts) -> None:
        other._unpack()
        self._sums.merge(other._sums)
        self._counts.merge(other._counts)

    def totals(self) -> tuple[WideInts, WideInts]:
        """Sums and counts, for the same number of groups."""
        self._unpack()
        count = max(len(self._sums), len(self._counts))
        self._sums.reserve(count)
        self._counts.reserve(count)
        return self._sums.totals(), self._counts.totals()

    def _add_chunk(self, groups: Int64s, values: Int64s, weights: Int64s | None) -> None:
        count = group_count(groups)
        weight = len(groups) * (1 if weights is None else magnitude(weights))
        bound = magnitude(values) * weight
        if weight >= _COUNT_LIMIT or bound >= _SUM_LIMIT:
            self._sums.add(groups, values, weights)
            self.add_weights(groups, weights)
            return
        if self._weight + weight >= _COUNT_LIMIT or self._bound + bound >= _SUM_LIMIT:
            self._unpack()
        self._weight, self._bound = self._weight + weight, self._bound + bound
        if count > len(self._packed):
            self._packed = np.pad(self._packed, (0, max(count, 2 * len(self._packed)) - len(self._packed)))
        self._sums.reserve(count)
        packed = values << _COUNT_BITS
        packed += 1
        if weights is not None:
            packed *= weights
        np.add.at(self._packed, groups, packed)

    def _unpack(self) -> None:
        packed = self._packed[: len(self._sums)]
        places = np.flatnonzero(packed)
        unused = 64 - _COUNT_BITS
        counts = (packed[places] << unused) >> unused
        self._counts.add(places, counts, None)
        self._sums.add(places, (packed[places] - counts) >> _COUNT_BITS, None)
        self._packed[:] = 0
        self._weight = self._bound = 0


def group_count(groups: Int64s) -> int:
    """One more than the largest group number."""
    if not len(groups):
        return 0
    # Read as unsigned, a negative number is larger than any valid one: one pass finds the maximum and checks the sign.
    largest = int(groups.view(np.uint64).max())
    if largest >= _LIMIT:
        raise ValueError("group numbers count from 0")
    return largest + 1


def _padded(limbs: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    missing = count - limbs.shape[1]
    return limbs if missing <= 0 else np.pad(limbs, ((0, 0), (0, missing)))
