"""What a Python worker of Spark's is told once."""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext


@cache
def settle_worker() -> None:
    """Leave what is loaded by now out of every collection of garbage to come. To be called where a task begins.

    Behind each task a worker collects, and so goes through all its modules: 60 ms of a processor that the driver needs
    to commit the epoch. Nothing is done in a process that is no worker.
    """
    if TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
