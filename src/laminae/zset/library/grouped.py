"""COUNT, SUM and AVG of many groups at once: `update_many` over dense group numbers, as exact as for one group.

Values are numpy or Arrow arrays; NULLs are skipped. Overflow of a result is checked in `finalize`.
"""

from __future__ import annotations

from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laminae.zset.averages import AVG_DIGITS, decimal_averages
from laminae.zset.exact_float import Floats, FloatSums
from laminae.zset.library.group_totals import GroupTotals, SumsAndCounts, group_count
from laminae.zset.library.linear import LARGEST_PRECISION
from laminae.zset.wide_conversion import check_fits, fits_int64, fits_type, of_decimals, to_array, to_int64, to_ints
from laminae.zset.wide_integers import LIMBS_OF_DECIMAL_SUM, LIMBS_OF_INT64_SUM, Bools, Int64s, WideInts

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
        """The counts; negative where retractions arrived before their inserts."""
        counts = self._counts.totals()
        check_fits(counts, fits_int64(counts), "COUNT", pa.int64())
        return to_int64(counts)


class GroupedSum:
    """SUM(x) of integers (BIGINT), decimals or doubles, by the type of x. NULL if there are no values."""

    __slots__ = ("_floats", "_totals", "result_type", "value_type")

    def __init__(self, value_type: pa.DataType, result_type: pa.DataType | None = None) -> None:
        self.value_type = value_type
        sum_type = _sum_type(value_type)
        self.result_type = result_type or sum_type
        self._totals = SumsAndCounts(LIMBS_OF_DECIMAL_SUM if pa.types.is_decimal(value_type) else LIMBS_OF_INT64_SUM)
        self._floats = FloatSums.empty()

    def update_many(self, groups: Int64s, values: Values, weights: Int64s | None = None) -> None:
        # A group that has only NULLs is a group, too.
        self._totals.reserve(0 if isinstance(values, np.ndarray) else group_count(groups))
        groups, present, weights = without_nulls(groups, values, weights)
        if pa.types.is_floating(self.value_type):
            row_weights = np.ones(len(groups), dtype=np.int64) if weights is None else weights
            self._floats = self._floats + FloatSums.of_values(groups, _as_floats(present), row_weights)
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
        check_fits(sums, fits_type(sums, self.result_type), "SUM", self.result_type)
        return to_array(sums, self.result_type, is_something)


class GroupedAvg(GroupedSum):
    """AVG(x): a double; for decimals a decimal with four more digits, rounded half up. NULL if there are no values."""

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
        digits = max(0, self.result_type.scale - self.value_type.scale)
        averages = decimal_averages(sums, divisors, digits)
        check_fits(averages, fits_type(averages, self.result_type) | ~is_something, "AVG", self.result_type)
        return to_array(averages, self.result_type, is_something)


def without_nulls(
    groups: Int64s, values: Values, weights: Int64s | None
) -> tuple[Int64s, npt.NDArray[np.generic] | pa.Array, Int64s | None]:
    """The rows whose value is not NULL."""
    if isinstance(values, np.ndarray):
        return groups, values, weights
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if not array.null_count:
        return groups, array, weights
    present = np.asarray(array.is_valid())
    return groups[present], array.drop_null(), None if weights is None else weights[present]


def _quotients(sums: WideInts, counts: Int64s) -> Floats:
    """Quotients rounded once: in doubles where both numbers are exact in them, in Python integers otherwise."""
    small = to_int64(sums)
    is_exact = fits_int64(sums) & (np.abs(small) <= EXACT_IN_DOUBLE) & (counts <= EXACT_IN_DOUBLE)
    quotients = small / counts
    for place in np.flatnonzero(~is_exact).tolist():
        quotients[place] = to_ints(sums.take(np.array([place])))[0] / int(counts[place])
    return np.asarray(quotients, dtype=np.float64)


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
