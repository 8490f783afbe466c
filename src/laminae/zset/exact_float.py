"""Exact sums of doubles for many groups: independent of order, and exactly reversible by retractions.

A double is an integer times a power of two; exponents are grouped into bins of 32 bits, and each (group, bin) keeps one
128-bit integer. NaN and the infinities have bins of their own, which count them. The state is linear: rows are added,
and zeros are removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laminae.zset.wide_integers import Bools, Int64s, UInt64s, WideInts, magnitude, signed

Floats = npt.NDArray[np.float64]

BIN_BITS = 32
LOWEST = -1074
"""The exponent of the smallest double: bin b counts in units of 2 ** (32 * b - 1074)."""
NAN_BIN, POSITIVE_INFINITY_BIN, NEGATIVE_INFINITY_BIN = 64, 65, 66
"""Finite values use bins 0 to 63."""

_MANTISSA_BITS = 52
_SPECIAL_EXPONENT = 0x7FF
_BINS = 128
_MOST_WEIGHT = 1 << 43
"""A value in its bin has 84 bits and a sign, which leaves 43 bits of a 128-bit integer for the weight."""
_UNIT = 1 << -LOWEST


def float_parts(values: Floats) -> tuple[Int64s, WideInts]:
    """The bin and the integer of each value. 0.0 and -0.0 both have the integer 0."""
    bits = values.view(np.int64)
    exponents = (bits >> _MANTISSA_BITS) & _SPECIAL_EXPONENT
    fractions = bits & ((1 << _MANTISSA_BITS) - 1)
    whole = fractions | (np.int64(1) << _MANTISSA_BITS)
    places = np.maximum(exponents - 1, 0)
    integers = np.where(bits < 0, -1, 1) * np.where(exponents == 0, fractions, whole)
    bins, shifts = places // BIN_BITS, places % BIN_BITS
    if bool((special := exponents == _SPECIAL_EXPONENT).any()):
        infinity = np.where(bits < 0, NEGATIVE_INFINITY_BIN, POSITIVE_INFINITY_BIN)
        bins = np.where(special, np.where(fractions != 0, NAN_BIN, infinity), bins)
        integers, shifts = np.where(special, 1, integers), np.where(special, 0, shifts)
    high = (integers >> (63 - shifts)) >> 1
    return bins, WideInts(np.stack([(integers << shifts).view(np.uint64), high.view(np.uint64)]))


@dataclass(frozen=True, slots=True, eq=False)
class FloatSums:
    """Exact sums: one non-zero row per (group, bin), sorted by both. A missing group sums to 0."""

    groups: Int64s
    bins: Int64s
    integers: WideInts

    @classmethod
    def empty(cls) -> FloatSums:
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, WideInts.zeros(0))

    @classmethod
    def of_values(cls, groups: Int64s, values: Floats, weights: Int64s) -> FloatSums:
        """Exact while the absolute weights of one bin sum to less than 2**43; larger weights get wider integers."""
        bins, integers = float_parts(values)
        if magnitude(weights) * len(weights) >= _MOST_WEIGHT:
            integers = integers.widened(integers.width + 1)
        return cls.of_rows(groups, bins, integers.times(weights))

    @classmethod
    def of_rows(cls, groups: Int64s, bins: Int64s, integers: WideInts) -> FloatSums:
        """From rows in any order, including several per (group, bin)."""
        keys = groups * _BINS + bins
        if not bool((keys[1:] > keys[:-1]).all()):
            order = np.argsort(keys)
            keys = keys[order]
            starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
            keys, integers = keys[starts], integers.take(order).sum_runs(starts)
        if bool((gone := integers.is_zero()).any()):
            keys, integers = keys[~gone], integers.take(~gone)
        return cls(keys // _BINS, keys % _BINS, integers)

    def __add__(self, other: FloatSums) -> FloatSums:
        return FloatSums.of_rows(
            np.concatenate([self.groups, other.groups]),
            np.concatenate([self.bins, other.bins]),
            WideInts.concat([self.integers, other.integers]),
        )

    def __neg__(self) -> FloatSums:
        return FloatSums(self.groups, self.bins, -self.integers)

    def finalize(self, count: int) -> Floats:
        """The sum of each group below `count`, rounded once, half to even. A sum beyond the range is an infinity."""
        is_finite = self.bins < NAN_BIN
        sums = _finite_sums(self.groups[is_finite], self.bins[is_finite], self.integers.take(is_finite), count)
        if bool(is_finite.all()):
            return sums
        nan, positive, negative = (
            self._seen(a_bin, count) for a_bin in (NAN_BIN, POSITIVE_INFINITY_BIN, NEGATIVE_INFINITY_BIN)
        )
        sums[positive], sums[negative] = np.inf, -np.inf
        sums[nan | (positive & negative)] = np.nan
        return sums

    def _seen(self, special_bin: int, count: int) -> Bools:
        """The groups in which this special value has a positive count."""
        is_seen = np.zeros(count, dtype=np.bool_)
        here = self.bins == special_bin
        is_seen[self.groups[here]] = ~self.integers.take(here).is_negative()
        return is_seen


def _finite_sums(groups: Int64s, bins: Int64s, integers: WideInts, count: int) -> Floats:
    """Combine the bins of a group into one integer, as wide as their distance; groups of equal width go together."""
    sums = np.zeros(count)
    if not len(groups):
        return sums
    is_first = np.concatenate([[True], groups[1:] != groups[:-1]])
    starts, place_of_group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    lowest = bins[starts]
    spans = bins[np.append(starts[1:], len(groups)) - 1] - lowest
    apart = bins - lowest[place_of_group]
    # A limb holds two bins; the last limb has room for carries between bins.
    widths = np.where(spans == 0, 0, spans // 2 + 1) + integers.width
    for width in np.unique(widths).tolist():
        total = np.zeros((width, len(starts)), dtype=np.uint64)
        of_this_width = widths[place_of_group] == width
        for distance in np.unique(apart[of_this_width]).tolist():
            rows = of_this_width & (apart == distance)
            here = place_of_group[rows]
            total[:, here] = (WideInts(total[:, here]) + _moved_up(integers.take(rows), distance, width)).limbs
        chosen = widths == width
        sums[groups[starts[chosen]]] = rounded(WideInts(total[:, chosen]), lowest[chosen] * BIN_BITS + LOWEST)
    return sums


def _moved_up(integers: WideInts, bins: int, width: int) -> WideInts:
    """The integers times 2 ** (32 * bins), in `width` limbs."""
    limbs, halves = divmod(bins, 2)
    upper = integers.widened(width - limbs)
    if halves:
        upper = upper.shifted(np.full(len(integers), BIN_BITS, dtype=np.int64))
    return WideInts(np.concatenate([np.zeros((limbs, len(integers)), dtype=np.uint64), upper.limbs]))


def rounded(integers: WideInts, exponents: Int64s) -> Floats:
    """integer * 2 ** exponent as the nearest double, ties to even. Exponents must be at least -1074."""
    negative = integers.is_negative()
    limbs = integers.negated_where(negative).limbs
    is_used = limbs != 0
    highest = len(limbs) - 1 - np.argmax(is_used[::-1], axis=0)
    columns = np.arange(limbs.shape[1])
    leading = limbs[highest, columns]
    below = np.where(highest > 0, limbs[highest - 1, columns], 0)
    empty = (64 - _bit_length(leading)).astype(np.uint64)
    top = (leading << empty) | ((below >> (np.uint64(63) - empty)) >> np.uint64(1))
    is_more = (is_used.sum(axis=0) > 2) | ((below << empty) != 0)
    is_more |= (is_used.sum(axis=0) == 2) & (below == 0)
    mantissa, rest = top >> np.uint64(11), signed(top & np.uint64(0x7FF))
    up = (rest > 0x400) | ((rest == 0x400) & (is_more | (signed(mantissa) % 2 == 1)))
    places = 64 * highest - signed(empty) + 11 + exponents
    with np.errstate(over="ignore"):
        absolute = np.ldexp((mantissa + up).astype(np.float64), places)
    return np.asarray(np.where(negative, -absolute, absolute))


def _bit_length(values: UInt64s) -> Int64s:
    """The bit length, at most 64. Halves of 32 bits convert to a double exactly; a whole limb might be rounded up."""
    high = values >> np.uint64(32)
    is_long = high != 0
    exponents = np.frexp(np.where(is_long, high, values).astype(np.float64))[1]
    return np.where(is_long, exponents + 32, exponents).astype(np.int64)


def float_units(value: float) -> int:
    """A finite double in units of 2 ** -1074, for sums of one group in Python integers."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNIT // denominator)


def float_of_units(units: int) -> float:
    """The nearest double, ties to even; a sum beyond the range is an infinity."""
    try:
        return units / _UNIT
    except OverflowError:
        return float("inf") if units > 0 else float("-inf")
