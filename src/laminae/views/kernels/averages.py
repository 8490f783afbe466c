"""AVG of decimals: exact division of wide integers by counts, rounded half away from zero as Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laminae.zset.wide import WideInts
from laminae.zset.wide_values import of_ints, to_ints

if TYPE_CHECKING:
    from laminae.zset.wide import Int64s

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_LARGEST_DIVISOR = 1 << 31


def decimal_averages(totals: WideInts, counts: Int64s, digits: int) -> WideInts:
    """totals * 10 ** digits / counts. Counts are positive; `digits` is how much longer the average's scale is."""
    width = totals.width + 1
    scaled = totals.widened(width).times(np.full(len(totals), 10**digits, dtype=np.int64))
    if len(counts) and int(counts.max()) >= _LARGEST_DIVISOR:
        # Groups of two billion rows are few: integers of Python do for them.
        return of_ints([_rounded(a, b) for a, b in zip(to_ints(scaled), counts.tolist(), strict=True)], width)
    negative = scaled.is_negative()
    quotient, rest = _divided(scaled.negated_where(negative), counts.astype(np.uint64))
    up = (rest * np.uint64(2) >= counts.astype(np.uint64)).astype(np.int64)
    return (quotient + WideInts.of_int64(up, width)).negated_where(negative)


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


def _rounded(value: int, divisor: int) -> int:
    found = (2 * abs(value) + divisor) // (2 * divisor)
    return -found if value < 0 else found
