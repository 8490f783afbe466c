"""COUNT, SUM and AVG of many groups at once: `update_many` over dense group numbers, exact as those of one group.

Values come as numpy or Arrow arrays; NULLs are skipped. What a group shows is checked when it is finalized.
"""

from __future__ import annotations

from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laminae.errors import ValueOverflow
from laminae.zset.aggregate.group_totals import GroupTotals, SumsAndCounts, group_count
from laminae.zset.aggregate.linear import AVG_DIGITS, LARGEST_PRECISION
from laminae.zset.aggregate.total import divided
from laminae.zset.exact_float import Floats, FloatSums
from laminae.zset.wide import LIMBS_OF_DECIMAL_SUM, LIMBS_OF_INT64_SUM, Bools, Int64s, WideInts
from laminae.zset.wide_values import (
    fits_decimal,
    fits_int64,
    of_decimals,
    of_ints,
    to_decimals,
    to_int64,
    to_ints,
)

Values: TypeAlias = "npt.NDArray[np.generic] | pa.Array | pa.ChunkedArray"

EXACT_IN_DOUBLE = 1 << 53


class GroupedCount:
    """COUNT(*) without values, COUNT(x) with them."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts = GroupTotals()

    def update_many(self, groups: Int64s, values: Values | None = None, weights: Int64s | None = None) -> None:
        if values is not None:
            self._counts.reserve(0 if isinstance(values, np.ndarray) else group_count(groups))
            groups, _, weights = without_nulls(groups, values, weights)
        if weights is None:
            self._counts.add_ones(groups)
        else:
            self._counts.add(groups, weights, None)

    def merge(self, other: Self) -> None:
        self._counts.merge(other._counts)

    def reset(self) -> None:
        self._counts.reset()

    def finalize(self) -> Int64s:
        """Below zero where retractions are ahead of their inserts."""
        found = self._counts.totals()
        check_fits(found, fits_int64(found), "COUNT", pa.int64())
        return to_int64(found)


class GroupedSum:
    """SUM(x) of integers (BIGINT), of decimals or of doubles, by the type of x. NULL where there is nothing."""

    __slots__ = ("_floats", "_totals", "result_type", "value_type")

    def __init__(self, value_type: pa.DataType, result_type: pa.DataType | None = None) -> None:
        self.value_type = value_type
        sum_type = _sum_type(value_type)
        self.result_type = result_type or sum_type
        self._totals = SumsAndCounts(LIMBS_OF_DECIMAL_SUM if pa.types.is_decimal(value_type) else LIMBS_OF_INT64_SUM)
        self._floats = FloatSums.empty()

    def update_many(self, groups: Int64s, values: Values, weights: Int64s | None = None) -> None:
        # A group of NULLs alone is a group too.
        self._totals.reserve(0 if isinstance(values, np.ndarray) else group_count(groups))
        groups, present, weights = without_nulls(groups, values, weights)
        if pa.types.is_floating(self.value_type):
            each = np.ones(len(groups), dtype=np.int64) if weights is None else weights
            self._floats = self._floats + FloatSums.of_values(groups, _as_floats(present), each)
            self._totals.add_weights(groups, weights)
        elif pa.types.is_decimal(self.value_type):
            integers = of_decimals(_as_arrow(present, self.value_type))
            self._totals.add_wide(groups, integers if weights is None else integers.times(weights), weights)
        else:
            self._totals.add(groups, _as_int64(present), weights)

    def merge(self, other: Self) -> None:
        self._totals.merge(other._totals)
        self._floats = self._floats + other._floats

    def reset(self) -> None:
        self._totals.reset()
        self._floats = FloatSums.empty()

    def finalize(self) -> pa.Array:
        sums, counts = self._totals.totals()
        is_something = ~(counts.is_zero() & sums.is_zero())
        if pa.types.is_floating(self.value_type):
            is_something[self._floats.groups] = True
            return pa.array(self._floats.finalize(len(counts)), mask=~is_something)
        if pa.types.is_decimal(self.result_type):
            check_fits(sums, fits_decimal(sums, self.result_type.precision), "SUM", self.result_type)
            return to_decimals(sums, self.result_type, is_something)
        check_fits(sums, fits_int64(sums), "SUM", self.result_type)
        return pa.array(to_int64(sums), mask=~is_something)


class GroupedAvg(GroupedSum):
    """AVG(x): doubles, and for decimals a decimal with four more digits, half up. NULL where there is nothing."""

    __slots__ = ()

    def __init__(self, value_type: pa.DataType, result_type: pa.DataType | None = None) -> None:
        super().__init__(value_type, result_type or _avg_type(value_type))

    def finalize(self) -> pa.Array:
        sums, total_weights = self._totals.totals()
        check_fits(total_weights, fits_int64(total_weights), "COUNT", pa.int64())
        counts = to_int64(total_weights)
        is_something = counts > 0
        divisors = np.where(is_something, counts, 1)
        if pa.types.is_floating(self.value_type):
            return pa.array(self._floats.finalize(len(counts)) / divisors, mask=~is_something)
        if pa.types.is_decimal(self.value_type):
            return self._decimals(sums, divisors, is_something)
        return pa.array(_quotients(sums, divisors), mask=~is_something)

    def _decimals(self, sums: WideInts, divisors: Int64s, is_something: Bools) -> pa.Array:
        factor = 10 ** max(0, self.result_type.scale - self.value_type.scale)
        pairs = zip(to_ints(sums), divisors.tolist(), strict=True)
        found = of_ints([divided(total * factor, count) for total, count in pairs], LIMBS_OF_DECIMAL_SUM)
        fits = fits_decimal(found, self.result_type.precision) | ~is_something
        check_fits(found, fits, "AVG", self.result_type)
        return to_decimals(found, self.result_type, is_something)


def without_nulls(
    groups: Int64s, values: Values, weights: Int64s | None
) -> tuple[Int64s, npt.NDArray[np.generic] | pa.Array, Int64s | None]:
    """The rows whose value is there."""
    if isinstance(values, np.ndarray):
        return groups, values, weights
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not array.null_count:
        return groups, array, weights
    present = np.asarray(array.is_valid())
    return groups[present], array.drop_null(), None if weights is None else weights[present]


def check_fits(integers: WideInts, fits: Bools, aggregate: str, result_type: pa.DataType) -> None:
    """Raise for the first group whose total is too large."""
    if bool(fits.all()):
        return
    group = int(np.argmin(fits))
    value = to_ints(integers.take(np.array([group])))[0]
    raise ValueOverflow(aggregate=aggregate, what=f"group {group}", value=value, type=result_type)


def _quotients(sums: WideInts, counts: Int64s) -> Floats:
    """Rounded once: in doubles where both numbers are exact there, in Python's integers elsewhere."""
    small = to_int64(sums)
    is_exact = fits_int64(sums) & (np.abs(small) <= EXACT_IN_DOUBLE) & (counts <= EXACT_IN_DOUBLE)
    found = small / counts
    for place in np.flatnonzero(~is_exact).tolist():
        found[place] = to_ints(sums.take(np.array([place])))[0] / int(counts[place])
    return np.asarray(found, dtype=np.float64)


def _sum_type(value_type: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal128(value_type):
        return pa.decimal128(min(value_type.precision + 10, LARGEST_PRECISION), value_type.scale)
    if pa.types.is_floating(value_type):
        return pa.float64()
    if pa.types.is_signed_integer(value_type):
        return pa.int64()
    raise TypeError(f"values of type {value_type} cannot be summed")


def _avg_type(value_type: pa.DataType) -> pa.DataType:
    if not pa.types.is_decimal(value_type):
        return pa.float64()
    scale = min(value_type.scale + AVG_DIGITS, LARGEST_PRECISION)
    return pa.decimal128(min(value_type.precision + AVG_DIGITS, LARGEST_PRECISION), scale)


def _as_int64(values: npt.NDArray[np.generic] | pa.Array) -> Int64s:
    return np.asarray(values).astype(np.int64, copy=False)


def _as_floats(values: npt.NDArray[np.generic] | pa.Array) -> Floats:
    return np.asarray(values).astype(np.float64, copy=False)


def _as_arrow(values: npt.NDArray[np.generic] | pa.Array, type: pa.DataType) -> pa.Array:  # noqa: A002
    return values if isinstance(values, pa.Array) else pa.array(values, type)
