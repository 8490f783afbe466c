"""Aggregates of many groups at once: the same answers as one group at a time."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminae.errors import ValueOverflow
from laminae.zset.library.grouped import GroupedAvg, GroupedCount, GroupedSum
from laminae.zset.library.grouped_values import GroupedDistinct, GroupedMax, GroupedMin

LARGEST = 2**63 - 1


def int64(*values):
    return np.array(values, dtype=np.int64)


def test_rows_and_values_are_counted_by_group():
    rows, values = GroupedCount(), GroupedCount()
    rows.update_many(int64(0, 2, 2))
    rows.update_many(int64(0, 2), weights=int64(-1, 5))
    values.update_many(int64(0, 0, 1), pa.array([None, 1, None]), int64(1, 3, 1))
    assert rows.finalize().tolist() == [0, 0, 7]
    assert values.finalize().tolist() == [3, 0]


def test_a_group_without_values_sums_to_null():
    total = GroupedSum(pa.int64())
    total.update_many(int64(0, 1, 2), pa.array([5, None, 7]))
    total.update_many(int64(2, 3), pa.array([7, None]), int64(-1, 1))
    assert total.finalize().to_pylist() == [5, None, None, None]


def test_largest_plus_one_minus_one_in_one_group_is_no_overflow():
    total = GroupedSum(pa.int64())
    total.update_many(int64(0, 0, 1), int64(LARGEST, 1, 4))
    with pytest.raises(ValueOverflow, match="group 0 is 9223372036854775808"):
        total.finalize()
    total.update_many(int64(0), int64(1), int64(-1))
    assert total.finalize().to_pylist() == [LARGEST, 4]


def test_sums_outgrow_what_is_packed_without_a_trace():
    total, expected = GroupedSum(pa.int64()), [0, 0]
    for size in (3, 10**6, 2**41, 2**62, -(2**62), -(2**41), 5):
        for group in (0, 1):
            total.update_many(int64(group, group), int64(size, -group), int64(1 + group, 7))
            expected[group] += size * (1 + group) - group * 7
    assert total.finalize().to_pylist() == expected


def test_counts_outgrow_what_is_packed_without_a_trace():
    average = GroupedAvg(pa.int64())
    for _ in range(40):
        average.update_many(np.zeros(70_000, dtype=np.int64), np.full(70_000, 3, dtype=np.int64))
    average.update_many(int64(0), int64(3), int64(2**40))
    assert average.finalize().to_pylist() == [3.0]


def test_large_weights_are_exact():
    total = GroupedSum(pa.int64())
    total.update_many(int64(0, 0), int64(LARGEST, LARGEST), int64(2**40, 1 - 2**40))
    assert total.finalize().to_pylist() == [LARGEST]


def test_a_count_that_no_weight_can_hold_is_an_error():
    count = GroupedCount()
    count.update_many(int64(0, 0), weights=int64(LARGEST, LARGEST))
    with pytest.raises(ValueOverflow, match="COUNT"):
        count.finalize()


def test_decimals_are_exact_and_checked_at_the_end():
    kind = pa.decimal128(38, 0)
    total = GroupedSum(kind)
    total.update_many(int64(0, 0, 0), pa.array([Decimal(10**38 - 1)] * 3, kind))
    with pytest.raises(ValueOverflow, match="SUM"):
        total.finalize()
    total.update_many(int64(0, 1), pa.array([Decimal(10**38 - 1), None], kind), int64(-2, 1))
    assert total.finalize().to_pylist() == [Decimal(10**38 - 1), None]


def test_doubles_are_exact_with_nan_and_infinities_counted():
    total = GroupedSum(pa.float64())
    total.update_many(int64(0, 0, 0, 1, 2, 3), np.array([0.1, 1e16, 0.2, math.nan, math.inf, -0.0]))
    total.update_many(int64(0, 1, 1, 2), np.array([1e16, math.nan, 2.5, math.inf]), int64(-1, -1, 1, -1))
    assert total.finalize().to_pylist() == [math.fsum([0.1, 0.2]), 2.5, None, 0.0]


def test_averages_of_integers_decimals_and_doubles():
    integers, decimals, doubles = GroupedAvg(pa.int32()), GroupedAvg(pa.decimal128(4, 2)), GroupedAvg(pa.float64())
    integers.update_many(int64(0, 0, 0, 1), pa.array([1, 2, 2, None], pa.int32()))
    decimals.update_many(int64(0, 0, 0), pa.array([Decimal("0.01"), Decimal("0.02"), Decimal("0.02")]))
    doubles.update_many(int64(0, 0, 1), np.array([0.1, 0.2, math.inf]))
    assert integers.finalize().to_pylist() == [5 / 3, None]
    assert decimals.finalize().to_pylist() == [Decimal("0.016667")]
    assert doubles.finalize().to_pylist() == [math.fsum([0.1, 0.2]) / 2, math.inf]


def test_the_average_of_large_integers_is_rounded_once():
    average = GroupedAvg(pa.int64())
    average.update_many(int64(0, 0, 0), int64(LARGEST, LARGEST, LARGEST - 1))
    assert average.finalize().to_pylist() == [(3 * LARGEST - 1) / 3]


def test_min_max_and_distinct_take_values_back():
    smallest, largest, distinct = GroupedMin(pa.string()), GroupedMax(pa.string()), GroupedDistinct(pa.string())
    for aggregate in (smallest, largest, distinct):
        aggregate.update_many(int64(0, 0, 0, 1, 2), pa.array(["b", "a", "c", None, "z"]))
        aggregate.update_many(int64(0, 0, 2, 0), pa.array(["a", "c", "z", "zz"]), int64(-1, -1, -1, -1))
    assert smallest.finalize().to_pylist() == ["b", None, None]
    assert largest.finalize().to_pylist() == ["b", None, None]
    assert distinct.finalize().tolist() == [1, 0, 0]


def test_nan_is_above_every_number_and_one_value():
    values = pa.array([1.0, math.nan, math.nan, math.nan, 0.0, -0.0])
    found = {}
    for kind in (GroupedMin, GroupedMax, GroupedDistinct):
        aggregate = kind(pa.float64())
        aggregate.update_many(int64(0, 0, 1, 1, 2, 2), values)
        found[kind] = [str(value) for value in aggregate.finalize().tolist()]
    assert found == {
        GroupedMin: ["1.0", "nan", "0.0"],
        GroupedMax: ["nan", "nan", "0.0"],
        GroupedDistinct: ["2", "1", "1"],
    }


@pytest.mark.parametrize("kind", [GroupedCount, lambda: GroupedSum(pa.int64()), lambda: GroupedMax(pa.int64())])
def test_merge_and_reset(kind):
    left, right = kind(), kind()
    left.update_many(int64(0, 1), int64(4, 5))
    right.update_many(int64(1, 2), int64(5, 6), int64(-1, 1))
    left.merge(right)
    whole = kind()
    whole.update_many(int64(0, 1, 1, 2), int64(4, 5, 5, 6), int64(1, 1, -1, 1))
    assert left.finalize().tolist() == whole.finalize().tolist()
    left.reset()
    assert len(left.finalize()) == 0


def test_group_numbers_count_from_zero():
    with pytest.raises(ValueError, match="count from 0"):
        GroupedCount().update_many(int64(-1))


def test_what_is_not_a_number_cannot_be_summed():
    for kind in (pa.string(), pa.decimal256(50, 2), pa.uint64()):
        with pytest.raises(TypeError, match="cannot be summed"):
            GroupedSum(kind)
        with pytest.raises(TypeError, match="cannot be summed"):
            GroupedAvg(kind)
