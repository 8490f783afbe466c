"""How far a long job of Spark's is: its tasks, told while the thread that started it waits for it."""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.5
GROUP = "spark.jobGroup.id"


@contextmanager
def telling_tasks(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Calls `tell` with the tasks that are done and all there are, of the job that this thread runs now."""
    context = spark.sparkContext
    before, group, ended = context.getLocalProperty(GROUP), f"laminae-{uuid.uuid4().hex}", threading.Event()
    context.setLocalProperty(GROUP, group)
    watcher = threading.Thread(target=_watch, args=(context, group, tell, ended), name="laminae-tasks", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty(GROUP, before)  # type: ignore[arg-type]  # None takes it away


def _watch(context: SparkContext, group: str, tell: Callable[[int, int], None], ended: threading.Event) -> None:
    tracker = context.statusTracker()
    told = (0, 0)
    while not ended.wait(LOOK_SECONDS):
        found = _tasks(tracker, group)
        if found != told and found[1]:
            told = found
            tell(*found)


def _tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Of the newest job; nothing while there is none."""
    jobs = tracker.getJobIdsForGroup(group)
    job = tracker.getJobInfo(max(jobs)) if jobs else None
    stages = [stage for each in (job.stageIds if job else ()) if (stage := tracker.getStageInfo(each)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
