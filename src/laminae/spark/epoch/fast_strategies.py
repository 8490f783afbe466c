"""Executes the fast read strategies of an epoch's plan, in order, until one decides every record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine.epochs.read_strategy import ReadStrategy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.engine.epochs.epoch_plan import EpochPlan, SourceCache
    from laminae.spark.epoch.writer import EpochWriter, Written
    from laminae.spark.formats.protocol import QuickRows
    from laminae.spark.sources.protocol import LogRange
    from laminae.spark.sources.reader import SourceReader
    from laminae.spark.views.runner import EpochViews


@dataclass(frozen=True, slots=True)
class FastAttempt:
    """What a fast strategy wrote; None if no strategy decides every record. `has_failed`: one was tried in vain."""

    written: Written | None
    has_failed: bool = False


def write_fast(
    spark: SparkSession,
    reader: SourceReader,
    span: LogRange,
    plan: EpochPlan,
    views: EpochViews,
    cache: SourceCache,
    writer: EpochWriter,
) -> FastAttempt:
    """Fast strategies produce no error reasons: one record that needs the full decoder invalidates the attempt."""
    has_failed = False
    for strategy in plan.strategies:
        # A strategy that has just failed may rule out a later one.
        if strategy is ReadStrategy.EXACT or strategy in cache.disabled(plan.batch_id):
            continue
        rows = _rows_by(strategy, spark, reader, span, plan, views.fits)
        if rows is None:
            continue
        written = writer.quickly(plan, rows, views)
        if not written.has_errors:
            return FastAttempt(written)
        cache.disable(plan.batch_id, strategy, only_long=rows.only_long())
        has_failed = True
    return FastAttempt(None, has_failed)


def _rows_by(
    strategy: ReadStrategy,
    spark: SparkSession,
    reader: SourceReader,
    span: LogRange,
    plan: EpochPlan,
    fits: str | None,
) -> QuickRows | None:
    if strategy is ReadStrategy.FAST_PLAN:
        return reader.fast_rows(spark, span, plan.table, fits)
    return reader.arrow_rows(spark, span, plan.table, are_short=strategy is ReadStrategy.ARROW_SHORT_LINES)
