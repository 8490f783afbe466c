"""Helpers that run inside Spark's Python workers, to keep garbage collection and worker restarts cheap."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING

from pyspark import TaskContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

# Skipping this many bytes takes a fraction of the time that starting another worker takes.
PASSED_OVER = 64 << 20


@cache
def settle_worker() -> None:
    """Exclude everything loaded so far from future garbage collections. Call it at the start of a task.

    A worker collects garbage after each task, and traverses all its modules: 60 ms of CPU time that the driver needs to
    commit the epoch. Outside a worker process this does nothing.
    """
    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()


def pass_over(batches: Iterator[pa.RecordBatch]) -> None:
    """Read and discard the remaining input of a task that does not need it. Call it before the task returns.

    Spark terminates a worker that has not read its input to the end, and a new one takes two seconds of CPU time to
    load its modules. Of a very large input the rest is left unread anyway.
    """
    passed = 0
    for batch in batches:
        passed += batch.nbytes
        if passed > PASSED_OVER:
            return
