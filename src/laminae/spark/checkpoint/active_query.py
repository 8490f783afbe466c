"""Whether a query is running on a checkpoint: in this application, or elsewhere, as seen from growing checkpoint logs.

Spark leaves no lock in a checkpoint, so the logs serve as the heartbeat of a query in another application. If the last
entry is recent compared with the duration of the query's batches, the logs are watched for a new entry.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from laminae.errors import CheckpointInUse
from laminae.spark.catalyst.streaming.streaming_query import active_queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.spark.catalyst.hadoop_files import HadoopFiles

LOGS = ("offsets", "commits")
LAST_BATCHES = 6
LONGEST_WATCH_SECONDS = 60.0
LOOK_SECONDS = 0.25


def refuse_if_running(spark: SparkSession, files: HadoopFiles, location: str) -> None:
    """Raise if a query of any session of this application uses the checkpoint."""
    for query in active_queries(spark):
        if files.qualified(query.checkpoint) == location:
            evidence = f"query {query.name} of this application is active on it"
            raise CheckpointInUse(checkpoint=location, evidence=evidence)


def refuse_if_moved(files: HadoopFiles, location: str, before: frozenset[str]) -> None:
    """Raise if the logs have changed since `before`: a query has run, and decisions based on them are outdated."""
    after = logs(files, location)
    if after != before:
        new = ", ".join(sorted(after - before)) or "its logs were truncated"
        raise CheckpointInUse(checkpoint=location, evidence=f"it has progressed since ({new})")


def logs(files: HadoopFiles, location: str) -> frozenset[str]:
    return frozenset(f"{log}/{name}" for log in LOGS for name in files.names(f"{location}/{log}"))


@dataclass(frozen=True, slots=True)
class Watch:
    """Polls the logs of a checkpoint until a running query would have written an entry."""

    files: HadoopFiles
    clock: Callable[[], float] = time.time
    wait: Callable[[float], None] = time.sleep

    def until_quiet(self, location: str, before: frozenset[str]) -> None:
        """Raise when the logs change. A checkpoint without recent entries is not waited for."""
        end = self._quiet_at(location)
        refuse_if_moved(self.files, location, before)
        while self.clock() < end:
            self.wait(LOOK_SECONDS)
            refuse_if_moved(self.files, location, before)

    def _quiet_at(self, location: str) -> float:
        """The last entry's time plus twice the longest of the last batches, in seconds since the epoch."""
        written = {log: self.files.times(f"{location}/{log}") for log in LOGS}
        batches = sorted((int(name), moment) for name, moment in written["commits"].items() if name.isdigit())
        last = [moment for _, moment in batches[-LAST_BATCHES:]]
        longest = max((later - earlier for earlier, later in pairwise(last)), default=0.0)
        newest = max((moment for times in written.values() for moment in times.values()), default=0.0)
        return newest + min(2 * longest, LONGEST_WATCH_SECONDS)
