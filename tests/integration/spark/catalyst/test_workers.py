"""What Python workers are told once: tasks run in processes that serve many of them."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from laminae.spark.catalyst import python_worker as workers
from laminae.spark.catalyst.python_worker import settle_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def frozen_objects(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        before = gc.get_freeze_count()
        settle_worker()
        settle_worker()
        yield pa.RecordBatch.from_pydict({"before": [before], "after": [gc.get_freeze_count()]})


def test_a_worker_leaves_what_it_has_loaded_out_of_its_collections(spark):
    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    rows = spark.range(0, 8, 1, 8).mapInArrow(frozen_objects, "before LONG, after LONG").collect()
    assert len(rows) == 8
    # All modules are among them; a worker that was told before has them frozen already.
    assert all(row.after > 10_000 for row in rows)
    assert all(row.before in (0, row.after) for row in rows)


def test_nothing_is_done_in_a_process_that_is_no_worker():
    before = gc.get_freeze_count()
    settle_worker()
    assert gc.get_freeze_count() == before


@pytest.mark.parametrize(("size", "left"), [(0, 0), (1, 0), (10, 0), (13, 2)])
def test_what_is_not_far_from_the_end_is_passed_over(monkeypatch, size, left):
    monkeypatch.setattr(workers, "PASSED_OVER", 100)
    batches = iter([pa.record_batch({"x": pa.array([0] * 10, pa.int8())})] * size)
    workers.pass_over(batches)
    assert len(list(batches)) == left


def end_early(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    next(batches)
    workers.pass_over(batches)
    yield pa.record_batch({"id": pa.array([os.getpid()], pa.int64())})


def test_a_worker_that_passes_over_what_is_left_serves_the_next_task(spark):
    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    rows = spark.range(0, 24 * 30_000, 1, 24).mapInArrow(end_early, "id LONG").collect()
    # Else each task would have another one.
    assert len({row.id for row in rows}) < len(rows) == 24
