"""Sums of doubles: exact, in any order, and back again."""

import math
from fractions import Fraction

import numpy as np
import pytest

from laminae.zset.exact_float import FloatSums, float_of_units, float_units

NAN, INF = math.nan, math.inf
TINIEST, LARGEST = 5e-324, 1.7976931348623157e308


def sums(values, weights=None, groups=None):
    count = len(values)
    return FloatSums.of_values(
        np.array(groups if groups is not None else [0] * count, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(weights if weights is not None else [1] * count, dtype=np.int64),
    )


def test_what_spark_sums_to_zero_is_exact():
    assert sums([0.1, 0.2, 0.3, 1e16, -1e16]).finalize(1)[0] == math.fsum([0.1, 0.2, 0.3, 1e16, -1e16]) == 0.6


@pytest.mark.parametrize("value", [NAN, INF, -INF, 0.1, TINIEST, LARGEST])
def test_a_retracted_value_leaves_nothing_behind(value):
    total = sums([value, 2.5]) + sums([value], [-1])
    assert total.finalize(1).tolist() == [2.5]
    assert len((total + sums([2.5], [-1])).groups) == 0


def test_infinities_of_both_signs_are_nan_until_one_leaves():
    total = sums([INF, -INF, 1.0])
    assert np.isnan(total.finalize(1)[0])
    assert (total + sums([INF], [-1])).finalize(1).tolist() == [-INF]


def test_a_special_value_retracted_before_it_came_shows_nothing():
    early = sums([NAN, 1.0], [-1, 1])
    assert early.finalize(1).tolist() == [1.0]
    assert (early + sums([NAN])).finalize(1).tolist() == [1.0]


def test_negative_zero_sums_to_positive_zero():
    total = sums([-0.0, -0.0]).finalize(1)[0]
    assert (total, math.copysign(1, total)) == (0.0, 1.0)


def test_a_sum_out_of_range_is_infinite_and_comes_back():
    total = sums([LARGEST, LARGEST, -LARGEST, -LARGEST], groups=[0, 0, 1, 1])
    assert total.finalize(2).tolist() == [INF, -INF]
    assert (total + sums([LARGEST], [-1])).finalize(2).tolist() == [LARGEST, -INF]


def test_ties_are_rounded_to_even_and_the_smallest_part_decides():
    assert sums([2.0**53, 1.0]).finalize(1)[0] == 2.0**53
    assert sums([2.0**53, 1.0, TINIEST]).finalize(1)[0] == 2.0**53 + 2
    assert sums([2.0**53 + 2, 1.0]).finalize(1)[0] == 2.0**53 + 4
    assert sums([2.0**53 + 2, 1.0, -TINIEST]).finalize(1)[0] == 2.0**53 + 2


def test_groups_of_different_span_are_finished_together():
    values, groups = [1e300, 1e-300, -1e300, 0.5, 1e20, 3.0], [0, 0, 0, 1, 2, 2]
    assert sums(values, groups=groups).finalize(4).tolist() == [1e-300, 0.5, 1e20, 0.0]


def test_large_weights_are_exact():
    assert sums([0.1, 0.1], [10**9, -(10**9) + 1]).finalize(1).tolist() == [0.1]
    assert sums([LARGEST, LARGEST], [2**62, 1 - 2**62]).finalize(1).tolist() == [LARGEST]
    assert sums([0.1] * 3, [2**62] * 3).finalize(1).tolist() == [float(3 * 2**62 * Fraction(0.1))]


def test_one_group_in_python_integers_agrees():
    values = [0.1, 1e16, -1e16, TINIEST, -LARGEST, LARGEST]
    assert float_of_units(sum(map(float_units, values))) == math.fsum(values)
    assert float_of_units(2 * float_units(LARGEST)) == INF
    assert float_of_units(-2 * float_units(LARGEST)) == -INF
