"""The state that the new query would keep: Spark plans it over a scratch checkpoint with the old offsets and no state.

The sink is a `foreachBatch` function that does nothing, so no row is read; Spark still writes the state schemas.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.utils import is_remote

from laminae.errors import InvalidQuery, NotAvailable
from laminae.spark.catalyst.spark_errors import cause_texts, root_cause
from laminae.spark.catalyst.streaming.streaming_query import query_note
from laminae.spark.checkpoint.query import MODES, Built, built
from laminae.spark.checkpoint.session import own_session
from laminae.state.checkpoint.check import Planned
from laminae.state.checkpoint.model import PARTITIONS
from laminae.state.checkpoint.reading import read_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.catalyst.hadoop_files import HadoopFiles
    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.aggregates import QueryNote
    from laminae.state.checkpoint.model import Checkpoint

# A batch that is planned and not run commits no state, which Spark reports as an error afterwards.
SETTINGS = {
    "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
}
COMPLAINTS = ("STATE_STORE_COMMIT_VALIDATION_FAILED", "CheckpointInfo length")


@dataclass(frozen=True, slots=True)
class Probe:
    """A planned query, and the scratch checkpoint in which Spark wrote its metadata."""

    directory: str
    planned: Planned


@contextmanager
def probed(spark: SparkSession, files: HadoopFiles, old: Checkpoint, build: Build) -> Iterator[Probe]:
    """Plan a query over the offsets of a checkpoint. The scratch directory is deleted on exit."""
    if is_remote():
        raise NotAvailable(
            feature="Changing the state of a checkpoint",
            problem="the session is Spark Connect, which does not show plans or state",
            advice="Run it with a classic session: SparkSession.builder.master(...).",
        )
    session = own_session(spark, SETTINGS)
    partitions = session.conf.get(PARTITIONS)
    query = built(build, session)
    asked = session.conf.get(PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="laminae-probe-") as scratch:
        directory = f"file:{scratch}/checkpoint"
        note = _planned(files, old, query, directory)
        operators = read_operators(files, directory)
        yield Probe(directory, Planned(operators, note, asked if asked != partitions else None))


def _planned(files: HadoopFiles, old: Checkpoint, query: Built, directory: str) -> QueryNote:
    """The aggregates in the plan of the single batch. A DataFrame without a writer is tried in each output mode."""
    problem: PySparkException | None = None
    for mode in MODES if query.mode is None else (query.mode,):
        files.delete(directory)
        files.write(f"{directory}/offsets/0", files.read(f"{old.location}/offsets/{old.batch}") or b"")
        files.copy(f"{old.location}/metadata", f"{directory}/metadata")
        if files.exists(f"{old.location}/sources"):
            files.copy(f"{old.location}/sources", f"{directory}/sources")
        try:
            return _plan(query.frame, mode, directory)
        except PySparkException as found:
            problem = found
    assert problem is not None
    raise InvalidQuery(
        query=query.name,
        problem=f"Spark cannot plan it over the checkpoint: {root_cause(problem)}",
        advice="Keep the sources of the query and their order, and check that each can be reached.",
    ) from problem


def _plan(frame: DataFrame, mode: str, directory: str) -> QueryNote:
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", directory).foreachBatch(_nothing)
    query = writer.trigger(once=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as problem:
        # A `build` function that uses a captured session instead of its argument does not see SETTINGS.
        if not any(complaint in text for complaint in COMPLAINTS for text in cause_texts(problem)):
            raise
    finally:
        query.stop()
    return query_note(query)


def _nothing(frame: DataFrame, batch: int) -> None:
    """Read no row: the batch is then planned and not run."""
