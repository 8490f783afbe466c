"""What a Python worker of Spark's is told once."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING

from pyspark import TaskContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

# To pass these bytes over takes a part of the time that another worker takes to start.
PASSED_OVER = 64 << 20


@cache
def settle_worker() -> None:
    """Leave what is loaded by now out of every collection of garbage to come. To be called where a task begins.

    Behind each task a worker collects, and so goes through all its modules: 60 ms of a processor that the driver needs
    to commit the epoch. Nothing is done in a process that is no worker.
    """
    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()


def pass_over(batches: Iterator[pa.RecordBatch]) -> None:
    """Let go of what is still to come where a task has no use for it. To be called before it returns.

    Spark ends a worker that has not read to the end, and another takes two seconds of a processor until it has loaded
    what it needs. Of a great many rows the rest is left all the same.
    """
    passed = 0
    for batch in batches:
        passed += batch.nbytes
        if passed > PASSED_OVER:
            return
