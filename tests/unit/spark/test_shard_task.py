"""The task of stateful operators, over kernels union_rows for the test: inputs, slices, reports, and failures."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.errors import ValueOverflow
from laminae.spark.tasks.emit import Emit, HeldChanges
from laminae.spark.tasks.shard_task import INPUT, SHARD, OperatorState, ShardRows, ShardTask
from laminae.spark.tasks.task_reports import (
    REPORT,
    ChangesReport,
    FailureReport,
    HeldReport,
    LateReport,
    OwnerReports,
    StateReport,
    report_of,
    report_text,
)
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, matches
from laminae.trace.manifest import Manifest
from laminae.trace.spec import TraceSpec
from laminae.views.kernels.changelog import changes_schema
from laminae.views.kernels.step import Counts, Input, Step

if TYPE_CHECKING:
    from pathlib import Path

K, L, R = (pa.field(name, pa.int64()) for name in "klr")
LEFT, RIGHT = (TraceSpec.sum(name, [K], [value]) for name, value in (("left", L), ("right", R)))
PAIRS = changes_schema([K, L, R])
NO_COUNTS = Counts()


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """An inner join over two traces, one slice per pair of left and right: d(L x R) = dL x R + (L + dL) x dR."""

    inputs = (Input("left", ("_hash", "k", "l", "_weight")), Input("right", ("_hash", "k", "r", "_weight")))

    def step(self, deltas, state):
        left, right = (delta.combine_chunks() for delta in deltas)
        manifest, store = state.manifest, state.store
        keys = sorted({*left["k"].to_pylist(), *right["k"].to_pylist()})
        lefts = stored(LEFT, manifest, store, keys) + counted(left)
        rights = stored(RIGHT, manifest, store, keys)
        for spec, delta in ((LEFT, left), (RIGHT, right)):
            batch = delta.select(spec.schema.names).cast(spec.schema).sort_by("_hash").combine_chunks().to_batches()
            if batch:
                manifest = manifest.with_runs(spec.name, append(store, spec, manifest.runs(spec.name), batch[0]))
        slices = (*pairs(counted(left), rights), *pairs(lefts, counted(right)))
        return Step((a_slice() for a_slice in slices), manifest, Counts())

    def rows(self, manifest, store):
        yield from ()

    def traces(self, manifests):
        return [LEFT, RIGHT]


def stored(spec, manifest, store, keys):
    runs = [store.open(run) for run in manifest.runs(spec.name)]
    if not runs or not keys:
        return Counter()
    names = ("k", spec.values[0], "_weight")
    columns = matches(spec, runs, Wanted(np.array(keys), (pa.array(keys),)), names).columns
    return weighed(*(columns[name].to_pylist() for name in names))


def counted(delta):
    return weighed(*(delta[name].to_pylist() for name in ("k", delta.column_names[2], "_weight")))


def weighed(keys, values, weights):
    rows = Counter()
    for key, value, weight in zip(keys, values, weights, strict=True):
        rows[key, value] += weight
    return rows


def pairs(lefts, rights):
    for (key, left), one in lefts.items():
        for (other, right), two in rights.items():
            if key == other and one * two:
                row = {"_op": "+I", "_weight": one * two, "k": key, "l": left, "r": right}
                yield lambda row=row: pa.RecordBatch.from_pylist([row], schema=PAIRS)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A kernel that returns these slices, calling those that are functions, and these counts."""

    slices: tuple
    counts: Counts = NO_COUNTS

    inputs = (Input("rows"),)

    def step(self, deltas, state):
        return Step((each() if callable(each) else each for each in self.slices), Manifest(), self.counts)

    def rows(self, manifest, store):
        yield pa.RecordBatch.from_pydict({"k": pa.array([1, 2], pa.int64())})

    def traces(self, manifests):
        return []


def state(home: Path, manifests=None) -> OperatorState:
    return OperatorState(7, "op", str(home), manifests or {})


def emit(home: Path, names: str = "k", **options) -> Emit:
    return Emit(7, str(home), "changes", tuple((name, name) for name in names), None, 0, **options)


def change(key: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"_op": "+I", "_weight": 1, "k": key}], schema=changes_schema([K]))


def some_rows(shard: int = 0, reports=()) -> pa.RecordBatch:
    rows = [{SHARD: shard, "k": 1, REPORT: None}, *({SHARD: None, "k": None, REPORT: text} for text in reports)]
    return pa.RecordBatch.from_pylist(rows, pa.schema({SHARD: pa.int32(), "k": pa.int64(), REPORT: pa.string()}))


def results(batches) -> tuple[list[dict], list]:
    """Data rows without reports, and the reports."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    reports = [report_of(row[REPORT]) for row in rows if row[REPORT] is not None]
    return [row for row in rows if row[REPORT] is None], reports


def tagged(*rows) -> pa.RecordBatch:
    """(input, key, value, weight) as the union of both inputs of the join."""
    union_rows = [
        {SHARD: 3, INPUT: tag, "_hash": key, "k": key, "l": None if tag else value, "r": value if tag else None}
        | {"_weight": weight}
        for tag, key, value, weight in rows
    ]
    kinds = {SHARD: pa.int32(), INPUT: pa.int32()} | dict.fromkeys(("_hash", "k", "l", "r", "_weight"), pa.int64())
    return pa.RecordBatch.from_pylist(union_rows, schema=pa.schema(kinds))


def test_join_of_two_inputs_and_two_traces_runs_in_one_task(tmp_path):
    manifests, total = {}, Counter()
    for rows in (
        [(0, 1, 10, 1), (0, 2, 20, 1)],
        [(1, 1, 100, 1), (0, 1, 11, 2)],
        [(0, 1, 10, -1), (1, 2, 200, 1), (1, 1, 100, -1), (1, 1, 101, 1)],
    ):
        task = ShardTask(Join(), state(tmp_path, manifests), (K, L, R), emit(tmp_path, "klr"))
        changes, reports = results(task([tagged(*rows)]))
        for row in changes:
            total[row["k"], row["l"], row["r"]] += row["_weight"]
        manifests = {report.shard: report.manifest for report in reports if isinstance(report, StateReport)}
    assert {pair: weight for pair, weight in total.items() if weight} == {(1, 11, 101): 2, (2, 20, 200): 1}
    assert [name for name, _ in Manifest.from_json(manifests[3]).traces] == ["left", "right"]


def test_slices_go_to_spark_and_to_one_file_one_at_a_time(tmp_path):
    computed = []
    slices = tuple(lambda key=key: computed.append(key) or change(key) for key in (1, 2, 3))
    task = ShardTask(Given(slices), state(tmp_path), (K,), emit(tmp_path))
    output = task([some_rows()])
    assert next(output).column("k").to_pylist() == [1]
    assert computed == [1]
    rows, reports = results(output)
    assert [row["k"] for row in rows] == [2, 3]
    (changes,) = (report for report in reports if isinstance(report, ChangesReport))
    file = pq.ParquetFile(tmp_path / changes.file)
    assert (changes.rows, file.num_row_groups, file.read()["k"].to_pylist()) == (3, 3, [1, 2, 3])


def test_changes_that_nobody_reads_are_written_and_not_output(tmp_path):
    task = ShardTask(Given((change(1),)), state(tmp_path), (K,), emit(tmp_path, passes_on=False))
    rows, reports = results(task([some_rows()]))
    assert (rows, [type(each) for each in reports]) == ([], [StateReport, ChangesReport])


def test_held_changes_are_written_to_a_file_of_their_own_and_not_output(tmp_path):
    held = HeldChanges(everything=True)
    rows, reports = results(
        ShardTask(Given((change(1),)), state(tmp_path), (K,), emit(tmp_path, held=held))([some_rows()])
    )
    assert (rows, [type(each) for each in reports]) == ([], [StateReport, HeldReport])


def test_step_without_changes_writes_no_file(tmp_path):
    _, reports = results(ShardTask(Given(()), state(tmp_path), (K,), emit(tmp_path))([some_rows()]))
    assert [type(each) for each in reports] == [StateReport]
    assert not os.listdir(tmp_path)


def test_counts_of_a_step_are_reported(tmp_path):
    counts = Counts(anomalies=1, recovered=2, dropped=3, moved=4, late=5)
    _, reports = results(ShardTask(Given((), counts), state(tmp_path), (K,))([some_rows(shard=6)]))
    assert reports == [LateReport(7), StateReport(7, "op", 6, Manifest().to_json(), 1, 2, 3, 4)]


def test_reports_of_upstream_stages_pass_through_even_if_there_are_no_rows(tmp_path):
    text = report_text(ChangesReport(1, "f", 2))
    task = ShardTask(Given(()), state(tmp_path), (K,))
    assert results(task([some_rows(reports=[text]).slice(1)])) == ([], [ChangesReport(1, "f", 2)])
    assert results(task([some_rows(reports=[text])]))[1][0] == ChangesReport(1, "f", 2)


def overflow() -> pa.RecordBatch:
    raise ValueOverflow(aggregate="SUM", what="group 1", value=1, type="bigint")


def test_error_in_a_later_slice_fails_this_owner_and_reports_nothing_else_of_it(tmp_path):
    text = report_text(ChangesReport(1, "f", 2))
    task = ShardTask(Given((change(1), overflow)), state(tmp_path), (K,), emit(tmp_path))
    _, reports = results(task([some_rows(reports=[text])]))
    upstream, failure = reports
    assert upstream == ChangesReport(1, "f", 2)
    assert isinstance(failure, FailureReport)
    assert (failure.owner, failure.code) == (7, ValueOverflow.code)


def test_error_of_an_owner_that_does_not_fail_alone_is_raised(tmp_path):
    with pytest.raises(ValueOverflow):
        list(ShardTask(Given((overflow,)), state(tmp_path), (K,), fails_alone=False)([some_rows()]))


def test_error_of_the_machine_is_raised(tmp_path):
    (tmp_path / "changes").write_text("a file where the directory should be")
    with pytest.raises(OSError, match="changes"):
        list(ShardTask(Given((change(1),)), state(tmp_path), (K,), emit(tmp_path))([some_rows()]))


def test_task_with_rows_of_two_shards_is_an_error(tmp_path):
    task = ShardTask(Given(()), state(tmp_path), (K,), fails_alone=False)
    with pytest.raises(AssertionError, match=r"\[0, 1\]"):
        list(task([some_rows(0), some_rows(1)]))


def test_shard_computed_by_two_tasks_is_an_error():
    reports = [StateReport(7, "op", 0, "a"), StateReport(7, "op", 0, "b")]
    with pytest.raises(AssertionError, match="view v was computed in two tasks"):
        OwnerReports.of("view v", reports)


def test_rows_are_read_back_through_the_kernel_from_shards_that_have_state(tmp_path):
    schema = pa.schema([pa.field("key", pa.int32())])
    rows = ShardRows(Given(()), state(tmp_path, {1: Manifest().to_json()}), schema)
    batches = list(rows([pa.RecordBatch.from_pydict({"id": [0, 1, 2]})]))
    assert [(batch.schema, batch["key"].to_pylist()) for batch in batches] == [(schema, [1, 2])]
