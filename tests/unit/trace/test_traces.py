"""Traces as wholes: replacing, adding up, compacting, scanning, and finding extremes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from laminae.errors import InvalidSchema
from laminae.trace.compaction import append, merge_count
from laminae.trace.extremes import extremes
from laminae.trace.lookup import Wanted, latest, matches, weights
from laminae.trace.manifest import RunEntry
from laminae.trace.scan import everything, scan
from laminae.trace.spec import TraceSpec
from laminae.trace.store import RunStore

KEY, VALUE = pa.field("k", pa.int64()), pa.field("v", pa.int64())
REPLACE = TraceSpec.replace("r", [KEY], [VALUE])
REMEMBER = TraceSpec.replace("r", [KEY], [VALUE], keeps_tombstones=True)
SUM = TraceSpec.sum("s", [KEY], [VALUE])
BINS = TraceSpec.sum("b", [KEY], [VALUE], [pa.field("p", pa.int64())])


@pytest.fixture
def store(tmp_path) -> RunStore:
    return RunStore.at(str(tmp_path))


def rows(spec: TraceSpec, *found: tuple[int, ...], hashed=lambda key: key * 7919 % 1000) -> pa.RecordBatch:
    """(key, value, ..., weight) rows; a hash that mixes the order of the keys."""
    columns = (
        [[hashed(row[0]) for row in found], *map(list, zip(*found, strict=True))] if found else [[]] * len(spec.schema)
    )
    return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=spec.schema)


def many(spec: TraceSpec, keys: range, value: int, weight: int = 1) -> pa.RecordBatch:
    return rows(spec, *((key, value, weight) for key in keys), hashed=lambda key: key)


def content(store: RunStore, spec: TraceSpec, runs) -> set[tuple[int, ...]]:
    found = [
        tuple(row.values())[1:] for batch in scan(spec, [store.open(run) for run in runs]) for row in batch.to_pylist()
    ]
    assert len(found) == len(set(found))
    return set(found)


def entries(*sizes: tuple[int, int] | int) -> list[RunEntry]:
    pairs = [(size, 0) if isinstance(size, int) else size for size in sizes]
    return [RunEntry("x", size, dead, 0, 0) for size, dead in pairs]


def test_latest_row_of_a_key_replaces_older_ones(store):
    runs = append(store, REPLACE, (), rows(REPLACE, (1, 10, 1), (2, 20, 1)))
    runs = append(store, REPLACE, runs, rows(REPLACE, (2, 21, 1), (3, 30, 1)))
    assert content(store, REPLACE, runs) == {(1, 10, 1), (2, 21, 1), (3, 30, 1)}


def test_latest_row_wins_within_one_batch_too(store):
    runs = append(store, REPLACE, (), rows(REPLACE, (1, 10, 1), (1, 11, 1), (2, 5, 1), (1, 12, 1)))
    assert content(store, REPLACE, runs) == {(1, 12, 1), (2, 5, 1)}


def test_tombstone_hides_a_row_that_an_older_run_still_holds(store):
    runs = append(store, REPLACE, (), many(REPLACE, range(100), 1))
    runs = append(store, REPLACE, runs, rows(REPLACE, (5, 0, 0), hashed=lambda key: key))
    assert [run.rows for run in runs] == [100, 1]
    assert len(content(store, REPLACE, runs)) == 99
    found = latest(REPLACE, [store.open(run) for run in runs], Wanted(np.array([4, 5, 100]), (pa.array([4, 5, 100]),)))
    assert found.live.tolist() == [True, False, False]
    assert found.found.tolist() == [True, True, False]
    assert found.payload["v"].to_pylist() == [1, 0, None]


def test_tombstones_go_when_the_oldest_run_takes_part(store):
    runs = append(store, REPLACE, (), many(REPLACE, range(10), 1))
    runs = append(store, REPLACE, runs, many(REPLACE, range(5), 0, weight=0))
    runs = append(store, REPLACE, runs, many(REPLACE, range(5, 10), 0, weight=0))
    assert runs == ()


def test_remembered_deletes_stay_and_are_not_shown(store):
    runs = append(store, REMEMBER, (), rows(REMEMBER, (1, 10, 1), (2, 77, 0)))
    runs = append(store, REMEMBER, runs, rows(REMEMBER, (1, 11, 1)))
    assert content(store, REMEMBER, runs) == {(1, 11, 1)}
    assert sum(batch.num_rows for batch in everything(REMEMBER, [store.open(run) for run in runs])) == 2


def test_weights_add_up_and_zeros_vanish(store):
    runs = append(store, SUM, (), rows(SUM, (1, 5, 2), (1, 6, 1), (1, 5, 1), (2, 5, 1)))
    runs = append(store, SUM, runs, rows(SUM, (1, 5, -1), (1, 6, -1), (3, 1, -4)))
    assert content(store, SUM, runs) == {(1, 5, 2), (2, 5, 1), (3, 1, -4)}
    assert append(store, SUM, runs, rows(SUM, (1, 5, -2), (2, 5, -1), (3, 1, 4))) == ()


def test_payload_is_added_and_a_row_stays_while_any_of_it_is_left(store):
    runs = append(store, BINS, (), rows(BINS, (1, 0, 10, 1), (1, 1, 3, 1)))
    runs = append(store, BINS, runs, rows(BINS, (1, 0, -4, -1), (1, 1, -3, -1)))
    assert content(store, BINS, runs) == {(1, 0, 6, 0)}


def test_payload_that_cannot_be_added_is_refused():
    with pytest.raises(InvalidSchema, match="cannot be added up"):
        TraceSpec.sum("s", [KEY], [VALUE], [pa.field("text", pa.string())])


def test_names_of_the_trace_itself_are_refused():
    with pytest.raises(InvalidSchema, match="used by the trace"):
        TraceSpec.replace("r", [pa.field("_hash", pa.int64())], [])


def test_column_that_is_key_and_payload_at_once_is_refused():
    with pytest.raises(InvalidSchema, match="twice"):
        TraceSpec.replace("r", [KEY], [KEY])


def test_weight_of_a_value_is_found_among_all_runs_and_colliding_keys(store):
    runs = append(
        store, SUM, (), rows(SUM, *((k, v, k + v) for k in (1, 2, 3) for v in range(1, 40)), hashed=lambda key: 9)
    )
    runs = append(store, SUM, runs, rows(SUM, (2, 7, 100), (3, 7, 1000), hashed=lambda key: 9))
    assert len(runs) == 2
    wanted = Wanted(np.full(4, 9), (pa.array([1, 2, 3, 4]),), (pa.array([7, 7, 7, 7]),))
    assert weights(SUM, [store.open(run) for run in runs], wanted).tolist() == [8, 109, 1010, 0]


def test_all_rows_of_a_key_are_found_in_all_runs(store):
    runs = append(store, SUM, (), rows(SUM, *((k, v, 1) for k in (1, 2) for v in range(9)), hashed=lambda key: 9))
    runs = append(store, SUM, runs, rows(SUM, (2, 50, 1), hashed=lambda key: 9))
    found = matches(SUM, [store.open(run) for run in runs], Wanted(np.array([9]), (pa.array([2]),)), ["v"])
    assert sorted(found.columns["v"].to_pylist()) == [*range(9), 50]
    assert set(found.wanted.tolist()) == {0}


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_extreme_is_the_outermost_value_with_a_positive_weight(store, largest, collide):
    """The outer 300 values of each key are cancelled by later runs, so the first looks find nothing."""
    hashed = (lambda key: 9) if collide else (lambda key: key)
    runs = append(store, SUM, (), rows(SUM, *((k, v, 1) for k in (1, 2) for v in range(-500, 501)), hashed=hashed))
    outer = [*range(-500, -200), *range(201, 501)]
    runs = append(store, SUM, runs, rows(SUM, *((1, v, -1) for v in outer), hashed=hashed))
    runs = append(store, SUM, runs, rows(SUM, (1, -1000, -1), (1, 1000, -1), hashed=hashed))
    opened = [store.open(run) for run in runs]
    assert len(opened) > 1
    wanted = Wanted(np.array([hashed(k) for k in (1, 2, 3)]), (pa.array([1, 2, 3]),))
    sign = 1 if largest else -1
    assert extremes(SUM, opened, wanted, largest=largest).to_pylist() == [sign * 200, sign * 500, None]


@pytest.mark.parametrize("largest", [False, True])
def test_value_that_a_row_further_in_cancels_is_no_extreme(store, largest):
    """The first look at the newer run ends before the row that takes the outermost value away."""
    sign = -1 if largest else 1
    runs = append(store, SUM, (), rows(SUM, *((1, sign * v, 1) for v in range(1000))))
    beyond = [(1, sign * v, -1) for v in range(-40, 0)]
    runs = append(store, SUM, runs, rows(SUM, *beyond, (1, 0, -1), (1, sign, -1)))
    opened = [store.open(run) for run in runs]
    assert len(opened) == 2
    wanted = Wanted(np.array([919]), (pa.array([1]),))
    assert extremes(SUM, opened, wanted, largest=largest).to_pylist() == [sign * 2]


def test_extremes_at_the_ends_of_the_type_are_found(store):
    least, most = -(2**63), 2**63 - 1
    runs = append(store, SUM, (), rows(SUM, (1, least, 1), (1, most, 1)))
    wanted = Wanted(np.array([919]), (pa.array([1]),))
    opened = [store.open(run) for run in runs]
    assert [extremes(SUM, opened, wanted, largest=end)[0].as_py() for end in (False, True)] == [least, most]


def test_small_runs_are_merged_and_large_ones_left_alone():
    assert merge_count([], 10, 0) == 0
    assert merge_count(entries(1000, 30, 10), 10, 0) == 2
    assert merge_count(entries(1000, 40, 20), 10, 0) == 0
    assert merge_count(entries(2000, 400, 200, 100), 60, 0) == 3
    assert merge_count(entries(1000, 400, 200, 100), 150, 0) == 4


def test_deletions_alone_make_everything_one_run():
    assert merge_count(entries(1000, (400, 0)), 200, 0) == 0
    assert merge_count(entries(1000, (400, 400)), 200, 0) == 2
    assert merge_count(entries(1000), 450, 450) == 1


@pytest.mark.parametrize("epoch", [1, 40, 1000])
def test_runs_stay_few_and_bytes_bounded_over_200_epochs(store, epoch):
    """Updates of random keys, a third of them deletes: what is stored stays below 3 times what lives."""
    dice, live, runs = (
        np.random.default_rng(7),
        set(range(2000)),
        append(store, REPLACE, (), many(REPLACE, range(2000), 0)),
    )
    written = 0
    for number in range(200):
        keys = dice.choice(2000, epoch, replace=False)
        alive = (dice.random(epoch) > 0.33).astype(np.int64)
        columns = [pa.array(keys), pa.array(keys), pa.array(np.full(epoch, number)), pa.array(alive)]
        runs = append(store, REPLACE, runs, pa.RecordBatch.from_arrays(columns, schema=REPLACE.schema))
        live = (live | set(keys[alive == 1].tolist())) - set(keys[alive == 0].tolist())
        assert len(runs) <= 12
        assert sum(run.rows for run in runs) <= 3 * len(live)
        written += runs[-1].rows
    assert {row[0] for row in content(store, REPLACE, runs)} == live
    assert written <= 200 * epoch * 12


def test_scan_yields_batches_of_bounded_size(store):
    runs = append(store, REPLACE, (), many(REPLACE, range(1000), 1))
    runs = append(store, REPLACE, runs, many(REPLACE, range(0, 1000, 10), 2))
    batches = list(scan(REPLACE, [store.open(run) for run in runs], rows=100))
    assert max(batch.num_rows for batch in batches) <= 100
    assert sum(batch.num_rows for batch in batches) == 1000
    assert list(scan(REPLACE, [])) == []


def test_scan_keeps_rows_with_one_hash_together(store):
    runs = append(store, SUM, (), rows(SUM, *((k, 1, 1) for k in range(50)), hashed=lambda key: 3))
    runs = append(store, SUM, runs, rows(SUM, (7, 1, 1), hashed=lambda key: 3))
    (batch,) = scan(SUM, [store.open(run) for run in runs], rows=10)
    assert batch.num_rows == 50
