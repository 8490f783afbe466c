"""The laws of Z-sets: any order, any split into epochs, the same result; and nothing is ever below zero or lost."""

import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.errors import ValueOverflow
from laminae.zset import (
    AvgAggregator,
    CdcEnvelope,
    CdcOperation,
    CdcSource,
    ChangelogBuffer,
    ChangelogRecord,
    ChangelogRef,
    CountAggregator,
    CountDistinctAggregator,
    CountValueAggregator,
    EmittedRows,
    GroupedAvg,
    GroupedCount,
    GroupedDistinct,
    GroupedMax,
    GroupedMin,
    GroupedSum,
    LateDataRetractionGenerator,
    MaxAggregator,
    MinAggregator,
    RetractionKey,
    SumAggregator,
    WindowId,
    consolidate,
    encode_changelog,
    from_change_feed,
    net_changes,
    read_event,
    to_change_feed,
)
from laminae.zset.canonical import canonical
from laminae.zset.exact_float import FloatSums, float_of_units, float_units
from laminae.zset.outcome import OUTCOMES, NoChange, outcome_of, records_of
from laminae.zset.wide_conversion import fits_int64, of_columns, of_ints, to_columns, to_ints
from laminae.zset.wide_integers import WideInts
from tests.support.examples import examples

LAWFUL = settings(max_examples=examples(1000), deadline=None, suppress_health_check=list(HealthCheck))
SOURCE = CdcSource("laminae", "default", "v", 1)

int64s = st.integers(-(2**63), 2**63 - 1)
weights = st.integers(-3, 3)
doubles = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 5e-324, 1e16, 0.1, 1.7976931348623157e308]))
decimals = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))
small_values = st.one_of(st.none(), st.integers(-3, 3))

COLUMNS = {
    pa.int64(): int64s,
    pa.decimal128(38, 2): st.one_of(decimals, st.integers(-9, 9).map(lambda n: Decimal(f"{n}E-2"))),
    pa.float64(): doubles,
}


def shown(value):
    """Text that tells NaN from NULL and hides how a decimal is written."""
    if isinstance(value, Decimal):
        value = value.normalize(Context(prec=100))
    return repr(value)


@st.composite
def histories(draw):
    """Rows (key, value) that come and, some of them, go again: each delete after its insert, cut into epochs."""
    steps, present = [], []
    for _ in range(draw(st.integers(0, 12))):
        if present and draw(st.booleans()):
            steps.append((*present.pop(draw(st.integers(0, len(present) - 1))), -1))
        else:
            row = (draw(st.sampled_from(["a", "b", None])), draw(small_values))
            present.append(row)
            steps.append((*row, 1))
    cuts = sorted(draw(st.lists(st.integers(0, len(steps)), max_size=4)))
    epochs = [steps[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(steps)], strict=True)]
    return epochs, present


class TotalsView:
    """SELECT key, COUNT(*), COUNT(v), COUNT(DISTINCT v), SUM(v), AVG(v), MIN(v), MAX(v) GROUP BY key, step by step."""

    KINDS = (
        CountAggregator, CountValueAggregator, CountDistinctAggregator, SumAggregator, AvgAggregator, MinAggregator,
        MaxAggregator,
    )  # fmt: skip

    def __init__(self):
        self.groups, self.emitted = {}, {}

    def step(self, delta, time):
        touched = {}
        for key, value, weight in delta:
            group = self.groups.setdefault(key, tuple(kind() for kind in self.KINDS))
            for aggregate in group:
                aggregate.update(value, weight)
            touched[key] = group
        for key, group in touched.items():
            new = (key, *(aggregate.finalize() for aggregate in group)) if group[0].finalize() > 0 else None
            yield from records_of(outcome_of(self.emitted.get(key), new), time)
            self.emitted[key] = new


def totals_of(rows):
    """The same from scratch."""
    found = Counter()
    for key in {key for key, _ in rows}:
        values = [value for own, value in rows if own == key]
        known = [value for value in values if value is not None]
        found[
            (
                key,
                len(values),
                len(known),
                len(set(known)),
                sum(known) if known else None,
                sum(known) / len(known) if known else None,
                min(known, default=None),
                max(known, default=None),
            )
        ] += 1
    return found


@LAWFUL
@given(histories())
def test_prop_integrated_changelog_equals_the_query_over_the_final_input(history):
    epochs, present = history
    view, integral = TotalsView(), Counter()
    for time, delta in enumerate(epochs):
        emitted = list(view.step(delta, time))
        for record in emitted:
            integral[record.data] += record.weight
            assert integral[record.data] >= 0
        per_key = Counter((record.data[0], record.operation) for record in emitted)
        assert not per_key or max(per_key.values()) == 1
        for before, after in pairwise(emitted):
            if before.operation is CdcOperation.UPDATE_BEFORE:
                assert (after.operation, after.data[0]) == (CdcOperation.UPDATE_AFTER, before.data[0])
    assert +integral == totals_of(present)


@LAWFUL
@given(histories(), st.randoms(use_true_random=False))
def test_prop_any_split_of_the_same_input_integrates_to_the_same(history, random):
    epochs, _ = history
    steps = [step for epoch in epochs for step in epoch]
    one, many = TotalsView(), TotalsView()
    whole = list(one.step(steps, 0))
    split = [record for step in steps for record in many.step([step], 0)]
    mixed = split[:]
    random.shuffle(mixed)
    assert {record.data: record.weight for record in consolidate(whole)} == {
        record.data: record.weight for record in consolidate(mixed)
    }


@st.composite
def weighted(draw, values):
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), values), weights), max_size=15))
    return rows, draw(st.permutations(rows)), draw(st.integers(0, len(rows)))


def final(aggregate):
    try:
        found = aggregate.finalize()
    except ValueOverflow:
        return "overflow"
    return [shown(value) for value in found.tolist()] if hasattr(found, "tolist") else shown(found)


@LAWFUL
@given(st.sampled_from(list(COLUMNS)).flatmap(lambda kind: st.tuples(st.just(kind), weighted(COLUMNS[kind]))))
def test_prop_order_and_split_do_not_matter_to_any_aggregate_and_columns_agree_with_single_groups(case):
    kind, (rows, permuted, cut) = case
    pairs = (
        (CountValueAggregator, GroupedCount),
        (SumAggregator, lambda: GroupedSum(kind, pa.decimal128(38, 2) if pa.types.is_decimal(kind) else None)),
        (
            lambda: AvgAggregator(GroupedAvg(kind).result_type if pa.types.is_decimal(kind) else None),
            lambda: GroupedAvg(kind),
        ),
        (CountDistinctAggregator, lambda: GroupedDistinct(kind)),
        (MinAggregator, lambda: GroupedMin(kind)),
        (MaxAggregator, lambda: GroupedMax(kind)),
    )
    for scalar, grouped in pairs:
        singles = []
        for group in range(3):
            forward, left, right = scalar(), scalar(), scalar()
            for own, value, weight in rows:
                if own == group:
                    forward.update(value, weight)
            for place, (own, value, weight) in enumerate(permuted):
                if own == group:
                    (left if place < cut else right).update(value, weight)
            left.merge(right)
            assert final(left) == final(forward)
            singles.append(final(forward))
        left, right = grouped(), grouped()
        for aggregate, part in ((left, permuted[:cut]), (right, permuted[cut:])):
            columns = list(zip(*part, strict=True)) or [(), (), ()]
            aggregate.update_many(
                np.array(columns[0], dtype=np.int64), pa.array(columns[1], kind), np.array(columns[2], dtype=np.int64)
            )
        left.merge(right)
        together = final(left)
        if together == "overflow":
            assert "overflow" in singles
        else:
            missing = [final(scalar())] * (3 - len(together))
            assert together + missing == singles


def exact_sum(values):
    """fsum, which gives up where a sum leaves the range on the way, also when it comes back; then by fractions."""
    try:
        return math.fsum(values)
    except OverflowError:
        total = sum(map(Fraction, values))
        # From here on the nearest double would be 2 ** 1024.
        if abs(total) >= 2**1024 - 2**970:
            return math.inf if total > 0 else -math.inf
        return total.numerator / total.denominator


@LAWFUL
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=25), st.randoms(use_true_random=False))
def test_prop_float_sums_equal_fsum_in_any_order_with_retractions(values, random):
    kept = [value for value in values if random.random() < 0.7]
    gone = list((Counter(map(float.hex, values)) - Counter(map(float.hex, kept))).elements())
    steps = [(value, 1) for value in values] + [(float.fromhex(text), -1) for text in gone]
    random.shuffle(steps)
    expected = float_of_units(sum(map(float_units, kept)))
    assert expected == exact_sum(kept)
    sums = FloatSums.empty()
    for begin in range(0, len(steps), 7):
        part = steps[begin : begin + 7]
        numbers, signs = np.array([v for v, _ in part]), np.array([w for _, w in part], dtype=np.int64)
        sums = sums + FloatSums.of_values(np.zeros(len(part), dtype=np.int64), numbers, signs)
    assert sums.finalize(1).tolist() == [expected]
    total = SumAggregator()
    for value, weight in steps:
        total.update(value, weight)
    assert total.finalize() == (expected if kept else None)


@st.composite
def wide_columns(draw):
    limbs = draw(st.integers(2, 4))
    room = 64 * limbs - 2
    numbers = st.integers(0, room).flatmap(lambda bits: st.integers(-(1 << bits), 1 << bits))
    count = draw(st.integers(1, 8))
    columns = [draw(st.lists(numbers, min_size=count, max_size=count)) for _ in range(2)]
    factors = draw(st.lists(int64s, min_size=count, max_size=count))
    return limbs, *columns, factors


def wrapped(value, limbs):
    modulus = 1 << (64 * limbs)
    return (value + modulus // 2) % modulus - modulus // 2


@LAWFUL
@given(wide_columns(), st.randoms(use_true_random=False))
def test_prop_wide_integers_are_pythons_modulo_their_width(case, random):
    limbs, left, right, factors = case
    a, b = of_ints(left, limbs), of_ints(right, limbs)
    groups = [random.randrange(3) for _ in left]
    assert to_ints(a) == left
    assert to_ints(a + b) == [wrapped(x + y, limbs) for x, y in zip(left, right, strict=True)]
    assert to_ints(a - b) == [wrapped(x - y, limbs) for x, y in zip(left, right, strict=True)]
    assert to_ints(a.times(np.array(factors, dtype=np.int64))) == [
        wrapped(x * y, limbs) for x, y in zip(left, factors, strict=True)
    ]
    assert to_ints(a.sum_groups(np.array(groups), 3)) == [
        wrapped(sum(x for x, own in zip(left, groups, strict=True) if own == group), limbs) for group in range(3)
    ]
    assert to_ints(a.sum_runs(np.array([0]))) == [wrapped(sum(left), limbs)]
    assert a.less_than(b).tolist() == [x < y for x, y in zip(left, right, strict=True)]
    assert fits_int64(a).tolist() == [-(2**63) <= x < 2**63 for x in left]
    assert to_ints(of_columns(to_columns(a))) == left


@LAWFUL
@given(st.lists(st.tuples(int64s, int64s), min_size=1, max_size=8))
def test_prop_a_value_times_its_weight_is_exact(pairs):
    values, factors = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    assert to_ints(WideInts.of_products(values, factors)) == [value * weight for value, weight in pairs]


rows_of_any_kind = st.fixed_dictionaries(
    {
        "s": st.sampled_from(["", "x", None]),
        "f": st.sampled_from([0.0, -0.0, math.nan, None, 1.5]),
        "l": st.sampled_from([None, [], [1], [None]]),
    }
)
ROW_SCHEMA = pa.schema([("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.int64())), ("_weight", pa.int64())])


def as_counter(table):
    found = Counter()
    for row in table.to_pylist():
        weight = row.pop("_weight")
        found[canonical(row)] += weight
    return found


@LAWFUL
@given(st.lists(st.tuples(rows_of_any_kind, weights), max_size=15), st.randoms(use_true_random=False))
def test_prop_consolidation_sums_is_idempotent_and_independent_of_order(changes, random):
    expected = Counter()
    for row, weight in changes:
        expected[canonical(row)] += weight
    expected = {row: weight for row, weight in expected.items() if weight}
    given_rows = [{**row, "_weight": weight} for row, weight in changes]
    table = consolidate(pa.Table.from_pylist(given_rows, ROW_SCHEMA))
    assert table.num_rows == len(expected)
    assert as_counter(table) == expected
    assert as_counter(consolidate(table)) == expected
    random.shuffle(given_rows)
    assert as_counter(consolidate(pa.Table.from_pylist(given_rows, ROW_SCHEMA))) == expected
    records = consolidate([ChangelogRecord(row, weight, 0) for row, weight in changes])
    assert {canonical(record.data): record.weight for record in records} == expected


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), int64s, st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)
json_rows = st.dictionaries(st.text(), json_values, max_size=4)
optional_times = st.one_of(st.none(), st.integers(0, 2**60))


@LAWFUL
@given(
    st.sampled_from(["c", "u", "d", "r", "t", "m"]), st.integers(0, 2**53), json_rows, json_rows, optional_times,
    st.sampled_from(["omit", "explicit"]), st.booleans(),
)  # fmt: skip
def test_prop_an_envelope_comes_back_as_it_was(op, time, before, after, extra_time, nulls, is_wrapped):
    envelope = CdcEnvelope(
        op,
        time,
        CdcSource("n", "d", "t", 3, {"lsn": time}),
        before if op in "ud" else None,
        after if op in "cur" else None,
        ts_us=extra_time,
        transaction={"id": "1"} if extra_time else None,
    )
    text = envelope.to_json(nulls=nulls)
    if is_wrapped:
        text = '{"schema":{"type":"struct"},"payload":' + text + "}"
    assert CdcEnvelope.from_json(text) == envelope


@st.composite
def changelogs(draw):
    """Changes of every operation, pairs among them."""
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        key, copies = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        operation = draw(st.sampled_from([*CdcOperation, "pair"]))
        if operation == "pair":
            rows += [("-U", -copies, key, draw(st.text(max_size=3))), ("+U", copies, key, draw(st.text(max_size=3)))]
        else:
            rows.append(
                (operation.value, operation.weight * copies, key, draw(st.one_of(st.none(), st.text(max_size=3))))
            )
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    kinds = (("_op", pa.string()), ("_weight", pa.int64()), ("id", pa.int64()), ("v", pa.string()))
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds, columns, strict=True)})


def integral(records):
    return {canonical(record.data): record.weight for record in consolidate(records)}


@LAWFUL
@given(changelogs(), st.sampled_from([(), ("id",)]), st.booleans())
def test_prop_debezium_messages_of_a_changelog_integrate_to_it(table, key, tombstones):
    messages = encode_changelog(table, SOURCE, key=key, tombstones=tombstones and bool(key), ts_ms=5)
    events = [event for event in map(read_event, messages.values.to_pylist()) if event is not None]
    expected = [ChangelogRecord({"id": row["id"], "v": row["v"]}, row["_weight"], 5) for row in table.to_pylist()]
    assert integral([record for event in events for record in event.changes()]) == integral(expected)


@LAWFUL
@given(changelogs())
def test_prop_a_change_feed_says_the_same_as_the_changelog(table):
    back = from_change_feed(to_change_feed(table))
    assert as_counter(consolidate(back).drop_columns(["_op"])) == as_counter(consolidate(table).drop_columns(["_op"]))


@LAWFUL
@given(st.integers(0, 6), st.lists(st.one_of(st.integers(0, 5), st.just("push"), st.just("drain")), max_size=20))
def test_prop_the_buffer_never_loses_and_never_reorders(capacity, actions):
    buffer, drained, sent = ChangelogBuffer.with_capacity(capacity), [], 0
    for action in actions:
        if action == "drain":
            drained += [ref.row_index for ref in buffer.drain()]
        elif action == "push":
            sent += buffer.push(ChangelogRef(0, sent, 1, CdcOperation.INSERT))
        else:
            sent += buffer.push_many(0, np.arange(sent, sent + action), 1)
        assert len(buffer) == sent - len(drained) <= capacity
    drained += [ref.row_index for ref in buffer.drain()]
    assert drained == list(range(sent))


@st.composite
def feeds(draw):
    """A table by id, what happened to it in a few commits, and what it is afterwards."""
    begin = draw(st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=4))
    now, rows = dict(begin), []
    for version in range(draw(st.integers(0, 4))):
        for key in draw(st.sets(st.integers(0, 3))):
            old, new = now.get(key), draw(st.one_of(st.none(), st.integers(0, 2)))
            if old is not None and new is not None:
                rows += [("update_preimage", version, key, old), ("update_postimage", version, key, new)]
            elif old is not None:
                rows.append(("delete", version, key, old))
            elif new is not None:
                rows.append(("insert", version, key, new))
            now[key] = new
            now = {key: value for key, value in now.items() if value is not None}
    rows = draw(st.permutations(rows))
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    kinds = (("_change_type", pa.string()), ("_commit_version", pa.int64()), ("id", pa.int64()), ("v", pa.int64()))
    table = pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds, columns, strict=True)})
    return begin, table, now


@LAWFUL
@given(feeds(), st.booleans())
def test_prop_net_changes_lead_from_the_first_state_to_the_last(case, compute_updates):
    begin, table, end = case
    found = net_changes(table, row_id=["id"], compute_updates=compute_updates).to_pylist()
    now = dict(begin)
    for row in found:
        if row["_change_type"] in ("delete", "update_preimage"):
            assert now.pop(row["id"]) == row["v"]
        else:
            assert row["id"] not in now
            now[row["id"]] = row["v"]
    assert now == end
    kinds = [row["_change_type"] for row in found]
    for place, kind in enumerate(kinds):
        if kind == "update_preimage":
            assert compute_updates
            assert kinds[place + 1] == "update_postimage"
            assert found[place + 1]["id"] == found[place]["id"]
            assert found[place + 1]["v"] != found[place]["v"]
    changed = {key for key in {*begin, *end} if begin.get(key) != end.get(key)}
    assert {row["id"] for row in found} == changed


@LAWFUL
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), doubles)), unique_by=lambda row: row[0]), max_size=5
    )
)
def test_prop_columns_of_keys_are_corrected_as_single_keys_are(epochs):
    generator, emitted = LateDataRetractionGenerator(), EmittedRows(pa.schema([("v", pa.float64())]))
    window, records, last = WindowId(0, 10), [], {}
    for time, epoch in enumerate(epochs):
        keys = np.array([key for key, _ in epoch], dtype=np.int64)
        present = np.array([value is not None for _, value in epoch], dtype=np.bool_)
        table = pa.table({"v": pa.array([value for _, value in epoch], pa.float64())})
        codes = emitted.check_many(keys, table, present).outcomes.tolist()
        for code, (key, value) in zip(codes, epoch, strict=True):
            outcome = generator.check(RetractionKey("op", window, key), None if value is None else (key, value), time)
            assert type(outcome) is OUTCOMES[code]
            records += records_of(outcome, window.event_time)
            if not isinstance(outcome, NoChange):
                last[key] = None if value is None else (key, value)
    expected = {canonical(row): 1 for row in last.values() if row is not None}
    assert integral(records) == expected
