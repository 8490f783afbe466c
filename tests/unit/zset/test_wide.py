"""Integers wider than 64 bits, column by column, against Python's own."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminae.zset.wide_conversion import (
    fits_decimal,
    fits_int64,
    of_columns,
    of_decimals,
    of_ints,
    of_parts,
    to_columns,
    to_decimals,
    to_int64,
    to_ints,
)
from laminae.zset.wide_integers import WideInts

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


def int64(*values):
    return np.array(values, dtype=np.int64)


def test_addition_carries_into_the_next_limb():
    assert to_ints(of_ints([2**64 - 1, -1]) + of_ints([1, 1])) == [2**64, 0]


def test_largest_plus_one_minus_one_comes_back():
    total = WideInts.of_int64(int64(LARGEST)) + WideInts.of_int64(int64(1))
    assert not fits_int64(total)[0]
    assert to_int64(total + WideInts.of_int64(int64(-1))).tolist() == [LARGEST]


def test_value_times_weight_needs_no_room_in_64_bits():
    found = WideInts.of_products(int64(LARGEST, SMALLEST, SMALLEST, 7), int64(SMALLEST, SMALLEST, -1, 0))
    assert to_ints(found) == [LARGEST * SMALLEST, SMALLEST * SMALLEST, 2**63, 0]


def test_negating_the_smallest_value_does_not_wrap():
    assert to_ints(-WideInts.of_int64(int64(SMALLEST))) == [2**63]


def test_runs_of_neighbours_are_summed_beyond_64_bits():
    values = WideInts.of_int64(int64(LARGEST, LARGEST, 5, SMALLEST, SMALLEST, SMALLEST))
    assert to_ints(values.sum_runs(int64(0, 2, 3))) == [2 * LARGEST, 5, 3 * SMALLEST]
    assert to_ints(values.sum_runs(int64())) == []


def test_groups_are_summed_in_any_order():
    values = WideInts.of_int64(int64(LARGEST, 1, LARGEST, 2))
    assert to_ints(values.sum_groups(int64(2, 0, 2, 0), 3)) == [3, 0, 2 * LARGEST]


@pytest.mark.parametrize("limbs", [1, 2, 3])
def test_comparison_knows_the_sign(limbs):
    values = [-(2**62), -1, 0, 1, 2**62]
    for pivot in values:
        assert of_ints(values, limbs).less_than(of_ints([pivot], limbs)).tolist() == [v < pivot for v in values]


def test_three_values_of_38_digits_do_not_look_as_if_they_fitted():
    largest = 10**38 - 1
    values = of_decimals(pa.array([Decimal(largest)] * 3, pa.decimal128(38, 0)))
    total = values.sum_runs(int64(0))
    assert to_ints(total) == [3 * largest]
    assert fits_decimal(total, 38).tolist() == [False]
    assert fits_decimal(total - values.take(int64(0)) - values.take(int64(1)), 38).tolist() == [True]


def test_decimals_come_and_go_through_arrow_with_nulls_and_offsets():
    given = pa.array([Decimal("1.00"), None, Decimal("-99999.99"), Decimal("0.01")], pa.decimal128(7, 2))
    found = of_decimals(given[1:])
    assert to_ints(found) == [0, -9999999, 1]
    assert to_decimals(found, given.type, np.array([False, True, True])).equals(given[1:])
    assert len(of_decimals(given[:0])) == 0


def test_stored_columns_give_back_the_values():
    values = [0, -1, 2**100, -(2**127)]
    columns = to_columns(of_ints(values))
    assert [column.type for column in columns] == [pa.int64(), pa.int64()]
    assert to_ints(of_columns(columns)) == values


def test_signed_parts_of_32_bits_are_put_together():
    assert to_ints(of_parts([int64(5, -3), int64(-7, 2**40), int64(-(2**31), 3)])) == [
        5 - 7 * 2**32 - 2**95,
        -3 + 2**72 + 3 * 2**64,
    ]
