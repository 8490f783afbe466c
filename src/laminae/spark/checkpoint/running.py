"""Whether a query is running on a checkpoint: in this application, or seen by files that change meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import CheckpointInUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.files import HadoopFiles


def refuse_if_running(spark: SparkSession, files: HadoopFiles, location: str) -> None:
    for query in spark.streams.active:
        root = query._jsq.streamingQuery().resolvedCheckpointRoot()
        if files.qualified(str(root)) == location:
            name = query.name or query.id
            raise CheckpointInUse(checkpoint=location, evidence=f"query {name} of this application is active on it")


def refuse_if_moved(files: HadoopFiles, location: str, before: frozenset[str]) -> None:
    """Refuse what was decided over these logs, if a query has gone on in between."""
    after = logs(files, location)
    if after != before:
        new = ", ".join(sorted(after - before)) or "its logs were cut"
        raise CheckpointInUse(checkpoint=location, evidence=f"it went on in the meantime ({new})")


def logs(files: HadoopFiles, location: str) -> frozenset[str]:
    return frozenset(f"{log}/{name}" for log in ("offsets", "commits") for name in files.names(f"{location}/{log}"))
