"""Writes the rows of an epoch: one Spark job writes them to a segment, counts them and updates the views.

None of the results is visible until the epoch is committed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import AdvanceOwner
from laminae.engine import faults
from laminae.spark.catalyst.paths import literal_path
from laminae.spark.epoch.watermark import EventTimes
from laminae.spark.formats.frame_rows import FrameRows
from laminae.spark.formats.protocol import ERROR, PLACED, ROW, UNKNOWN, QuickRows
from laminae.spark.views.job import NOTHING, ViewsResult
from laminae.spark.views.runner import EpochViews, ExpressionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from laminae.engine.epochs.epoch_plan import EpochPlan
    from laminae.spark.driver.storage import Storage
    from laminae.spark.formats.protocol import Rows

_Rows = TypeVar("_Rows", "DataFrame", QuickRows)


@dataclass(frozen=True, slots=True)
class Written:
    """What the job wrote and observed.

    `rows` comes from Parquet footers or from an aggregate; the flags stay correct when a task runs twice.
    """

    segment: str | None
    rows: int
    has_errors: bool
    has_unknown: bool
    views: ViewsResult = NOTHING
    event_time: int | None = None


@dataclass(frozen=True, slots=True)
class EpochWriter:
    """Writes the rows of epochs into a home."""

    storage: Storage

    def quickly(self, plan: EpochPlan, quick: QuickRows, views: EpochViews) -> Written:
        """Write the rows of a fast path. `has_errors` is set if a record needs the full decoder."""
        return self._carefully(self._quickly, plan, quick, views)

    def closely(self, plan: EpochPlan, decoded: DataFrame, views: EpochViews) -> Written:
        """Write the rows of fully decoded records, each of which has been checked."""
        return self._carefully(self._closely, plan, decoded, views)

    def _carefully(
        self, write: Callable[[EpochPlan, _Rows, EpochViews], Written], plan: EpochPlan, rows: _Rows, views: EpochViews
    ) -> Written:
        """Write; if a view's expression fails, write again and set aside the rows on which it fails."""
        try:
            return write(plan, rows, views)
        except ExpressionFailed:
            # The observations of a failed job are incomplete, so none of them is kept.
            return write(plan, rows, replace(views, is_guarded=True))

    def _quickly(self, plan: EpochPlan, quick: QuickRows, views: EpochViews) -> Written:
        """One job: write the rows to a segment and run the views on them, or only count rows that have no reader."""
        times = EventTimes(plan.source)
        seen = times.seen_in(quick.frame()) if times.are_wanted else None
        read = quick if seen is None else FrameRows(seen, are_short=quick.are_short)
        segment, rows, outcome = self._write(plan, read, views)
        refused = quick.refused()
        if refused and segment is not None:
            self.storage.remove(segment)
        if rows is None:
            # `quick.count()` may include every read of the rows, and setting rows aside reads them a second time.
            rows = quick.frame().count() if views.is_guarded or _sets_aside(outcome) else quick.count()
        return Written(segment, rows, refused, False, outcome, times.latest())

    def _closely(self, plan: EpochPlan, decoded: DataFrame, views: EpochViews) -> Written:
        """Like `_quickly` for decoded records; the job also observes errors, unknown fields and the number of rows."""
        observation = Observation()
        seen = decoded.observe(
            observation,
            F.max(F.col(ERROR).isNotNull()).alias("errors"),
            F.max(F.col(UNKNOWN)).alias("unknown"),
            F.count_if(F.col(ERROR).isNull()).alias("rows"),
        )
        times = EventTimes(plan.source)
        good = times.seen_in(seen.where(F.col(ERROR).isNull()).select(f"{ROW}.*", *views.placed()))
        segment, rows, outcome = self._write(plan, FrameRows(good), views)
        observed = observation.get
        counted = observed["rows"] if rows is None else rows
        return Written(segment, counted, bool(observed["errors"]), bool(observed["unknown"]), outcome, times.latest())

    def _write(self, plan: EpochPlan, rows: Rows, views: EpochViews) -> tuple[str | None, int | None, ViewsResult]:
        """Return the segment, its number of rows (None: use the job's own count) and the outcome of the views."""
        if views.table is not None:
            return self._write_table(plan, rows, views)
        if not plan.has_readers and not views.states:
            counted = rows.frame().count()
            faults.reach("rows written")
            return None, counted, NOTHING
        segment, count = None, None
        if plan.has_readers or views.reads > 1 or views.is_guarded:
            segment = self.storage.new_segment(plan.source.id, "segments")
            path = self.storage.path(segment)
            frame = rows.frame()
            frame.write.mode("errorifexists").parquet(path)
            count = self.storage.rows(segment)
            if views.states:
                # Read the segment back instead of decoding all records again for each reader.
                again = frame.sparkSession.read.schema(frame.schema).parquet(literal_path(path))
                rows = FrameRows(again, is_bare=True)
        faults.reach("rows written")
        if not views.states:
            return segment, count, NOTHING
        outcome = views.run(rows)
        faults.reach("views computed")
        return segment, count, outcome

    def _write_table(
        self, plan: EpochPlan, rows: Rows, views: EpochViews
    ) -> tuple[str | None, int | None, ViewsResult]:
        """Like `_write` for a source that keeps a table: write a segment if a sink reads it, then update the table."""
        segment, count, frame = None, None, rows.frame()
        if plan.has_readers:
            segment = self.storage.new_segment(plan.source.id, "segments")
            frame.drop(PLACED).write.mode("errorifexists").parquet(self.storage.path(segment))
            count = self.storage.rows(segment)
        faults.reach("rows written")
        outcome = views.run_table(frame.select(f"{PLACED}.*"), rows.are_short)
        faults.reach("views computed")
        return segment, count, outcome


def _sets_aside(outcome: ViewsResult) -> bool:
    return any(isinstance(update, AdvanceOwner) and (update.late or update.refused) for update in outcome.updates)
