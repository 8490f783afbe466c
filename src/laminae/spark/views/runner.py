"""Plans the views of an epoch from the catalog and runs them in one job.

If an expression fails, the job is run again guarded, with failing rows set aside; then failing views are isolated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import PutSetting, SetViewState
from laminae.engine.definitions.objects import view_plan
from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.options.rows import duration
from laminae.engine.views.order import FAILED, LIVE, WAITING, above, live_above
from laminae.engine.views.watermarks import closed_before, idle_sources, watermark_of
from laminae.spark.tasks.failures import failure_code, failure_text, is_view_failure
from laminae.spark.tasks.task_reports import FailureReport
from laminae.spark.views.group_plans import Based, BasedRelation, is_ready
from laminae.spark.views.input_types import InputTypes
from laminae.spark.views.job import NOTHING, ViewJob, ViewsResult, readers
from laminae.spark.views.plan import ShardPlacement, ViewState, view_state
from laminae.trace.spec import WEIGHT
from laminae.views.emit import strategy_of
from laminae.views.identity import refuse_state_of_another
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.formats.protocol import Rows
    from laminae.spark.source_tables.future_rows import FutureLimit
    from laminae.spark.source_tables.kept_table import KeptTable
    from laminae.spark.source_tables.retractions import Weights
    from laminae.spark.views.group_plans import Plans
    from laminae.spark.views.plan import Relations

SHARDS = "shards"
MOST_SHARDS = 64


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """When an epoch begins, and when its driver began to read; `began` None: all available records have been read."""

    now: datetime
    began: datetime | None = None


class ExpressionFailed(Exception):
    """The query of a view fails on some rows or on all. `__cause__` is the original error."""


@dataclass(frozen=True, slots=True)
class EpochViews:
    """The views that an epoch of one source updates, planned and ready to receive its rows."""

    runner: ViewRunner
    spark: SparkSession
    source: str
    states: tuple[ViewState, ...]
    placement: ShardPlacement | None
    table: KeptTable | None = None
    weights: Weights | None = None
    future: FutureLimit | None = None
    plans: Plans | None = None
    schema: StructType | None = None
    """The schema of the source's rows, for cached plans."""
    is_guarded: bool = False
    """Rows on which an expression fails are set aside; otherwise `run` raises ExpressionFailed."""

    @property
    def fits(self) -> str | None:
        """An additional SQL condition that rows must satisfy, if any."""
        return None if self.weights is None else self.weights.fits

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records, with an error set on those that the source cannot accept.

        Such records are dated too far in the future, have no weight or operation, or do not fit the source's table.
        """
        if self.future is not None:
            records = self.future.judged(records)
        if self.weights is not None:
            return self.weights.judged(records)
        return records if self.table is None else self.table.judged(records)

    def placed(self) -> list[Column]:
        """The columns of decoded records that the source's table, if any, needs in addition to the row."""
        return [] if self.table is None else self.table.placed()

    @property
    def reads(self) -> int:
        """How many times views read the rows of the source."""
        return len(readers(self.source, self.states))

    def run_table(self, placed: DataFrame, are_short: bool) -> ViewsResult:
        """Apply the records to the table that the source keeps, and run the views over the resulting changes.

        `are_short` is that of `laminae.spark.formats.protocol.Rows`.
        """
        assert self.table is not None  # called only for sources that keep a table
        assert self.placement is not None
        directory = self.runner.storage.new_segment(self.table.owner, "changes")
        own, changes = self.table.advance(self.spark, placed, self.placement, directory, are_short)
        if changes is None or not self.states:
            return ViewsResult(own)
        result = self.runner.run(self.spark, self.states, {self.source.casefold(): changes}, self.placement)
        return ViewsResult((*own, *result.updates), result.failures)

    def run(self, rows: Rows) -> ViewsResult:
        if self.placement is None:
            return NOTHING
        based = self._based(rows)
        job = ViewJob(self.runner.catalog, self.runner.storage, self.placement, based=based)
        deltas = {self.source.casefold(): self._changes(rows.frame())} if based is None else {}
        run = self.runner.guarded if self.is_guarded else self.runner.attempt
        return run(self.spark, job, self.states, deltas)

    def _changes(self, rows: DataFrame) -> DataFrame:
        return with_weight(rows) if self.weights is None else self.weights.changes(rows)

    def _based(self, rows: Rows) -> Based | None:
        """The rows as input of cached plans; None unless every view that reads them can use a cached plan."""
        relation = self.source.casefold()
        are_ready = all(is_ready(state, relation) for state in readers(self.source, self.states))
        if self.plans is None or self.schema is None or self.is_guarded or not (rows.is_bare and are_ready):
            return None
        own = BasedRelation(self.schema, rows, self._changes, self.weights)
        return Based(self.plans, self.spark, {relation: own})


@dataclass(frozen=True, slots=True)
class ViewRunner:
    """Plans and runs the views of a home."""

    catalog: Catalog
    storage: Storage
    lease_token: int | None = None

    def live(self, source: SourceRecord, times: EpochTimes | None = None) -> tuple[ViewState, ...]:
        """The views that an epoch of this source updates, in topological order: each after the views that it reads."""
        views = self.catalog.views()
        touched = live_above(source.name, views)
        if not touched:
            return ()
        sources = self.catalog.sources()
        states: list[ViewState] = []
        for view in touched:
            try:
                states.append(self.state(view, sources, views, times=times))
            except Exception as problem:
                if not is_view_failure(problem):
                    raise
                self.fail(view, problem)
                return self.live(source, times)
        return tuple(states)

    def fail(self, view: ViewRecord, problem: Exception) -> None:
        """Mark a view that cannot be planned as failed before the epoch begins; views that read it wait."""
        last, waits = self.catalog.last_epoch(), f"it waits for {view.name}"
        above_it = [reader for reader in above(view.name, self.catalog.views()) if reader.state == LIVE]
        waiting = [SetViewState(reader.id, WAITING, waits, last, if_there=True) for reader in above_it]
        failed = SetViewState(view.id, FAILED, failure_text(problem), last, if_there=True)
        self.catalog.commit([failed, *waiting], lease_token=self.lease_token)

    def state(
        self,
        view: ViewRecord,
        sources: Sequence[SourceRecord],
        views: Sequence[ViewRecord],
        until: int | None = None,
        times: EpochTimes | None = None,
    ) -> ViewState:
        """The plan and state of a view as of an epoch.

        `times` are those of an epoch of its sources, which advances the watermark; without them it is not advanced.
        """
        plan = view_plan(view.name, view.query, sources, views, view.written, view.reading)
        manifests = self.catalog.manifests(view.id, until)
        state = view_state(view.id, view.name, plan, self.catalog.last_advance(view.id), manifests)
        refuse_state_of_another(view.name, plan.root, state.manifests)
        strategy = strategy_of(view.emit)
        emission = None if strategy.is_immediate else self.catalog.last_emission(view.id, until)
        bound = None if emission is None else emission[1]
        inputs, has_refused = InputTypes(sources, views), self.catalog.refused(view.id) > 0
        state = replace(state, strategy=strategy, bound=bound, inputs=inputs, has_refused=has_refused)
        if plan.window is None:
            return state
        last = self.catalog.last_watermark(view.id)
        state = replace(state, watermark=last)
        if times is not None:
            whole, counted = self._watermarks(view, sources, views, times)
            reached = _latest(last, counted)
            # An idle source was left out. Once it is active again this watermark cannot be derived, so it is stored.
            state = replace(state, watermark=reached, moves_watermark=reached != _latest(last, whole))
        return replace(state, closed=closed_before(strategy, state.watermark, bound, lateness_of(view)))

    def watermark(
        self, view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord], times: EpochTimes
    ) -> int | None:
        """The watermark of a view; idle sources do not hold it back. It never decreases."""
        return _latest(self.catalog.last_watermark(view.id), self._watermarks(view, sources, views, times)[1])

    def _watermarks(
        self, view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord], times: EpochTimes
    ) -> tuple[int | None, int | None]:
        """The watermark over all sources, and the one over sources that are not idle."""
        events = {source.id: self.catalog.event_time(source.id) for source in sources if source.watermark is not None}
        idle = idle_sources(self.catalog, sources, times.now, times.began)
        whole = watermark_of(view, sources, views, events)
        return whole, watermark_of(view, sources, views, events, idle) if idle else whole

    def placement(self, spark: SparkSession, time: int = 0) -> ShardPlacement:
        """Where the tasks of an epoch write. The number of shards is fixed when the first view of a home runs."""
        shards = self.catalog.settings().get(SHARDS)
        if shards is None:
            shards = str(min(MOST_SHARDS, spark.sparkContext.defaultParallelism))
            self.catalog.commit([PutSetting(SHARDS, shards)])
        return ShardPlacement(str(self.storage.home), int(shards), time)

    def run(
        self,
        spark: SparkSession,
        states: Sequence[ViewState],
        deltas: Relations,
        placement: ShardPlacement,
        released: tuple[ViewState, DataFrame] | None = None,
    ) -> ViewsResult:
        """Run the views in one job. `spark` must be a session owned by laminae: its shuffle settings are changed here.

        `released` are changes that a view emits now after holding them back; `states` read them. A row on which an
        expression fails is set aside; a view that still cannot be computed is marked as failed, without the others.
        """
        job = ViewJob(self.catalog, self.storage, placement, released=released)
        try:
            return self.attempt(spark, job, states, deltas)
        except ExpressionFailed:
            return self.guarded(spark, job, states, deltas)

    def attempt(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> ViewsResult:
        """Run the job; raises ExpressionFailed when the query of a view fails on these rows."""
        try:
            return job.run(spark, states, deltas)
        except Exception as problem:
            if is_view_failure(problem):
                raise ExpressionFailed from problem
            raise

    def guarded(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> ViewsResult:
        """Run all views with failing rows set aside; if that fails too, determine which views cannot be computed."""
        job = replace(job, is_guarded=True)
        for delta in deltas.values():
            # An error in computing the input rows themselves is not caused by a view, and is raised.
            delta.write.format("noop").mode("overwrite").save()
        try:
            return self.attempt(spark, job, states, deltas)
        except ExpressionFailed:
            return self._apart(spark, job, states, deltas)

    def _apart(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> ViewsResult:
        good: list[ViewState] = []
        failures: list[tuple[ViewState, FailureReport]] = []
        out = set[str]()
        for state in states:
            name = state.name.casefold()
            if any(read.relation.casefold() in out for read in reads_in(state.plan.root)):
                out.add(name)
                continue
            try:
                self.attempt(spark, job, [*good, state], deltas)
            except ExpressionFailed as problem:
                out.add(name)
                cause = problem.__cause__ or problem
                failures.append((state, FailureReport(state.owner, failure_code(cause), failure_text(cause))))
            else:
                good.append(state)
        result = job.run(spark, good, deltas) if good or job.released is not None else NOTHING
        views = self.catalog.views()
        stopped = [
            update for state, failure in failures for update in job.stopped(failure, state, above(state.name, views))
        ]
        return ViewsResult((*result.updates, *stopped), (*result.failures, *(failure for _, failure in failures)))


def _latest(*watermarks: int | None) -> int | None:
    return max((watermark for watermark in watermarks if watermark is not None), default=None)


def lateness_of(view: ViewRecord) -> int:
    """How long after its end a window still accepts rows (`allowed_lateness`), in microseconds."""
    return duration(option(view.options, "allowed_lateness", VIEW_OPTIONS) or "0 seconds") // timedelta(microseconds=1)


def with_weight(rows: DataFrame, weight: int = 1) -> DataFrame:
    return rows.withColumn(WEIGHT, F.lit(weight).cast("bigint"))
