"""Columns of integers wider than 64 bits: exact sums and products for many groups at once, in numpy.

Two's complement in 64-bit limbs, so an intermediate overflow that is reversed later does no harm. Conversions are in
`wide_conversion.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
"""Codes of operations (`CdcOperation.code`) or of outcomes."""

LIMBS_OF_INT64_SUM = 2
"""128 bits: sums of 64-bit values are exact while the sum of their absolute weights is below 2**64."""
LIMBS_OF_DECIMAL_SUM = 3
"""192 bits: two values of DECIMAL(38) already exceed 128, and a wrapped sum could look as if it fitted."""

_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_INT64_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, eq=False)
class WideInts:
    """A column of signed integers; `limbs` has one row per 64 bits, the least significant first."""

    limbs: UInt64s

    @classmethod
    def zeros(cls, count: int, limbs: int = LIMBS_OF_INT64_SUM) -> WideInts:
        return cls(np.zeros((limbs, count), dtype=np.uint64))

    @classmethod
    def of_int64(cls, values: Int64s, limbs: int = LIMBS_OF_INT64_SUM) -> WideInts:
        words = np.empty((limbs, len(values)), dtype=np.uint64)
        words[0] = values.view(np.uint64)
        if limbs > 1:
            words[1:] = (values >> 63).view(np.uint64)
        return cls(words)

    @classmethod
    def of_products(cls, values: Int64s, weights: Int64s, limbs: int = LIMBS_OF_INT64_SUM) -> WideInts:
        """value * weight, even if the product needs more than 64 bits."""
        if magnitude(values) * magnitude(weights) < _INT64_LIMIT:
            return cls.of_int64(values * weights, limbs)
        return cls.of_int64(values, limbs).times(weights)

    @classmethod
    def concat(cls, columns: Sequence[WideInts]) -> WideInts:
        limbs = max(column.width for column in columns)
        return cls(np.concatenate([column.widened(limbs).limbs for column in columns], axis=1))

    def __len__(self) -> int:
        return int(self.limbs.shape[1])

    @property
    def width(self) -> int:
        """The number of limbs."""
        return int(self.limbs.shape[0])

    @property
    def top(self) -> Int64s:
        return signed(self.limbs[-1])

    def widened(self, limbs: int) -> WideInts:
        """The same values with at least this many limbs."""
        if limbs <= self.width:
            return self
        sign = (self.top >> 63).view(np.uint64)
        return WideInts(np.concatenate([self.limbs, np.tile(sign, (limbs - self.width, 1))]))

    def take(self, places: Int64s | Bools) -> WideInts:
        """The values at these indexes, or where the mask is True."""
        # Five times as fast as `limbs[:, places]`, which walks down the columns.
        chosen = np.flatnonzero(places) if places.dtype == np.bool_ else places
        return WideInts(np.take(self.limbs, chosen, axis=1))

    def __add__(self, other: WideInts) -> WideInts:
        width = max(self.width, other.width)
        left, right = self.widened(width).limbs, other.widened(width).limbs
        sums = left + right
        carry = sums[0] < left[0]
        for limb in range(1, width):
            with_carry = sums[limb] + carry
            carry = (sums[limb] < left[limb]) | (with_carry < sums[limb])
            sums[limb] = with_carry
        return WideInts(sums)

    def __neg__(self) -> WideInts:
        limbs = ~self.limbs
        carry = np.ones(len(self), dtype=np.bool_)
        for limb in limbs:
            limb += carry
            carry &= limb == 0
        return WideInts(limbs)

    def __sub__(self, other: WideInts) -> WideInts:
        return self + -other

    def times(self, factors: Int64s) -> WideInts:
        """Each value times its factor, modulo the width of the limbs."""
        sizes = np.abs(factors).view(np.uint64)
        if not bool((sizes == 1).all()):
            return WideInts(_multiplied(self.limbs, sizes)).negated_where(factors < 0)
        return self.negated_where(factors < 0)

    def negated_where(self, mask: Bools) -> WideInts:
        if not bool(mask.any()):
            return self
        return WideInts(np.where(mask, (-self).limbs, self.limbs))

    def shifted(self, bits: Int64s) -> WideInts:
        """Each value times 2 ** bits, for bits from 0 to 63."""
        return WideInts(_multiplied(self.limbs, np.uint64(1) << bits.astype(np.uint64)))

    def sum_runs(self, starts: Int64s) -> WideInts:
        """One sum per run of adjacent values; `starts` holds the first index of each, and no run may be empty."""
        if not len(starts):
            return WideInts.zeros(0, self.width)
        if self._largest() * len(self) < _INT64_LIMIT:
            return WideInts.of_int64(np.add.reduceat(signed(self.limbs[0]), starts), self.width)
        return WideInts(_carried([_unsigned_runs(half, starts) for half in _halves(self.limbs)]))

    def sum_groups(self, groups: Int64s, count: int) -> WideInts:
        """One sum per group number below `count`; rows may be in any order."""
        if self._largest() * len(self) < _INT64_LIMIT:
            return WideInts.of_int64(_scattered(signed(self.limbs[0]), groups, count), self.width)
        return WideInts(_carried([_scattered(half, groups, count).view(np.uint64) for half in _halves(self.limbs)]))

    def _largest(self) -> int:
        """The largest magnitude, or 2**63 if a value needs more than 64 bits."""
        low = signed(self.limbs[0])
        sign = (low >> 63).view(np.uint64)
        is_small = all(bool((limb == sign).all()) for limb in self.limbs[1:])
        return magnitude(low) if is_small else _INT64_LIMIT

    def is_zero(self) -> Bools:
        return np.asarray(~self.limbs.any(axis=0))

    def is_negative(self) -> Bools:
        return self.top < 0

    def equals(self, other: WideInts) -> Bools:
        width = max(self.width, other.width)
        return np.asarray((self.widened(width).limbs == other.widened(width).limbs).all(axis=0))

    def less_than(self, other: WideInts) -> Bools:
        """Compare elementwise; a column with one value is broadcast."""
        width = max(self.width, other.width)
        left, right = self.widened(width), other.widened(width)
        less: Bools = left.limbs[0] < right.limbs[0]
        for a, b in zip(left.limbs[1:-1], right.limbs[1:-1], strict=True):
            less = (a < b) | ((a == b) & less)
        if width == 1:
            return np.asarray(left.top < right.top)
        return np.asarray((left.top < right.top) | ((left.top == right.top) & less))


def signed(limb: UInt64s) -> Int64s:
    """The same bits read as signed integers."""
    return limb.view(np.int64)


def magnitude(values: Int64s) -> int:
    """The largest absolute value; 0 if there are no values."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def _unsigned_runs(halves: UInt64s, starts: Int64s) -> UInt64s:
    return np.add.reduceat(halves, starts)


def _scattered(values: Int64s | UInt64s, groups: Int64s, count: int) -> Int64s:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, groups, values.view(np.int64))
    return sums


def _halves(limbs: UInt64s) -> list[UInt64s]:
    """Split into parts of 32 bits: the sum of fewer than 2**31 of them is below 2**63."""
    return [half for limb in limbs for half in (limb & _LOW_HALF, limb >> _HALF)]


def _carried(halves: Sequence[UInt64s]) -> UInt64s:
    """Combine 32-bit halves that have overflowed into limbs; the top carry is dropped, as in two's complement."""
    limbs = np.empty((len(halves) // 2, len(halves[0])), dtype=np.uint64)
    carry = np.zeros(len(halves[0]), dtype=np.uint64)
    for place in range(0, len(halves), 2):
        low = halves[place] + carry
        high = halves[place + 1] + (low >> _HALF)
        limbs[place // 2] = (low & _LOW_HALF) | (high << _HALF)
        carry = high >> _HALF
    return limbs


def _multiplied(limbs: UInt64s, factors: UInt64s) -> UInt64s:
    """Schoolbook multiplication in 32-bit halves."""
    halves = _halves(limbs)
    totals = [np.zeros(limbs.shape[1], dtype=np.uint64) for _ in range(len(halves) + 2)]
    for place, half in enumerate(halves):
        for shift, factor in enumerate((factors & _LOW_HALF, factors >> _HALF)):
            product = half * factor
            totals[place + shift] += product & _LOW_HALF
            totals[min(place + shift + 1, len(halves) + 1)] += product >> _HALF
    return _carried(totals[: len(halves)])
