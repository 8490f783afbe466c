"""Aggregates of one group: SQL's rules, exact, and back again."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminae.errors import ValueOverflow
from laminae.zset.library.keeping import CountDistinctAggregator, MaxAggregator, MinAggregator
from laminae.zset.library.linear import AvgAggregator, CountAggregator, CountValueAggregator, SumAggregator

LINEAR = (CountAggregator, CountValueAggregator, SumAggregator, AvgAggregator)
KEEPING = (MinAggregator, MaxAggregator, CountDistinctAggregator)
LARGEST = 2**63 - 1


def fed(aggregator, *values):
    for value in values:
        aggregator.accumulate(value)
    return aggregator


def test_retractable_count():
    count = CountAggregator()
    for _ in range(3):
        count.accumulate(())
    assert count.finalize() == 3
    count.retract(())
    assert count.finalize() == 2


def test_retractable_sum():
    total = fed(SumAggregator(), 10, 20, 30)
    assert total.finalize() == 60
    total.retract(20)
    assert total.finalize() == 40


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.integers(-(2**63), LARGEST)), st.lists(st.integers(-(2**63), LARGEST)))
def test_changelog_weights_sum_to_count(inserts, deletes):
    total, count = SumAggregator(), CountAggregator()
    for value in inserts:
        total.accumulate(value)
        count.accumulate(value)
    for value in deletes:
        total.retract(value)
        count.retract(value)
    expected = sum(inserts) - sum(deletes)
    assert count.finalize() == len(inserts) - len(deletes)
    if -(2**63) <= expected <= LARGEST:
        assert (total.finalize() or 0) == expected
    else:
        with pytest.raises(ValueOverflow):
            total.finalize()


def test_retractable_avg():
    average = fed(AvgAggregator(), 10, 20, 60)
    assert average.finalize() == 30.0
    average.retract(60)
    assert average.finalize() == 15.0


def test_min_and_max_find_the_next_value_when_theirs_leaves():
    smallest, largest = fed(MinAggregator(), 3, 1, 2), fed(MaxAggregator(), 3, 1, 2)
    smallest.retract(1)
    largest.retract(3)
    assert (smallest.finalize(), largest.finalize()) == (2, 2)


def test_min_stays_while_a_copy_of_it_is_left():
    smallest = fed(MinAggregator(), 1, 1, 2)
    smallest.retract(1)
    assert smallest.finalize() == 1


def test_rows_are_counted_with_null_and_values_without():
    assert fed(CountAggregator(), None, 1).finalize() == 2
    assert fed(CountValueAggregator(), None, 1).finalize() == 1
    assert fed(CountDistinctAggregator(), None, 1, 1, 2).finalize() == 2


@pytest.mark.parametrize("kind", [SumAggregator, AvgAggregator, MinAggregator, MaxAggregator])
def test_of_nothing_or_only_null_is_null(kind):
    assert kind().finalize() is None
    assert fed(kind(), None, None).finalize() is None
    gone = fed(kind(), 5)
    gone.retract(5)
    assert gone.finalize() is None


@pytest.mark.parametrize("kind", [*LINEAR, *KEEPING])
def test_update_takes_weights_and_weight_zero_does_nothing(kind):
    by_weight, one_by_one = kind(), fed(kind(), 7, 7, 7, 2)
    by_weight.update(7, 5)
    by_weight.update(2, 1)
    by_weight.update(1, 0)
    by_weight.update(7, -2)
    assert by_weight.finalize() == one_by_one.finalize()


@pytest.mark.parametrize("kind", [*LINEAR, *KEEPING])
def test_a_retraction_may_come_before_its_insert(kind):
    early = kind()
    early.retract(3)
    early.accumulate(3)
    early.accumulate(4)
    assert early.finalize() == fed(kind(), 4).finalize()


@pytest.mark.parametrize("kind", KEEPING)
def test_a_value_of_negative_weight_is_not_shown(kind):
    early = fed(kind(), 5)
    early.retract(1)
    early.retract(9)
    assert early.finalize() == fed(kind(), 5).finalize()


@pytest.mark.parametrize("kind", [*LINEAR, *KEEPING])
def test_merge_is_as_if_all_had_come_to_one(kind):
    left, right = fed(kind(), 1, 2, 2), fed(kind(), 2, 9)
    right.retract(1)
    left.merge(right)
    assert left.finalize() == fed(kind(), 2, 2, 2, 9).finalize()


@pytest.mark.parametrize("kind", [*LINEAR, *KEEPING])
def test_reset_forgets_everything(kind):
    used = fed(kind(), 1, 2)
    used.reset()
    assert used.finalize() == kind().finalize()
    used.accumulate(8)
    assert used.finalize() == fed(kind(), 8).finalize()


def test_linear_aggregates_retract_from_a_few_numbers_the_others_keep_values():
    assert all(kind().supports_efficient_retraction() for kind in LINEAR)
    assert not any(kind().supports_efficient_retraction() for kind in KEEPING)


def test_largest_plus_one_minus_one_is_no_overflow():
    total = fed(SumAggregator(), LARGEST, 1)
    total.retract(1)
    assert total.finalize() == LARGEST


@pytest.mark.parametrize(
    ("values", "shown"), [((LARGEST, 1), "9223372036854775808"), ((-LARGEST, -2), "-9223372036854775809")]
)
def test_a_final_sum_beyond_bigint_is_an_error_that_names_it(values, shown):
    with pytest.raises(ValueOverflow, match=shown) as caught:
        fed(SumAggregator(), *values).finalize()
    assert isinstance(caught.value, OverflowError)


def test_decimals_stay_exact_beyond_28_digits():
    values = [Decimal("12345678901234567890123456789012345.67"), Decimal("0.01")]
    assert str(fed(SumAggregator(), *values).finalize()) == "12345678901234567890123456789012345.68"


def test_a_decimal_sum_must_fit_its_type_only_at_the_end():
    total = fed(SumAggregator(pa.decimal128(5, 2)), Decimal("999.99"), Decimal("0.01"))
    with pytest.raises(ValueOverflow, match=r"DECIMAL\(5, 2\)"):
        total.finalize()
    total.retract(Decimal("0.01"))
    assert total.finalize() == Decimal("999.99")
    with pytest.raises(ValueOverflow, match=r"DECIMAL\(38, 0\)"):
        fed(SumAggregator(), Decimal(10**38 - 1), Decimal(1)).finalize()


def test_the_average_of_decimals_has_four_more_digits_half_up():
    assert str(fed(AvgAggregator(), Decimal("0.01"), Decimal("0.02"), Decimal("0.02")).finalize()) == "0.016667"
    assert str(fed(AvgAggregator(pa.decimal128(5, 1)), Decimal("0.1"), Decimal("0.2")).finalize()) == "0.2"
    assert str(fed(AvgAggregator(pa.decimal128(5, 1)), Decimal("-0.1"), Decimal("-0.2")).finalize()) == "-0.2"


def test_the_average_of_integers_is_rounded_once():
    assert fed(AvgAggregator(), LARGEST, LARGEST, LARGEST - 1).finalize() == (3 * LARGEST - 1) / 3


def test_doubles_sum_exactly_and_give_back_what_they_took():
    total = fed(SumAggregator(), 0.1, 0.2, 0.3, 1e16, -1e16)
    assert total.finalize() == 0.6
    for value in (1e16, -1e16, 0.1, 0.2):
        total.retract(value)
    assert total.finalize() == 0.3


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [SumAggregator, AvgAggregator])
def test_nan_and_infinities_leave_as_they_came(special, kind):
    aggregate = fed(kind(), 1.5, special)
    assert str(aggregate.finalize()) == str(special)
    aggregate.retract(special)
    assert aggregate.finalize() == 1.5


def test_infinities_of_both_signs_sum_to_nan():
    assert math.isnan(fed(SumAggregator(), math.inf, -math.inf).finalize())


def test_a_sum_of_negative_zeros_is_zero():
    assert math.copysign(1, fed(SumAggregator(), -0.0, -0.0).finalize()) == 1.0


def test_nan_is_the_largest_double_and_one_value():
    assert math.isnan(fed(MaxAggregator(), math.inf, math.nan).finalize())
    assert fed(MinAggregator(), math.nan, math.inf).finalize() == math.inf
    assert fed(CountDistinctAggregator(), math.nan, -math.nan, 0.0, -0.0).finalize() == 2
    assert math.copysign(1, fed(MinAggregator(), -0.0).finalize()) == 1.0


def test_min_and_max_take_any_ordered_type_and_distinct_any_value():
    assert fed(MinAggregator(), "b", "a").finalize() == "a"
    assert fed(MaxAggregator(), Decimal("1.0"), Decimal("2.50")).finalize() == Decimal("2.5")
    assert fed(CountDistinctAggregator(), {"a": [1]}, {"a": [1]}, {"a": [2]}).finalize() == 2


@pytest.mark.parametrize("value", ["text", True, Decimal("NaN")])
def test_what_is_not_a_number_cannot_be_summed(value):
    with pytest.raises((TypeError, ValueError)):
        SumAggregator().accumulate(value)


def test_decimals_and_doubles_do_not_mix():
    with pytest.raises(TypeError, match="no exact sum"):
        fed(SumAggregator(), Decimal(1), 1.0).finalize()
