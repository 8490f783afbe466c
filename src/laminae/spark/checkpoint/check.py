"""Check a checkpoint against a changed query: read, probe, decide. Nothing is written into the checkpoint."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.errors import CheckpointInvalid, InvalidQuery
from laminae.spark.catalyst.hadoop_files import HadoopFiles
from laminae.spark.catalyst.spark_errors import RAISED_BY_SPARK, root_cause
from laminae.spark.checkpoint.active_query import Watch, logs, refuse_if_moved, refuse_if_running
from laminae.spark.checkpoint.probe import probed
from laminae.spark.checkpoint.progress import OnStep, silent
from laminae.spark.checkpoint.session import session_of
from laminae.spark.checkpoint.state_rows import row_counts
from laminae.state.checkpoint.aggregates import QueryNote
from laminae.state.checkpoint.buffers import Assumptions, fits
from laminae.state.checkpoint.check import check
from laminae.state.checkpoint.reading import DAMAGED, read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.probe import Probe
    from laminae.spark.checkpoint.query import Build
    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import CheckReport

NOTE = "_laminae/query.json"


@dataclass(frozen=True, slots=True)
class Checked:
    """A report, what it is based on, and the log entries of the checkpoint at that time."""

    files: HadoopFiles
    old: Checkpoint
    probe: Probe
    report: CheckReport
    logs: frozenset[str]

    def with_rows(self, counts: dict[tuple[int, str, str], int]) -> CheckReport:
        """The report with the number of rows of each column family."""
        plans = (replace(plan, rows=counts[plan.operator, plan.store, plan.family]) for plan in self.report.families)
        return replace(self.report, families=tuple(plans))


def check_checkpoint(
    checkpoint: str,
    build: Build,
    *,
    spark: SparkSession | None = None,
    from_build: Build | None = None,
    same_aggregates: bool = False,
    add_aggregates: bool = False,
    on_step: OnStep = silent,
) -> CheckReport:
    """Whether the query of `build(spark)` can continue with the state in a stopped query's checkpoint.

    A dry run: it reads, plans and counts. `from_build` builds the query as it ran, so that aggregates are matched by
    expression; `same_aggregates` asserts that they have not changed; `add_aggregates` lets new ones start empty.
    """
    assumed = Assumptions(same_aggregates, add_aggregates)
    session = session_of(spark)
    with checked(session, checkpoint, build, from_build, assumed, on_step) as result:
        on_step("count the rows of state", 0, 1)
        report = result.with_rows(_counts(session, result.old)) if result.report.families else result.report
        refuse_if_moved(result.files, result.old.location, result.logs)
        return report


@contextmanager
def checked(
    spark: SparkSession,
    checkpoint: str,
    build: Build,
    from_build: Build | None,
    assumed: Assumptions,
    on_step: OnStep,
) -> Iterator[Checked]:
    """Yield the report while the probe's scratch files exist; raise if the query is running on the checkpoint."""
    files = HadoopFiles(spark)
    location = files.qualified(str(checkpoint))
    refuse_if_running(spark, files, location)
    on_step("read the checkpoint", 0, 1)
    old = read_checkpoint(files, location)
    seen = logs(files, location)
    ran = _note(files, old)
    if from_build is not None:
        on_step("plan the query as it ran", 0, 1)
        with probed(spark, files, old, from_build) as before:
            ran = before.planned.note
        _refuse_another(old, ran, from_build)
    on_step("plan the new query", 0, 1)
    with probed(spark, files, old, build) as probe:
        report = check(old, probe.planned, ran, assumed)
        Watch(files).until_quiet(location, seen)
        yield Checked(files, old, probe, report, seen)


def _counts(spark: SparkSession, old: Checkpoint) -> dict[tuple[int, str, str], int]:
    try:
        return row_counts(spark, old)
    except RAISED_BY_SPARK as problem:
        cause = f"its state cannot be read, {root_cause(problem)}"
        raise CheckpointInvalid(checkpoint=old.location, problem=cause, advice=DAMAGED) from problem


def _note(files: HadoopFiles, old: Checkpoint) -> QueryNote | None:
    """The note about the query of this checkpoint that an earlier migration wrote."""
    read = files.read(f"{old.location}/{NOTE}")
    return None if read is None else QueryNote.from_bytes(read)


def _refuse_another(old: Checkpoint, ran: QueryNote, build: Build) -> None:
    for operator in old.operators:
        for store in operator.stores:
            for family in store.families:
                if not fits(ran.of(operator.id), family.value):
                    raise InvalidQuery(
                        query=getattr(build, "__qualname__", "the query as it ran"),
                        problem=f"its aggregates are not those of operator {operator.id} in {old.location}",
                        advice="Pass the query that wrote this checkpoint, unchanged.",
                    )
