"""GROUP BY as a kernel: what is shown, what is kept, what is counted and what is refused."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from laminae.errors import AggregateOverflow, StateIncompatible
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels.group_by.aggregates import (
    Accumulator,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    Function,
    IntegerTotal,
    Output,
    Tally,
    ValueSet,
    distinct,
)
from laminae.views.kernels.group_by.kernel import rows, step
from tests.support.traces import aggregate_delta

KEY = pa.field("k", pa.string())
ADDED_FIELD = pa.field("#4", pa.int64())


def view(accumulator: Accumulator, *functions: tuple[Function, pa.DataType], keys=(KEY,)) -> Aggregate:
    outputs = [Output(pa.field(function.name.lower(), kind), function, accumulator.id) for function, kind in functions]
    return Aggregate("sales", tuple(keys), (accumulator,), tuple(outputs))


COUNT = Aggregate("sales", (KEY,), (), (Output(pa.field("n", pa.int64()), Function.COUNT_ROWS),))
SUM = view(IntegerTotal("i"), (Function.SUM, pa.int64()), (Function.AVG, pa.float64()), (Function.COUNT, pa.int64()))


class Running:
    """A view fed epoch after epoch; rows are (key, value, weight)."""

    def __init__(self, aggregate: Aggregate, store: RunStore) -> None:
        self.aggregate, self.store, self.manifest = aggregate, store, Manifest()
        self.fresh: tuple[str, ...] = ()

    def __call__(self, *found, **options):
        ids = [kept.id for kept in self.aggregate.accumulators]
        given = [
            (key if isinstance(key, tuple) else (key,), dict.fromkeys(ids, value), weight)
            for key, value, weight in found
        ]
        keys = len(self.aggregate.keys)
        delta = aggregate_delta(self.aggregate, given, **options)
        self.last = step(self.aggregate, delta, self.manifest, self.store, self.fresh)
        self.manifest = self.last.manifest
        return sorted(
            (tuple(row.values()) for row in self.last.changes.to_pylist()), key=lambda row: str(row[2 : 2 + keys])
        )

    def rows(self):
        found = [
            tuple(row.values())
            for batch in rows(self.aggregate, self.manifest, self.store)
            for row in batch.to_pylist()
        ]
        return sorted(found, key=str)


def test_group_appears_changes_and_goes(store):
    run = Running(COUNT, store)
    assert run(("a", None, 1), ("b", None, 2)) == [("+I", 1, "a", 1), ("+I", 1, "b", 2)]
    assert run(("a", None, 1)) == [("-U", -1, "a", 1), ("+U", 1, "a", 2)]
    assert run.rows() == [("a", 2), ("b", 2)]
    assert run(("a", None, -2)) == [("-D", -1, "a", 2)]
    assert run.rows() == [("b", 2)]
    assert run(("b", None, -2)) == [("-D", -1, "b", 2)]
    assert run.manifest == Manifest()


def test_group_whose_values_do_not_change_says_nothing(store):
    run = Running(SUM, store)
    assert run(("a", 5, 1)) == [("+I", 1, "a", 5, 5.0, 1)]
    assert run(("a", 9, 1), ("a", 9, -1)) == []
    assert run(("a", 5, -1), ("a", 5, 1)) == []


def test_nulls_are_skipped_and_the_sum_of_nothing_is_null(store):
    run = Running(SUM, store)
    assert run(("a", None, 1)) == [("+I", 1, "a", None, None, 0)]
    assert run(("a", 4, 1)) == [("-U", -1, "a", None, None, 0), ("+U", 1, "a", 4, 4.0, 1)]
    assert run(("a", 4, -1)) == [("-U", -1, "a", 4, 4.0, 1), ("+U", 1, "a", None, None, 0)]


def test_null_is_a_group(store):
    assert Running(COUNT, store)((None, None, 1), ("", None, 1)) == [("+I", 1, "", 1), ("+I", 1, None, 1)]


def test_sum_may_pass_its_type_within_an_epoch(store):
    run = Running(SUM, store)
    largest = 2**63 - 1
    assert run(("a", largest, 1)) == [("+I", 1, "a", largest, float(largest), 1)]
    assert run(("a", 1, 1), ("a", 1, -1)) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_sum_that_does_not_fit_names_view_key_and_value(store, sign):
    run = Running(SUM, store)
    run(("a", sign * (2**63 - 1), 1))
    before = run.manifest
    with pytest.raises(AggregateOverflow) as error:
        run(("a", sign * 5, 1), ("b", 1, 1))
    for told in ("view sales", "k = 'a'", str(sign * (2**63 + 4)), "int64"):
        assert told in str(error.value)
    run.manifest = before
    assert run.rows() == [("a", sign * (2**63 - 1), sign * float(2**63), 1)]


def test_sum_beyond_its_type_is_no_error_while_nobody_sees_it(store):
    run = Running(SUM, store)
    assert run(("a", 2**62, -3)) == []
    assert run(("a", 2**62, 4)) == [("+I", 1, "a", 2**62, float(2**62), 1)]


def test_decimal_sum_that_does_not_fit_is_told_with_its_scale(store):
    run = Running(view(DecimalTotal("d", 2), (Function.SUM, pa.decimal128(5, 2))), store)
    run(("a", Decimal("999.99"), 1))
    with pytest.raises(AggregateOverflow, match=r"1000\.00 for the key k = 'a', which decimal128\(5, 2\)"):
        run(("a", Decimal("0.01"), 1))


def test_decimal_sums_beyond_128_bits_come_back(store):
    run = Running(view(DecimalTotal("d", 0), (Function.SUM, pa.decimal128(38, 0))), store)
    large = Decimal(9 * 10**37)
    for _ in range(3):
        run(("a", large, -1))
    for _ in range(3):
        run(("a", large, 1))
    assert run(("a", large, 1)) == [("+I", 1, "a", large)]


def test_long_decimals_come_in_two_parts(store):
    run = Running(view(DecimalTotal("d", 2), (Function.SUM, pa.decimal128(38, 2))), store)
    whole = [(("a",), {"d": Decimal("0.07")}, 2), (("b",), {"d": Decimal("-0.05")}, 1)]
    delta = aggregate_delta(run.aggregate, whole)
    high = pa.array([Decimal(5), Decimal(-3)], pa.decimal128(38, 0))
    changes = step(run.aggregate, delta.append_column("d_high", high), Manifest(), store).changes.to_pylist()
    assert {(row["k"], row["sum"]) for row in changes} == {
        ("a", Decimal("5000000000000000000.14")),
        ("b", Decimal("-3000000000000000000.05")),
    }
    high = pa.array([Decimal(2 * 10**18), Decimal(0)], pa.decimal128(38, 0))
    with pytest.raises(AggregateOverflow, match=r"2000000000000000000000000000000000000\.14 for the key k = 'a'"):
        step(run.aggregate, delta.append_column("d_high", high), Manifest(), store)


def test_partial_decimal_sum_that_spark_could_not_hold_is_an_overflow(store):
    run = Running(view(DecimalTotal("d", 2), (Function.SUM, pa.decimal128(38, 2))), store)
    delta = aggregate_delta(run.aggregate, [(("a",), {"d": Decimal("1.00")}, 1), (("b",), {"d": None}, 1)])
    lost = pa.nulls(2, pa.decimal128(38, 2))
    delta = delta.set_column(delta.column_names.index("d_sum"), "d_sum", lost)
    with pytest.raises(AggregateOverflow, match="longer than 38 digits within one epoch for the key k = 'a'"):
        step(run.aggregate, delta, Manifest(), store)


@pytest.mark.parametrize(
    ("values", "average"),
    [(["0.05", "0.06"], "0.055000"), (["1", "0", "0"], "0.333333"), (["-1", "-1", "0"], "-0.666667")],
)
def test_decimal_average_is_rounded_half_up(store, values, average):
    run = Running(view(DecimalTotal("d", 2), (Function.AVG, pa.decimal128(14, 6))), store)
    assert run(*(("a", Decimal(value).quantize(Decimal("0.01")), 1) for value in values)) == [
        ("+I", 1, "a", Decimal(average))
    ]


def test_float_sum_gives_back_exactly_what_is_retracted(store):
    run = Running(view(FloatTotal("x"), (Function.SUM, pa.float64()), (Function.AVG, pa.float64())), store)
    run(("a", 1e16, 1), ("a", 0.1, 1), ("a", 0.2, 1))
    assert run(("a", 1e16, -1)) == [
        ("-U", -1, "a", 1e16, 1e16 / 3),
        ("+U", 1, "a", 0.30000000000000004, 0.15000000000000002),
    ]
    assert run(("a", float("inf"), 1))[1][3] == float("inf")
    assert run(("a", float("inf"), -1))[1][3] == 0.30000000000000004
    assert run(("a", 0.1, -1), ("a", 0.2, -1))[0][:3] == ("-D", -1, "a")
    assert run.manifest == Manifest()


def test_minimum_falls_back_to_the_next_value_when_it_is_retracted(store):
    run = Running(
        view(ValueSet("m", pa.string(), True, True), (Function.MIN, pa.string()), (Function.MAX, pa.string())), store
    )
    assert run(("a", "q", 1), ("a", "p", 2), ("a", "r", 1)) == [("+I", 1, "a", "p", "r")]
    assert run(("a", "p", -1)) == []
    assert run(("a", "p", -1)) == [("-U", -1, "a", "p", "r"), ("+U", 1, "a", "q", "r")]
    assert run(("a", "q", -1), ("a", "z", 1)) == [("-U", -1, "a", "q", "r"), ("+U", 1, "a", "r", "z")]
    assert run(("a", "z", -1), ("a", "r", -1)) == [("-D", -1, "a", "r", "z")]


def test_value_deleted_before_it_is_inserted_is_no_minimum(store):
    run = Running(view(ValueSet("m", pa.int64(), True), (Function.MIN, pa.int64())), store)
    assert run(("a", 5, 2), ("a", 1, -1)) == [("+I", 1, "a", 5)]
    assert (run.last.counts.anomalies, run.last.counts.recovered) == (1, 0)
    assert run(("a", 1, 1)) == []
    assert (run.last.counts.anomalies, run.last.counts.recovered) == (0, 1)
    assert run(("a", 1, 1)) == [("-U", -1, "a", 5), ("+U", 1, "a", 1)]


def test_distinct_values_are_counted_while_their_weight_is_positive(store):
    run = Running(view(ValueSet("m", pa.float64()), (Function.COUNT_DISTINCT, pa.int64())), store)
    assert run(("a", 0.0, 1), ("a", -0.0, 1), ("a", float("nan"), 1), ("a", float("nan"), 1)) == [("+I", 1, "a", 2)]
    assert run(("a", 0.0, -1)) == []
    assert run(("a", 0.0, -1)) == [("-U", -1, "a", 2), ("+U", 1, "a", 1)]


def of_fields(**fields):
    """Dictionaries whose fields come in this order."""
    return st.tuples(*fields.values()).map(lambda values: dict(zip(fields, values, strict=True)))


NESTED = {
    pa.struct([("n", pa.int64()), ("s", pa.string())]): of_fields(
        n=st.sampled_from([None, -1, 0, 2]), s=st.sampled_from([None, "", "a", "b"])
    ),
    pa.list_(pa.int32()): st.lists(st.sampled_from([None, -2, 0, 3]), max_size=3),
    pa.list_(pa.struct([("n", pa.float64())])): st.lists(of_fields(n=st.sampled_from([None, -1.5, 0.0])), max_size=2),
    pa.struct([("l", pa.list_(pa.string())), ("b", pa.binary())]): of_fields(
        l=st.one_of(st.none(), st.lists(st.sampled_from(["", "a"]), max_size=2)), b=st.sampled_from([b"", b"x"])
    ),
}


def in_order(value):
    """As Spark orders nested values: by the first part that differs, NULL before others."""
    if isinstance(value, dict):
        return (1, tuple(map(in_order, value.values())))
    return (1, tuple(map(in_order, value))) if isinstance(value, list) else (0,) if value is None else (1, value)


@pytest.mark.parametrize("kind", NESTED, ids=str)
@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_extremes_and_distinct_nested_values_are_those_of_the_rows(tmp_path_factory, kind, data):
    values = st.one_of(st.none(), NESTED[kind])
    functions = ((Function.MIN, kind), (Function.MAX, kind), (Function.COUNT_DISTINCT, pa.int64()))
    run = Running(view(ValueSet("m", kind, True, True), *functions), RunStore.at(str(tmp_path_factory.mktemp("home"))))
    alive: list[object] = []
    for _ in range(4):
        came = data.draw(st.lists(values, max_size=4))
        gone = [value for value in alive if data.draw(st.booleans())]
        run(*(("a", value, 1) for value in came), *(("a", value, -1) for value in gone))
        for value in gone:
            alive.remove(value)
        alive += came
        seen = sorted((value for value in alive if value is not None), key=in_order)
        counts = len({repr(in_order(value)) for value in seen})
        shown = ("a", seen[0], seen[-1], counts) if seen else ("a", None, None, 0)
        assert run.rows() == ([shown] if alive else [])


def test_delete_of_a_row_never_seen_is_counted_and_not_shown(store):
    run = Running(COUNT, store)
    assert run(("a", None, -1)) == []
    assert run.last.counts.anomalies == 1
    assert run.rows() == []
    assert run(("a", None, 1)) == []
    assert run.last.counts.recovered == 1
    assert run(("a", None, 1)) == [("+I", 1, "a", 1)]


def test_count_of_values_deleted_and_never_inserted_is_not_below_zero(store):
    run = Running(SUM, store)
    assert run(("a", None, 3), ("a", 5, -1)) == [("+I", 1, "a", None, None, 0)]
    assert run.last.counts.anomalies == 1
    assert run.rows() == [("a", None, None, 0)]
    assert run(("a", 5, 1)) == []
    assert run.last.counts.recovered == 1
    assert run(("a", 5, 1)) == [("-U", -1, "a", None, None, 0), ("+U", 1, "a", 5, 5.0, 1)]


GLOBAL = Aggregate(
    "total",
    (),
    (IntegerTotal("i"), Tally("t"), ValueSet("v", pa.int64(), True, True)),
    (
        Output(pa.field("n", pa.int64()), Function.COUNT_ROWS),
        Output(pa.field("i", pa.int64()), Function.COUNT, "i"),
        Output(pa.field("t", pa.int64()), Function.COUNT, "t"),
        Output(pa.field("d", pa.int64()), Function.COUNT_DISTINCT, "v"),
    ),
)
GROUPED = Aggregate("total", (KEY,), GLOBAL.accumulators, GLOBAL.outputs)


@given(
    epochs=st.lists(
        st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.integers(-3, 3).filter(bool)), max_size=5), max_size=5
    ),
    is_global=st.booleans(),
)
def test_no_count_is_ever_below_zero_whatever_is_deleted(tmp_path_factory, epochs, is_global):
    store = RunStore.at(str(tmp_path_factory.mktemp("home")))
    run, seen = Running(GLOBAL if is_global else GROUPED, store), Counter()
    for rows_in in epochs:
        run(*((() if is_global else "a", value, weight) for value, weight in rows_in))
        for value, weight in rows_in:
            seen[value] += weight
        total, valued = sum(seen.values()), sum(n for value, n in seen.items() if value is not None)
        distinct_values = sum(n > 0 for value, n in seen.items() if value is not None)
        counts = (max(total, 0), max(valued, 0), max(valued, 0), distinct_values)
        shown = [row if is_global else row[1:] for row in run.rows()]
        assert shown == ([counts] if is_global or total > 0 else [])
        assert all(count >= 0 for row in run.last.changes.to_pylist() for count in list(row.values())[-4:])


def test_global_count_of_rows_never_seen_is_zero_and_counted(store):
    run = Running(GLOBAL, store)
    assert run(((), 7, -4)) == [("+I", 1, 0, 0, 0, 0)]
    assert run.last.counts.anomalies == 1
    assert run(((), 7, 5)) == [("-U", -1, 0, 0, 0, 0), ("+U", 1, 1, 1, 1, 1)]


def test_global_aggregate_always_has_one_row(store):
    whole = Aggregate(
        "total",
        (),
        (IntegerTotal("i"),),
        (Output(pa.field("n", pa.int64()), Function.COUNT_ROWS), Output(pa.field("s", pa.int64()), Function.SUM, "i")),
    )
    run = Running(whole, store)
    assert run() == [("+I", 1, 0, None)]
    assert run() == []
    assert run(((), 7, 2)) == [("-U", -1, 0, None), ("+U", 1, 2, 14)]
    assert run(((), 7, -2)) == [("-U", -1, 2, 14), ("+U", 1, 0, None)]
    assert run.rows() == [(0, None)]


def test_global_overflow_names_all_rows(store):
    run = Running(view(IntegerTotal("i"), (Function.SUM, pa.int64()), keys=()), store)
    with pytest.raises(AggregateOverflow, match="all rows"):
        run(((), 2**62, 2))


def test_distinct_rows_are_shown_once(store):
    run = Running(distinct("d", [KEY, pa.field("f", pa.float64())]), store)
    assert run((("a", 0.0), None, 2), (("a", -0.0), None, 1)) == [("+I", 1, "a", 0.0)]
    assert run((("a", 0.0), None, -2)) == []
    assert run((("a", 0.0), None, -1)) == [("-D", -1, "a", 0.0)]


GROWN = Aggregate(
    "sales",
    (KEY,),
    (Tally("t"), *SUM.accumulators, ValueSet("m", pa.int64(), True)),
    (*SUM.outputs, Output(pa.field("min", pa.int64()), Function.MIN, "m")),
)


def test_new_aggregate_beside_an_old_one_is_filled_and_shifts_no_state(store):
    run = Running(SUM, store)
    run(("a", 5, 1), ("b", None, 1))
    run.aggregate, run.fresh = GROWN, ("t", "m")
    assert run(("a", 3, 1), ("b", None, 1)) == [("-U", -1, "a", 5, 5.0, 1, None), ("+U", 1, "a", 8, 4.0, 2, 3)]
    run.fresh = ()
    assert run.rows() == [("a", 8, 4.0, 2, 3), ("b", None, None, 0, None)]
    assert run(("b", 1, 1), ("c", 2, 1))[-1] == ("+I", 1, "c", 2, 2.0, 1, 2)


@pytest.mark.parametrize("lost", ["i", "t", "m"])
def test_state_that_lacks_an_accumulator_of_the_view_is_refused_by_name_and_not_read_as_null(store, lost):
    left = tuple(each for each in GROWN.accumulators if each.id != lost)
    run = Running(Aggregate("sales", (KEY,), left, ()), store)
    run(("a", 5, 1))
    run.aggregate = GROWN
    with pytest.raises(StateIncompatible, match=rf"view sales .* at {lost}: .*CREATE OR REPLACE"):
        run(("a", 3, 1))
    with pytest.raises(StateIncompatible, match=rf"view sales .* at {lost}: .*CREATE OR REPLACE"):
        run.rows()
    assert run(("b", 3, 1)) == [("+I", 1, "b", 3, 3.0, 1, 3)]


def test_groups_that_were_gone_when_an_accumulator_was_added_lack_nothing(store):
    run = Running(SUM, store)
    run(("a", 5, 1), ("b", 5, 1), ("c", 1, -1))
    run(("a", 5, -1))
    run.aggregate, run.fresh = GROWN, ("t", "m")
    run(("b", 5, 1))
    run.fresh = ()
    assert run(("a", 5, 1)) == [("+I", 1, "a", 5, 5.0, 1, 5)]
    assert run(("c", 1, 2)) == [("+I", 1, "c", 1, 1.0, 1, 1)]


def test_maximum_added_beside_a_minimum_is_found_among_the_values_that_are_there(store):
    run = Running(view(ValueSet("m", pa.int64(), True), (Function.MIN, pa.int64())), store)
    run(("a", 5, 1), ("a", 9, 1))
    run.aggregate = view(ValueSet("m", pa.int64(), True, True), (Function.MIN, pa.int64()), (Function.MAX, pa.int64()))
    assert run(("a", 7, 1)) == [("-U", -1, "a", 5, None), ("+U", 1, "a", 5, 9)]


def test_counts_tell_rows_in_and_out_and_kept(store):
    run = Running(SUM, store)
    run(("a", 5, 1), ("b", 1, 1))
    assert (run.last.counts.rows_in, run.last.counts.rows_out, run.last.counts.state_rows) == (2, 2, 2)


@pytest.mark.parametrize("now", [DecimalTotal("m", 4), FloatTotal("m")])
def test_sum_that_was_kept_in_another_type_is_not_read_as_one_of_this(store, now):
    kind, result = pa.decimal128(10, 2), (Function.SUM, pa.decimal128(20, 2))
    run = Running(view(DecimalTotal("m", 2), result), store)
    run(("a", Decimal("1.25"), 1))
    run.aggregate = view(now, (Function.SUM, kind))
    with pytest.raises(StateIncompatible, match="another type"):
        list(rows(run.aggregate, run.last.manifest, store))


def test_distinct_rows_that_gain_a_column_are_those_with_null_there(store):
    old, new = distinct("v", [pa.field("k", pa.string())]), distinct("v", [pa.field("k", pa.string()), ADDED_FIELD])
    table = pa.table({"_hash": pa.array([7, 9]), "k": ["a", "b"], "_weight": [1, 1]})
    manifest = step(old, table, Manifest(), store).manifest
    again = pa.table({"_hash": [7, 11], "k": ["a", "b"], "#4": pa.array([None, 5], pa.int64()), "_weight": [1, 1]})
    found = step(new, again, manifest, store)
    assert found.changes.column("k").to_pylist() == ["b"]
    shown = [row for batch in rows(new, found.manifest, store) for row in batch.to_pylist()]
    assert sorted(shown, key=repr) == [{"k": "a", "#4": None}, {"k": "b", "#4": 5}, {"k": "b", "#4": None}]
