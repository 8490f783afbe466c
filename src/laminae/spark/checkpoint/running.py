"""Whether a query is running on a checkpoint: one of this application, or one that is seen by its logs going on.

Spark leaves no lock in a checkpoint. Its logs are the heartbeat of a query elsewhere: while the last entry is younger
than the query used to take for a batch, they are watched for the next one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from laminae.errors import CheckpointInUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.files import HadoopFiles

LOGS = ("offsets", "commits")
LAST_BATCHES = 6
LONGEST_WATCH_SECONDS = 60.0
LOOK_SECONDS = 0.25


def refuse_if_running(spark: SparkSession, files: HadoopFiles, location: str) -> None:
    """Queries of every session of this application: a notebook has more than one."""
    shared: Any = spark._jsparkSession.sharedState()
    for query in shared.activeStreamingQueries().values():
        if files.qualified(str(query.resolvedCheckpointRoot())) == location:
            name = query.name() or query.id().toString()
            raise CheckpointInUse(checkpoint=location, evidence=f"query {name} of this application is active on it")


def refuse_if_moved(files: HadoopFiles, location: str, before: frozenset[str]) -> None:
    """Refuse what was decided over these logs, if a query has gone on in between."""
    after = logs(files, location)
    if after != before:
        new = ", ".join(sorted(after - before)) or "its logs were cut"
        raise CheckpointInUse(checkpoint=location, evidence=f"it went on in the meantime ({new})")


def logs(files: HadoopFiles, location: str) -> frozenset[str]:
    return frozenset(f"{log}/{name}" for log in LOGS for name in files.names(f"{location}/{log}"))


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at the logs of a checkpoint until a query on it would have shown itself."""

    files: HadoopFiles
    clock: Callable[[], float] = time.time
    wait: Callable[[float], None] = time.sleep

    def until_quiet(self, location: str, before: frozenset[str]) -> None:
        """Raises when something is written to the logs; a checkpoint that has been quiet for long is not waited for."""
        end = self._quiet_at(location)
        refuse_if_moved(self.files, location, before)
        while self.clock() < end:
            self.wait(LOOK_SECONDS)
            refuse_if_moved(self.files, location, before)

    def _quiet_at(self, location: str) -> float:
        """Twice the longest of its last batches after the last entry, in seconds since the epoch."""
        written = {log: self.files.times(f"{location}/{log}") for log in LOGS}
        batches = sorted((int(name), moment) for name, moment in written["commits"].items() if name.isdigit())
        last = [moment for _, moment in batches[-LAST_BATCHES:]]
        longest = max((later - earlier for earlier, later in pairwise(last)), default=0.0)
        newest = max((moment for times in written.values() for moment in times.values()), default=0.0)
        return newest + min(2 * longest, LONGEST_WATCH_SECONDS)
