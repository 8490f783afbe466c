"""Tables without a key as a kernel: how often a row is there, columns that change, and truncation."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.trace.manifest import Manifest
from laminae.views.kernels.multiset import kernel
from laminae.views.kernels.multiset.kernel import BASE, SHOWN, Multiset, has_current_columns
from laminae.views.kernels.multiset.truncation import (
    EventPosition,
    PartitionProgress,
    effective_truncations,
    is_covered,
    is_late,
    is_repeated,
    is_taken,
    progress_of,
    with_progress,
)
from tests.support.build import col
from tests.support.traces import spread_hash

if TYPE_CHECKING:
    from laminae.trace.store import RunStore

NAME, SIZE = col("c1", "string", id=1), col("c2", "bigint", id=2)
NAMED = Multiset((NAME, SIZE))


class Running:
    """A bag fed epoch after epoch; a change is a row and its weight."""

    def __init__(self, store: RunStore, hashed=spread_hash) -> None:
        self.store, self.hashed, self.manifest = store, hashed, Manifest()

    def __call__(self, *changes, is_cut=False):
        rows = [{"_hash": self.hashed(row), "c1": row[0], "c2": row[1], "_weight": weight} for row, weight in changes]
        schema = pa.schema([("_hash", pa.int64()), ("c1", pa.string()), ("c2", pa.int64()), ("_weight", pa.int64())])
        self.last = kernel.step(NAMED, pa.Table.from_pylist(rows, schema), self.manifest, self.store, is_cut=is_cut)
        self.manifest = self.last.manifest
        found = self.last.changes.to_pylist()
        assert all((row["_op"] == "+I") == (row["_weight"] > 0) for row in found)
        return {(row["c1"], row["c2"]): row["_weight"] for row in found}

    def rows(self, bag=NAMED):
        found = Counter()
        for batch in kernel.rows(bag, self.manifest, self.store):
            for row in batch.to_pylist():
                found[tuple(row[field.name] for field in bag.columns)] += row["_weight"]
        return dict(found)


def test_equal_rows_count(store, hashed):
    run = Running(store, hashed)
    assert run((("a", 1), 1), (("a", 1), 1), (("b", None), 1), ((None, 1), 1)) == {
        ("a", 1): 2,
        ("b", None): 1,
        (None, 1): 1,
    }
    assert run((("a", 1), -1), (("b", None), -1), (("b", 2), 1)) == {("a", 1): -1, ("b", None): -1, ("b", 2): 1}
    assert run((("a", 1), -1), (("a", 1), 1)) == {}
    assert run.rows() == {("a", 1): 1, ("b", 2): 1, (None, 1): 1}


def test_row_that_goes_before_it_comes_is_told_and_never_shown(store, hashed):
    run = Running(store, hashed)
    assert run((("a", 1), -2)) == {}
    assert run.last.counts.anomalies == 1
    assert run((("a", 1), 1)) == {}
    assert (run.last.counts.anomalies, run.last.counts.recovered) == (0, 0)
    assert run((("a", 1), 2)) == {("a", 1): 1}
    assert run.last.counts.recovered == 1
    assert run.rows() == {("a", 1): 1}


def test_truncation_takes_all_that_was_there(store, hashed):
    run = Running(store, hashed)
    run((("a", 1), 3), (("b", 2), 1), (("c", 3), -1))
    # What is there again has not changed.
    assert run((("b", 2), 1), (("d", 4), 1), is_cut=True) == {("a", 1): -3, ("d", 4): 1}
    assert run.rows() == {("b", 2): 1, ("d", 4): 1}
    assert run.last.counts.recovered == 1
    assert run(is_cut=True) == {("b", 2): -1, ("d", 4): -1}
    assert run.rows() == {}
    assert run.manifest == Manifest()


def test_rows_are_read_under_the_columns_of_now_and_kept_under_them_from_the_next_epoch_on(store, hashed):
    run = Running(store, hashed)
    run((("a", 1), 2), (("a", 2), 1), (("b", 1), -1))
    wider = Multiset((NAME, col("c3", "int", id=3, default="7")))
    assert not has_current_columns(wider, run.manifest)
    assert run.rows(wider) == {("a", 7): 3, ("b", 7): -1}
    base = [
        {"_hash": hashed(row), "c1": row[0], "c3": row[1], BASE: weight, SHOWN: max(weight, 0)}
        for row, weight in run.rows(wider).items()
    ]
    row = ("a", 7)
    delta = pa.table({"_hash": [hashed(row)], "c1": ["a"], "c3": pa.array([7], pa.int32()), "_weight": [-1]})
    step = kernel.step(wider, delta, run.manifest, run.store, pa.Table.from_pylist(base))
    assert [(each["c1"], each["c3"], each["_weight"]) for each in step.changes.to_pylist()] == [("a", 7, -1)]
    run.manifest = step.manifest
    assert has_current_columns(wider, run.manifest)
    assert run.rows(wider) == {("a", 7): 2, ("b", 7): -1}


def test_rows_that_are_missing_stay_counted_when_a_column_goes(store):
    run = Running(store)
    run((("a", 1), -1), (("a", 2), -1), (("b", 1), -1), (("b", 2), 1), (("c", 1), 1), (("d", 1), -1))
    assert run.last.counts.anomalies == 4
    narrow = Multiset((NAME,))
    base = [
        {"_hash": spread_hash((row["c1"],)), "c1": row["c1"], BASE: row["_weight"], SHOWN: max(row["_weight"], 0)}
        for batch in kernel.rows(narrow, run.manifest, run.store)
        for row in batch.to_pylist()
    ]
    delta = pa.table({"_hash": [spread_hash(("c",))], "c1": ["c"], "_weight": [-2]})
    counts = kernel.step(narrow, delta, run.manifest, run.store, pa.Table.from_pylist(base)).counts
    # Of a and d one row each is missing now, and of c; of b none.
    assert (counts.anomalies, counts.recovered) == (1, 2)


NESTED = pa.struct([("at", pa.list_(pa.timestamp("us"))), ("of", pa.map_(pa.string(), pa.float64()))])
MOMENT = datetime(2026, 11, 17)
NESTED_VALUES = [
    None,
    {"at": None, "of": None},
    {"at": [], "of": []},
    {"at": [None], "of": [("a", None)]},
    {"at": [MOMENT], "of": [("a", 0.0)]},
    {"at": [MOMENT + timedelta(microseconds=1)], "of": [("a", 0.0)]},
    {"at": [MOMENT, None], "of": [("a", 0.0)]},
    {"at": [MOMENT], "of": [("a", 0.0), ("b", 1.0)]},
    {"at": [MOMENT], "of": [("a", float("nan"))]},
]


def test_nested_values_with_one_hash_are_told_apart(store):
    bag = Multiset((pa.field("c1", NESTED),))

    def stepped(manifest, values, weight):
        rows = [{"_hash": 7, "c1": value, "_weight": weight} for value in values]
        schema = pa.schema([("_hash", pa.int64()), ("c1", NESTED), ("_weight", pa.int64())])
        return kernel.step(bag, pa.Table.from_pylist(rows, schema), manifest, store)

    step = stepped(Manifest(), [*NESTED_VALUES, *NESTED_VALUES], 1)
    assert step.changes.column("_weight").to_pylist() == [2] * len(NESTED_VALUES)
    for value in NESTED_VALUES:
        step = stepped(step.manifest, [value], -1)
        assert repr(step.changes.column("c1").to_pylist()) == repr([value])
    zero = {"at": [MOMENT], "of": [("a", -0.0)]}
    step = stepped(step.manifest, [*NESTED_VALUES, zero], -1)
    assert step.counts.anomalies == 1
    kept = [batch.column("_weight").to_pylist() for batch in kernel.rows(bag, step.manifest, store)]
    assert sum(map(sum, kept)) == -1


ROWS, CUT = EventPosition("p", 3, 10, 100), EventPosition("p", 2, 5, 50)
PROGRESS = (PartitionProgress("p", ROWS, CUT), PartitionProgress("q", EventPosition("q", 3, 4, 80)))


@pytest.mark.parametrize(
    ("place", "covered", "late", "repeated"),
    [
        # In its own partition only the place counts: what comes again behind others was sent again, and so were they.
        (EventPosition("p", 3, 11, 101), False, False, False),
        (EventPosition("p", 4, 0, 90), False, False, False),
        (EventPosition("p", 4, 0, 60), False, True, False),
        (EventPosition("p", 3, 9, 99), False, True, False),
        (EventPosition("p", 2, 4, 49), True, True, False),
        (EventPosition("p", 4, 1, 50), False, True, True),
        # In another it is what orders events.
        (EventPosition("q", 4, 0, 101), False, False, False),
        (EventPosition("q", 4, 0, 99), False, True, False),
        (EventPosition("q", 4, 0, 50), True, True, True),
        (EventPosition("r", 4, 0, 49), True, True, False),
    ],
)
def test_truncation_that_comes_late(place, covered, late, repeated):
    assert (is_covered(place, PROGRESS), is_late(place, PROGRESS), is_repeated(place, PROGRESS)) == (
        covered,
        late,
        repeated,
    )
    assert effective_truncations([place], PROGRESS) == ([] if late or covered else [place])


def events(*places: EventPosition) -> pa.Table:
    names = ("partition", "item", "offset", "sequence")
    kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64())
    found = {
        f"_{name}": pa.array([getattr(place, name) for place in places], kind)
        for name, kind in zip(names, kinds, strict=True)
    }
    return pa.table(found)


def test_events_before_a_truncation_are_not_taken():
    found = events(
        EventPosition("p", 2, 4, 999),
        EventPosition("p", 2, 6, 1),
        EventPosition("p", 1, 9, 1),
        EventPosition("p", 3, 0, 1),
        EventPosition("q", 9, 9, 49),
        EventPosition("q", 0, 0, 51),
    )
    assert is_taken(found, [CUT]).tolist() == [False, True, False, True, False, True]
    assert is_taken(found, []).all()


def test_shards_together_store_how_far_each_partition_was_read(store):
    one = with_progress(
        Manifest(),
        store,
        (),
        events(EventPosition("p", 1, 2, 30), EventPosition("p", 1, 3, 20), EventPosition("q", 1, 0, 9)),
        [],
    )
    two = with_progress(Manifest(), store, (), events(EventPosition("p", 1, 4, 10)), [CUT])
    assert progress_of([(one, store), (two, store)]) == (
        PartitionProgress("p", EventPosition("p", 1, 4, 30), CUT),
        PartitionProgress("q", EventPosition("q", 1, 0, 9)),
    )
    assert with_progress(one, store, (), events(), []) == one
