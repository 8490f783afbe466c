"""Progress of long operations, reported to a callback: named steps, and the finished tasks of a Spark job."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext, StatusTracker
    from pyspark.sql import SparkSession

OnStep: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of the step, the finished amount and the total amount."""
LOOK_SECONDS = 0.5
GROUP = "spark.jobGroup.id"


def silent(step: str, done: int, total: int) -> None:
    """Ignore the progress."""


@contextmanager
def telling_tasks(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Call `tell` with the finished and the total number of tasks of the Spark job that this thread runs."""
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
        context.setLocalProperty(GROUP, before)  # type: ignore[arg-type]  # None removes it


def _watch(context: SparkContext, group: str, tell: Callable[[int, int], None], ended: threading.Event) -> None:
    tracker = context.statusTracker()
    reported = (0, 0)
    while not ended.wait(LOOK_SECONDS):
        tasks = _tasks(tracker, group)
        if tasks != reported and tasks[1]:
            reported = tasks
            tell(*tasks)


def _tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """The finished and the total number of tasks of the newest job; zeros before the first job."""
    jobs = tracker.getJobIdsForGroup(group)
    job = tracker.getJobInfo(max(jobs)) if jobs else None
    stages = [
        stage for stage_id in (job.stageIds if job else ()) if (stage := tracker.getStageInfo(stage_id)) is not None
    ]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
