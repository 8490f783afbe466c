"""Averages of exact totals: wide integers divided by counts, rounded half away from zero as Spark rounds decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laminae.zset.wide_conversion import of_ints, to_ints
from laminae.zset.wide_integers import WideInts

if TYPE_CHECKING:
    from laminae.zset.wide_integers import Int64s

AVG_DIGITS = 4
"""AVG of DECIMAL(p, s) has four more digits after the decimal point, as in Spark."""

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_LARGEST_DIVISOR = 1 << 31
_LIMB_DIGITS = 18
"""10 ** 18 is the largest power of ten in a signed limb."""


def decimal_averages(totals: WideInts, counts: Int64s, digits: int) -> WideInts:
    """totals * 10 ** digits / counts. Counts are positive; `digits` is how much longer the average's scale is."""
    scaled = _with_digits(totals, digits)
    if len(counts) and int(counts.max()) >= _LARGEST_DIVISOR:
        # Groups of two billion rows are rare: Python integers are fast enough for them.
        return of_ints([divided(a, b) for a, b in zip(to_ints(scaled), counts.tolist(), strict=True)], scaled.width)
    negative = scaled.is_negative()
    quotient, rest = _divided(scaled.negated_where(negative), counts.astype(np.uint64))
    up = (rest * np.uint64(2) >= counts.astype(np.uint64)).astype(np.int64)
    return (quotient + WideInts.of_int64(up, scaled.width)).negated_where(negative)


def divided(numerator: int, denominator: int) -> int:
    """The quotient of two Python integers, rounded half away from zero. The denominator is positive."""
    size = (2 * abs(numerator) + denominator) // (2 * denominator)
    return size if numerator >= 0 else -size


def _with_digits(totals: WideInts, digits: int) -> WideInts:
    scaled = totals.widened(totals.width + 1 + digits // (_LIMB_DIGITS + 1))
    while digits > 0:
        factor = 10 ** min(digits, _LIMB_DIGITS)
        scaled = scaled.times(np.full(len(totals), factor, dtype=np.int64))
        digits -= _LIMB_DIGITS
    return scaled


def _divided(values: WideInts, divisors: np.ndarray) -> tuple[WideInts, np.ndarray]:
    """Long division in digits of 32 bits: a remainder and the next digit fit 64 bits while divisors fit 31."""
    limbs = np.empty_like(values.limbs)
    rest = np.zeros(len(values), dtype=np.uint64)
    for place in range(values.width - 1, -1, -1):
        limb = np.zeros(len(values), dtype=np.uint64)
        for digit in (values.limbs[place] >> _HALF, values.limbs[place] & _LOW):
            part = (rest << _HALF) | digit
            limb = (limb << _HALF) | (part // divisors)
            rest = part % divisors
        limbs[place] = limb
    return WideInts(limbs), rest
