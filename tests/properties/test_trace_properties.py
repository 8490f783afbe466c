"""The laws of traces and kernels: any split into epochs, any order, compaction or collision gives the same table."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pyarrow.fs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.trace.cache import BoundedCache
from laminae.trace.combine import combined
from laminae.trace.compaction import append
from laminae.trace.manifest import Manifest
from laminae.trace.scan import scan
from laminae.trace.spec import TraceSpec
from laminae.trace.store import RunStore
from laminae.views.kernels.group_by import kernel as aggregating
from laminae.views.kernels.group_by.aggregates import (
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
from laminae.views.kernels.upsert import kernel as upserting
from laminae.views.kernels.upsert.keyed_table import KeyedTable
from tests.support.examples import examples
from tests.support.traces import (
    aggregate_delta,
    canonical,
    check_pairs,
    few_hashes,
    frozen,
    integrate,
    rows_of,
    spread_hash,
    upsert_delta,
)

LAWFUL = settings(max_examples=examples(1000), deadline=None, suppress_health_check=list(HealthCheck))
HASHES = st.sampled_from([spread_hash, few_hashes])

KEY_FIELDS = (pa.field("k", pa.string()), pa.field("f", pa.float64()))
FLOATS = [0.0, -0.0, 0.1, 0.2, -0.3, 1e16, -1e16, 5e-324, 1e300, math.nan, math.inf, -math.inf]
KEYS = [("a", 0.0), ("a", -0.0), ("b", 1.5), (None, math.nan), ("", None), (None, None)]


def output(name, kind, function, accumulator=None):
    return Output(pa.field(name, kind), function, accumulator)


SUMS = Aggregate(
    "sums",
    KEY_FIELDS,
    (Tally("t"), IntegerTotal("i"), DecimalTotal("d", 2)),
    (
        output("rows", pa.int64(), Function.COUNT_ROWS),
        output("t", pa.int64(), Function.COUNT, "t"),
        output("i_sum", pa.int64(), Function.SUM, "i"),
        output("i_avg", pa.float64(), Function.AVG, "i"),
        output("d_sum", pa.decimal128(20, 2), Function.SUM, "d"),
        output("d_avg", pa.decimal128(14, 6), Function.AVG, "d"),
    ),
)
SUM_VALUES = {
    "t": [None, 1],
    "i": [None, 0, 1, -7, 2**40, -(2**57)],
    "d": [None, Decimal("0.00"), Decimal("1.25"), Decimal("-99999.99")],
}
SETS = Aggregate(
    "sets",
    KEY_FIELDS,
    (FloatTotal("x"), ValueSet("s", pa.string(), True, True), ValueSet("y", pa.float64(), True, True)),
    (
        output("x_sum", pa.float64(), Function.SUM, "x"),
        output("s_min", pa.string(), Function.MIN, "s"),
        output("s_max", pa.string(), Function.MAX, "s"),
        output("s_count", pa.int64(), Function.COUNT_DISTINCT, "s"),
        output("y_min", pa.float64(), Function.MIN, "y"),
        output("y_max", pa.float64(), Function.MAX, "y"),
        output("y_count", pa.int64(), Function.COUNT_DISTINCT, "y"),
    ),
)
SET_VALUES = {"x": [None, *FLOATS], "s": [None, "", "p", "q", "zebra"], "y": [None, *FLOATS]}
ROWS = distinct("rows", KEY_FIELDS)


@st.composite
def histories(draw, values):
    """Rows inserted, some deleted at any time after, cut into epochs anywhere."""
    rows = draw(st.lists(st.tuples(st.sampled_from(KEYS), st.fixed_dictionaries(values)), max_size=10))
    events = []
    for place, (key, row) in enumerate(rows):
        events.append((place, (key, row, 1)))
        if draw(st.booleans()):
            events.append((draw(st.integers(place, len(rows))), (key, row, -1)))
    ordered = [event for _, event in sorted(events, key=lambda event: event[0])]
    return cut(draw, ordered)


def cut(draw, events, most=3):
    bounds = [0, *sorted(draw(st.lists(st.integers(0, len(events)), max_size=most))), len(events)]
    return [events[a:b] for a, b in pairwise(bounds)]


def choices(values):
    return {name: st.sampled_from(found) for name, found in values.items()}


def groups_of(rows):
    """For each key its rows that are left, in plain Python."""
    groups, first = defaultdict(Counter), {}
    for key, row, weight in rows:
        group = tuple(canonical(part) for part in key)
        first.setdefault(group, key)
        groups[group][frozen(row)] += weight
    for group, members in groups.items():
        left = [dict(row) for row, weight in members.items() for _ in range(weight)]
        if left:
            yield {"k": first[group][0], "f": first[group][1]}, left


def column(rows, name):
    return [math.nan if row[name] == "nan" else row[name] for row in rows if row[name] is not None]


def expected_sums(rows):
    ints, decimals = column(rows, "i"), column(rows, "d")
    average = (sum(decimals) / len(decimals)).quantize(Decimal("1e-6"), ROUND_HALF_UP) if decimals else None
    return {
        "rows": len(rows),
        "t": len(column(rows, "t")),
        "i_sum": sum(ints) if ints else None,
        "i_avg": float(Fraction(sum(ints))) / len(ints) if ints else None,
        "d_sum": sum(decimals) if decimals else None,
        "d_avg": average,
    }


def expected_sets(rows):
    texts, floats = sorted(column(rows, "s")), sorted(column(rows, "y"), key=lambda value: (math.isnan(value), value))
    return {
        "x_sum": exact_sum(column(rows, "x")),
        "s_min": texts[0] if texts else None,
        "s_max": texts[-1] if texts else None,
        "s_count": len(set(texts)),
        "y_min": floats[0] if floats else None,
        "y_max": floats[-1] if floats else None,
        "y_count": len({canonical(value) for value in floats}),
    }


def exact_sum(found):
    if any(math.isnan(value) for value in found) or {math.inf, -math.inf} <= set(found):
        return math.nan
    return math.fsum(found) if found else None


def in_memory():
    """A store of its own for each example; disks are for the unit tests."""
    return RunStore(pyarrow.fs._MockFileSystem(), "home", cache=BoundedCache(1 << 24))


def shown(step):
    return [frozen(row) for row in step.changes.to_pylist()]


def check_laws(view, epochs, hashed, expected):
    """Epoch by epoch: the changelog is well formed, and the table it builds is the query over what is left."""
    store, manifest, table, seen = in_memory(), Manifest(), Counter(), []
    for epoch in epochs:
        delta = aggregate_delta(view, epoch, hashed)
        found = aggregating.step(view, delta, manifest, store)
        check_pairs(found.changes, ["k", "f"])
        integrate(table, found.changes)
        seen += epoch
        assert table == Counter(frozen({**key, **expected(rows)}) for key, rows in groups_of(seen))
        last, manifest = (found, manifest, delta), found.manifest
    assert table == rows_of(aggregating.rows(view, manifest, store))
    again = aggregating.step(view, last[2], last[1], store)
    assert shown(again) == shown(last[0])
    assert again.counts == last[0].counts
    assert rows_of(aggregating.rows(view, again.manifest, store)) == table
    if not any(True for _ in groups_of(seen)):
        assert manifest == Manifest()


@LAWFUL
@given(histories(choices(SUM_VALUES)), HASHES)
def test_prop_sums_equal_the_query_however_the_input_is_split(epochs, hashed):
    check_laws(SUMS, epochs, hashed, expected_sums)


@LAWFUL
@given(histories(choices(SET_VALUES)), HASHES)
def test_prop_values_equal_the_query_however_the_input_is_split(epochs, hashed):
    check_laws(SETS, epochs, hashed, expected_sets)


@LAWFUL
@given(histories({}), HASHES)
def test_prop_distinct_rows_equal_the_query_however_the_input_is_split(epochs, hashed):
    check_laws(ROWS, epochs, hashed, lambda rows: {})


@st.composite
def disordered(draw):
    """Weights of any sign in any order: deletes may overtake their inserts."""
    values = st.fixed_dictionaries(choices({"i": SUM_VALUES["i"], "s": SET_VALUES["s"]}))
    rows = draw(st.lists(st.tuples(st.sampled_from(KEYS), values, st.integers(-2, 3)), max_size=10))
    return cut(draw, rows, most=2), cut(draw, draw(st.permutations(rows)), most=2)


MIXED = Aggregate(
    "mixed",
    KEY_FIELDS,
    (IntegerTotal("i"), ValueSet("s", pa.string(), True, True)),
    (
        output("rows", pa.int64(), Function.COUNT_ROWS),
        output("i_sum", pa.int64(), Function.SUM, "i"),
        output("s_min", pa.string(), Function.MIN, "s"),
        output("s_count", pa.int64(), Function.COUNT_DISTINCT, "s"),
    ),
)


@LAWFUL
@given(disordered(), HASHES)
def test_prop_order_of_the_input_does_not_matter_even_for_negative_multiplicities(case, hashed):
    states, bad = [], []
    for epochs in case:
        store, manifest, table, anomalies = in_memory(), Manifest(), Counter(), 0
        for epoch in epochs:
            found = aggregating.step(MIXED, aggregate_delta(MIXED, epoch, hashed), manifest, store)
            check_pairs(found.changes, ["k", "f"])
            integrate(table, found.changes)
            manifest = found.manifest
            anomalies += found.counts.anomalies - found.counts.recovered
        assert table == rows_of(aggregating.rows(MIXED, manifest, store))
        states.append(table)
        bad.append(anomalies)
    assert states[0] == states[1]
    assert bad[0] == bad[1] >= 0


TABLE_FIELDS = (pa.field("k", pa.string()), pa.field("v", pa.float64()))
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None]), st.sampled_from([None, 0.0, -0.0, 1.0, math.nan]), st.integers(0, 5)
    ),
    max_size=12,
)


def run_table(table, epochs, hashed):
    """`v` None is a delete. The changelog's table, the state's table, and how many events were dropped."""
    store, manifest, built, dropped, order = in_memory(), Manifest(), Counter(), 0, 0
    for epoch in epochs:
        events = []
        for key, value, sequence in epoch:
            order += 1
            event = ({"k": key, "v": value}, value is None, order)
            events.append(event if table.sequence is None else (*event, sequence))
        found = upserting.step(table, upsert_delta(table, events, hashed), manifest, store)
        check_pairs(found.changes, ["k"])
        integrate(built, found.changes)
        manifest, dropped = found.manifest, dropped + found.counts.dropped
    assert built == rows_of(upserting.rows(table, manifest, store))
    return built, dropped


@LAWFUL
@given(EVENTS, st.data(), HASHES)
def test_prop_keyed_table_holds_the_last_row_of_each_key(events, data, hashed):
    last = {key: value for key, value, _ in events}
    expected = Counter(frozen({"k": key, "v": value}) for key, value in last.items() if value is not None)
    table, _ = run_table(KeyedTable(("k",), TABLE_FIELDS), cut(data.draw, events), hashed)
    assert table == expected


@LAWFUL
@given(EVENTS, st.data(), HASHES)
def test_prop_keyed_table_holds_the_first_row_of_the_highest_sequence(events, data, hashed):
    best, dropped = {}, 0
    for key, value, sequence in events:
        if key in best and best[key][0] >= sequence:
            dropped += 1
        else:
            best[key] = (sequence, value)
    expected = Counter(frozen({"k": key, "v": value}) for key, (_, value) in best.items() if value is not None)
    keyed = KeyedTable(("k",), TABLE_FIELDS, pa.int64())
    assert run_table(keyed, cut(data.draw, events), hashed) == (expected, dropped)


SPECS = (
    TraceSpec.replace("r", [pa.field("k", pa.string())], [pa.field("v", pa.int64())]),
    TraceSpec.sum("s", [pa.field("k", pa.string())], [pa.field("v", pa.int64())]),
)


@LAWFUL
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.integers(-1, 2)), max_size=5), max_size=8
    ),
    st.sampled_from(SPECS),
    HASHES,
)
def test_prop_compacted_trace_equals_the_uncompacted_one(epochs, spec, hashed):
    """Compaction as it happens, against every batch kept and combined once at the end."""
    store, runs, batches, separate = in_memory(), (), [], ()
    for epoch in epochs:
        rows = [
            (hashed((key,)), key, value, weight if spec is SPECS[1] else abs(weight)) for key, value, weight in epoch
        ]
        columns = zip(*rows, strict=True) if rows else [[]] * 4
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, spec.schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=spec.schema)
        runs = append(store, spec, runs, batch)
        alone = append(store, spec, (), batch) if spec is SPECS[1] else ()
        separate += alone
        batches.append(batch)
    compacted = rows_of(scan(spec, [store.open(run) for run in runs], rows=2))
    assert compacted == rows_of([combined(spec, batches, is_oldest=True)] if batches else [])
    if spec is SPECS[1]:
        assert compacted == rows_of(scan(spec, [store.open(run) for run in separate]))
    assert all(older.rows >= 2 * newer.rows for older, newer in pairwise(runs))
