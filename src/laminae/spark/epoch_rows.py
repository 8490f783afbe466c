"""The rows of an epoch on their way: one Spark job writes them to a segment, counts them, and takes the views along.

Nothing of it exists until the epoch is committed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import AdvanceOwner
from laminae.engine import faults
from laminae.spark.contract import ERROR, PLACED, ROW, UNKNOWN, QuickRows
from laminae.spark.event_time import EventTimes
from laminae.spark.paths import literal_path
from laminae.spark.rows import FrameRows
from laminae.spark.views.job import NOTHING, Outcome
from laminae.spark.views.run import EpochViews, ExpressionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from laminae.engine.epochs import EpochPlan
    from laminae.spark.contract import Rows
    from laminae.spark.storage import Storage

_Rows = TypeVar("_Rows", "DataFrame", QuickRows)


@dataclass(frozen=True, slots=True)
class Written:
    """What the job did and saw: rows by footers or by an aggregate, and facts that stay true when a task runs twice."""

    segment: str | None
    rows: int
    has_errors: bool
    has_unknown: bool
    views: Outcome = NOTHING
    event_time: int | None = None


@dataclass(frozen=True, slots=True)
class EpochRows:
    """Writes the rows of epochs into a home."""

    storage: Storage

    def quickly(self, plan: EpochPlan, quick: QuickRows, views: EpochViews) -> Written:
        """Rows none of which should need a closer look; `has_errors` where one does."""
        return self._carefully(self._quickly, plan, quick, views)

    def closely(self, plan: EpochPlan, decoded: DataFrame, views: EpochViews) -> Written:
        """Decoded records, with a look at every one."""
        return self._carefully(self._closely, plan, decoded, views)

    def _carefully(
        self, write: Callable[[EpochPlan, _Rows, EpochViews], Written], plan: EpochPlan, rows: _Rows, views: EpochViews
    ) -> Written:
        """Write, and once more with rows set aside where an expression of a view fails on some."""
        try:
            return write(plan, rows, views)
        except ExpressionFailed:
            # What a failed job has observed is not all there is to see, so nothing of it is kept.
            return write(plan, rows, replace(views, is_guarded=True))

    def _quickly(self, plan: EpochPlan, quick: QuickRows, views: EpochViews) -> Written:
        """One job: the rows to their segment and through the views, or only counted where nobody reads them."""
        times = EventTimes(plan.source)
        seen = times.seen_in(quick.frame()) if times.are_wanted else None
        read = quick if seen is None else FrameRows(seen, are_short=quick.are_short)
        segment, rows, outcome = self._write(plan, read, views)
        refused = quick.refused()
        if refused and segment is not None:
            self.storage.remove(segment)
        if rows is None:
            # Its own count may have every reading in it, and rows that are set aside are read once more.
            rows = quick.frame().count() if views.is_guarded or _sets_aside(outcome) else quick.count()
        return Written(segment, rows, refused, False, outcome, times.latest())

    def _closely(self, plan: EpochPlan, decoded: DataFrame, views: EpochViews) -> Written:
        """The same with a closer look at every record that needs one, and what is seen beside."""
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
        found = observation.get
        counted = found["rows"] if rows is None else rows
        return Written(segment, counted, bool(found["errors"]), bool(found["unknown"]), outcome, times.latest())

    def _write(self, plan: EpochPlan, rows: Rows, views: EpochViews) -> tuple[str | None, int | None, Outcome]:
        """The segment, how many rows it has (None: the job's own count holds), and what became of the views."""
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
                # Rather than decode everything once more for each reader.
                again = frame.sparkSession.read.schema(frame.schema).parquet(literal_path(path))
                rows = FrameRows(again, is_bare=True)
        faults.reach("rows written")
        if not views.states:
            return segment, count, NOTHING
        outcome = views.run(rows)
        faults.reach("views computed")
        return segment, count, outcome

    def _write_table(self, plan: EpochPlan, rows: Rows, views: EpochViews) -> tuple[str | None, int | None, Outcome]:
        """The same for a source that keeps a table: a segment of its records if a sink asks for it, then the table."""
        segment, count, frame = None, None, rows.frame()
        if plan.has_readers:
            segment = self.storage.new_segment(plan.source.id, "segments")
            frame.drop(PLACED).write.mode("errorifexists").parquet(self.storage.path(segment))
            count = self.storage.rows(segment)
        faults.reach("rows written")
        outcome = views.run_table(frame.select(f"{PLACED}.*"), rows.are_short)
        faults.reach("views computed")
        return segment, count, outcome


def _sets_aside(outcome: Outcome) -> bool:
    return any(isinstance(update, AdvanceOwner) and (update.late or update.refused) for update in outcome.updates)
