"""Whether a query is running on a checkpoint: in this application, or seen by files that change meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.errors import CheckpointInUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.files import HadoopFiles


def refuse_if_running(spark: SparkSession, files: HadoopFiles, location: str) -> None:
    for query in spark.streams.active:
        root = query._jsq.streamingQuery().resolvedCheckpointRoot()
        if files.qualified(str(root)) == location:
            name = query.name or query.id
            raise CheckpointInUse(checkpoint=location, evidence=f"query {name} of this application is active on it")


@contextmanager
def at_rest(files: HadoopFiles, location: str) -> Iterator[None]:
    """Refuse at the end what was true at the beginning, if a query has gone on in between."""
    before = _logs(files, location)
    yield
    after = _logs(files, location)
    if after != before:
        new = ", ".join(sorted(after - before)) or "its logs were cut"
        raise CheckpointInUse(checkpoint=location, evidence=f"it went on in the meantime ({new})")


def _logs(files: HadoopFiles, location: str) -> frozenset[str]:
    return frozenset(f"{log}/{name}" for log in ("offsets", "commits") for name in files.names(f"{location}/{log}"))
