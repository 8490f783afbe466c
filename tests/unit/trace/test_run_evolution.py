"""Older runs under newer specs: read as the rules of state evolution say, or refused by name; never rewritten."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from laminae.errors import StateIncompatible
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest, weights
from laminae.trace.scan import scan
from laminae.trace.spec import TraceSpec
from laminae.trace.store import RunStore
from tests.support.build import col


def spec(*payload: pa.Field, key: pa.Field | None = None) -> TraceSpec:
    return TraceSpec.replace("t", [key or col("k", "bigint", id=1)], payload)


def filled(found: TraceSpec, keys, *columns) -> pa.RecordBatch:
    hashes, live = list(range(len(keys))), [1] * len(keys)
    arrays = [pa.array(c, f.type) for c, f in zip([hashes, keys, *columns, live], found.schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=found.schema)


OLD = spec(col("a", "int", id=2), col("b", "string", id=3))


@pytest.fixture
def store(tmp_path) -> RunStore:
    return RunStore.at(str(tmp_path))


@pytest.fixture
def runs(store):
    return append(store, OLD, (), filled(OLD, list(range(10)), list(range(10)), [f"b{i}" for i in range(10)]))


def row(store, runs, new: TraceSpec, key: int) -> dict[str, object]:
    kind = new.schema.field("k").type if "k" in new.schema.names else pa.int64()
    found = latest(new, [store.open(run) for run in runs], Wanted(np.array([key]), (pa.array([key], kind),)))
    return {name: column[0].as_py() for name, column in found.payload.items()}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ([col("a", "int", id=2), col("b", "string", id=3), col("c", "string", id=4)], {"a": 4, "b": "b4", "c": None}),
        ([col("b", "string", id=3), col("a", "int", id=2)], {"b": "b4", "a": 4}),
        ([col("a", "bigint", id=2), col("b", "string", id=3)], {"a": 4, "b": "b4"}),
        ([col("renamed", "int", id=2), col("b", "string", id=3)], {"renamed": 4, "b": "b4"}),
        ([col("b", "string", id=3)], {"b": "b4"}),
        ([col("a", "string", id=9), col("b", "string", id=3)], {"a": None, "b": "b4"}),
        ([col("b", "string", id=3), col("n", "int", id=5, null=False, default="7")], {"b": "b4", "n": 7}),
    ],
    ids=["added", "reordered", "widened", "renamed by id", "left out", "re-added as another column", "default"],
)
def test_older_run_is_read_under_the_newer_spec(store, runs, payload, expected):
    before = store.open(runs[0]).batch.schema
    assert row(store, runs, spec(*payload), 4) == expected
    assert store.open(runs[0]).batch.schema.equals(before)


@pytest.mark.parametrize(
    ("new", "path"),
    [
        (spec(col("a", "tinyint", id=2)), "a"),
        (spec(col("a", "bool", id=2)), "a"),
        (spec(col("a", "int", id=2, null=False)), "a"),
        (spec(col("a", "int", id=2), col("c", "int", id=4, null=False)), "c"),
        (spec(col("a", "int", id=2), key=col("other", "bigint", id=8)), "other"),
    ],
    ids=["narrowed", "other type", "NULL to NOT NULL", "new NOT NULL", "other key"],
)
def test_change_that_would_lose_or_invent_values_is_refused(store, runs, new, path):
    with pytest.raises(StateIncompatible, match=f"at {path}:") as error:
        row(store, runs, new, 4)
    assert runs[0].path in str(error.value)


def test_nested_columns_follow_the_same_rules(store):
    old = spec(col("s", pa.struct([col("x", "int", id=3)]), id=2))
    runs = append(store, old, (), filled(old, [0], [{"x": 1}]))
    grown = spec(col("s", pa.struct([col("y", "string", id=4), col("x", "bigint", id=3)]), id=2))
    assert row(store, runs, grown, 0) == {"s": {"y": None, "x": 1}}
    with pytest.raises(StateIncompatible, match=r"at s\.x:"):
        row(store, runs, spec(col("s", pa.struct([col("x", "tinyint", id=3)]), id=2)), 0)


def test_field_dropped_and_added_again_does_not_bring_its_values_back(store):
    old = spec(col("s", pa.struct([col("x", "int", id=3), col("y", "int", id=4)]), id=2))
    runs = append(store, old, (), filled(old, [0], [{"x": 1, "y": 2}]))
    again = spec(col("s", pa.struct([col("x", "int", id=9), col("y", "int", id=4)]), id=2))
    assert row(store, runs, again, 0) == {"s": {"x": None, "y": 2}}


def test_default_that_changed_does_not_touch_stored_rows(store, runs):
    new = spec(col("a", "int", id=2, default="5"), col("b", "string", id=3))
    assert row(store, runs, new, 4) == {"a": 4, "b": "b4"}


def test_keys_of_maps_cannot_evolve(store):
    old = spec(col("m", pa.map_(pa.int32(), pa.int32()), id=2))
    runs = append(store, old, (), filled(old, [0], [[(1, 2)]]))
    with pytest.raises(StateIncompatible, match="keys of a map"):
        row(store, runs, spec(col("m", pa.map_(pa.int64(), pa.int32()), id=2)), 0)


def test_runs_of_two_schemas_are_merged_into_one_of_the_newer(store, runs):
    new = spec(col("c", "string", id=4), col("a", "bigint", id=2), col("b", "string", id=3))
    runs = append(store, new, runs, filled(new, list(range(10)), ["c"] * 10, [2**40] * 10, ["b"] * 10))
    assert len(runs) == 1
    (batch,) = scan(new, [store.open(runs[0])])
    assert batch.column("a").to_pylist() == [2**40] * 10


def test_values_keep_their_order_when_their_type_is_widened(store):
    old = TraceSpec.sum("s", [col("k", "bigint")], [col("v", pa.decimal128(5, 1))])
    new = TraceSpec.sum("s", [col("k", "bigint")], [col("v", pa.decimal128(20, 3))])
    values = [Decimal(i) / 10 for i in range(-50, 50)]
    columns = [[5] * 100, [5] * 100, values, [1] * 100]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, old.schema, strict=True)], schema=old.schema
    )
    runs = append(store, old, (), batch)
    wanted = pa.array([Decimal("-5"), Decimal("0.1"), Decimal("0.15"), Decimal("4.9")], pa.decimal128(20, 3))
    found = weights(new, [store.open(run) for run in runs], Wanted(np.full(4, 5), (pa.array([5] * 4),), (wanted,)))
    assert found.tolist() == [1, 1, 0, 1]
