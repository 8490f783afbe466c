"""Start a changed query on the state of the old one: check, migrate if needed and enabled, start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import InvalidQuery, StateEvolutionDisabled, StateRefused
from laminae.spark.catalyst.hadoop_files import HadoopFiles
from laminae.spark.checkpoint.check import checked
from laminae.spark.checkpoint.migrate import carried_over
from laminae.spark.checkpoint.progress import OnStep, silent
from laminae.spark.checkpoint.query import built
from laminae.spark.checkpoint.session import is_enabled, session_of
from laminae.state.checkpoint.buffers import Assumptions
from laminae.state.compatibility import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from laminae.spark.checkpoint.query import Build


def start(
    build: Build,
    checkpoint: str,
    new_checkpoint: str,
    *,
    spark: SparkSession | None = None,
    enable: bool | None = None,
    home: str | None = None,
    from_build: Build | None = None,
    same_aggregates: bool = False,
    add_aggregates: bool = False,
    on_step: OnStep = silent,
) -> StreamingQuery:
    """Start the query of `build(spark)`, a DataStreamWriter with its sink, where the old query stopped.

    If the state fits as it is, the query uses the old checkpoint. If the state must change, it is migrated to
    `new_checkpoint`, provided that `enable`, or the setting state.schema-evolution.enable of the session or of `home`,
    is true. Once `new_checkpoint` exists, the same call continues with it.
    """
    session = session_of(spark)
    files = HadoopFiles(session)
    target = files.qualified(str(new_checkpoint))
    assumed = Assumptions(same_aggregates, add_aggregates)
    if files.exists(target):
        checkpoint, from_build = target, None
    with checked(session, checkpoint, build, from_build, assumed, on_step) as result:
        report = result.report
        if not report.is_compatible:
            reasons = "\n".join(f"- {reason}" for reason in report.reasons)
            raise StateRefused(checkpoint=report.checkpoint, reasons=reasons)
        place = report.checkpoint
        if report.kind is Kind.AFTER_MIGRATION:
            if not is_enabled(session, enable, home, unless_said=False):
                raise StateEvolutionDisabled(checkpoint=report.checkpoint, changes=report.changed())
            place = carried_over(session, result, target, on_step).checkpoint
    on_step("start the query", 0, 1)
    return _started(build, session, place)


def _started(build: Build, spark: SparkSession, checkpoint: str) -> StreamingQuery:
    query = built(build, spark)
    if query.writer is None:
        raise InvalidQuery(
            query=query.name,
            problem="it returned a DataFrame, which has no sink to start",
            advice="Return df.writeStream with its format and options from build(spark).",
        )
    return query.writer.option("checkpointLocation", checkpoint).start()
