"""The views of an epoch: planned from the catalog, run in one job, and again with care if an expression fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import PutSetting
from laminae.engine.definitions import view_plan
from laminae.engine.options import VIEW_OPTIONS, duration, option
from laminae.engine.view_order import above, live_above
from laminae.engine.watermarks import idle_sources, watermark_of
from laminae.spark.views.job import NOTHING, Outcome, ViewJob, readers
from laminae.spark.views.notes import FailureNote
from laminae.spark.views.plans import Based, BasedRelation, is_ready
from laminae.spark.views.tree import Place, ViewState, view_state
from laminae.trace.spec import WEIGHT
from laminae.views.emission import strategy_of
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.epochs import Way
    from laminae.spark.contract import Rows
    from laminae.spark.storage import Storage
    from laminae.spark.views.future import FutureLimit
    from laminae.spark.views.plans import Plans
    from laminae.spark.views.source_tables import KeptTable
    from laminae.spark.views.tree import Relations
    from laminae.spark.views.weights import Weights
    from laminae.views.operators import ViewPlan

SHARDS = "shards"
QUERY_FAILED = "QUERY_FAILED"
# Data exceptions, and queries that cannot be analysed.
EXPRESSION_STATES = ("22", "42")
MOST_SHARDS = 64


class ExpressionFailed(Exception):
    """The query of a view cannot be computed of some rows, or of any. Its cause says why."""


@dataclass(frozen=True, slots=True)
class EpochViews:
    """The views that an epoch of one source takes along, ready to be given its rows."""

    runner: ViewRunner
    spark: SparkSession
    source: str
    states: tuple[ViewState, ...]
    place: Place | None
    table: KeptTable | None = None
    weights: Weights | None = None
    future: FutureLimit | None = None
    plans: Plans | None = None
    schema: StructType | None = None
    """Of the rows of the source, for kept plans."""
    is_guarded: bool = False
    """Rows on which an expression fails are set aside; else `run` says ExpressionFailed."""

    def ways(self, ways: Sequence[Way]) -> list[Way]:
        """Those of them that tell enough of a record: where it stands, and when it came, is not in its row."""
        if self.future is not None:
            return []
        return list(ways) if self.table is None else self.table.ways(ways)

    @property
    def fits(self) -> str | None:
        """What rows must be like besides, as a condition in SQL."""
        return None if self.weights is None else self.weights.fits

    def judged(self, records: DataFrame) -> DataFrame:
        """Decoded records: those with an error as well that the source cannot take, or that do not say what they do."""
        if self.future is not None:
            records = self.future.judged(records)
        if self.weights is not None:
            return self.weights.judged(records)
        return records if self.table is None else self.table.judged(records)

    def placed(self) -> list[Column]:
        """What the table of the source, if it keeps one, needs of decoded records beside the row."""
        return [] if self.table is None else self.table.placed()

    @property
    def reads(self) -> int:
        """How often the rows of the source are read."""
        return len(readers(self.source, self.states))

    def run_table(self, placed: DataFrame, are_short: bool) -> Outcome:
        """The records of a source that keeps a table: first through that, and its changes through the views.

        `are_short` as of `laminae.spark.contract.Rows`.
        """
        assert self.table is not None  # else there is nothing to run
        assert self.place is not None
        directory = self.runner.storage.new_segment(self.table.owner, "changes")
        own, changes = self.table.advance(self.spark, placed, self.place, directory, are_short)
        if changes is None or not self.states:
            return Outcome(own)
        found = self.runner.run(self.spark, self.states, {self.source.casefold(): changes}, self.place)
        return Outcome((*own, *found.updates), found.failures)

    def run(self, rows: Rows) -> Outcome:
        if self.place is None:
            return NOTHING
        based = self._based(rows)
        job = ViewJob(self.runner.catalog, self.runner.storage, self.place, based=based)
        deltas = {self.source.casefold(): self._changes(rows.frame())} if based is None else {}
        run = self.runner.guarded if self.is_guarded else self.runner.attempt
        return run(self.spark, job, self.states, deltas)

    def _changes(self, rows: DataFrame) -> DataFrame:
        return with_weight(rows) if self.weights is None else self.weights.changes(rows)

    def _based(self, rows: Rows) -> Based | None:
        """The rows for kept plans, where every view that reads them has one."""
        relation = self.source.casefold()
        are_ready = all(is_ready(state, relation) for state in readers(self.source, self.states))
        if self.plans is None or self.schema is None or self.is_guarded or not (rows.is_bare and are_ready):
            return None
        own = BasedRelation(self.schema, rows, self._changes, self.weights)
        return Based(self.plans, self.spark, {relation: own})


@dataclass(frozen=True, slots=True)
class ViewRunner:
    """Plans and runs views of a home."""

    catalog: Catalog
    storage: Storage

    def live(self, source: SourceRecord) -> tuple[ViewState, ...]:
        """The views that an epoch of this source takes along, each behind those it reads."""
        views = self.catalog.views()
        touched = live_above(source.name, views)
        if not touched:
            return ()
        sources = self.catalog.sources()
        return tuple(self.state(view, sources, views) for view in touched)

    def state(
        self,
        view: ViewRecord,
        sources: Sequence[SourceRecord],
        views: Sequence[ViewRecord],
        until: int | None = None,
    ) -> ViewState:
        plan = view_plan(view.name, view.query, sources, views, view.written)
        manifests = self.catalog.manifests(view.id, until)
        found = view_state(view.id, view.name, plan, self.catalog.last_advance(view.id), manifests)
        strategy = strategy_of(view.emit)
        emission = None if strategy.is_immediate else self.catalog.last_emission(view.id, until)
        bound = None if emission is None else emission[1]
        closed, has_refused = self._closed(view, plan, sources, views), self.catalog.refused(view.id) > 0
        return replace(found, strategy=strategy, bound=bound, closed=closed, has_refused=has_refused)

    def watermark(
        self,
        view: ViewRecord,
        sources: Sequence[SourceRecord],
        views: Sequence[ViewRecord],
        now: datetime | None = None,
    ) -> int | None:
        """How far event time has come for a view; with a clock, without the sources that are idle."""
        times = {source.id: self.catalog.event_time(source.id) for source in sources if source.watermark is not None}
        idle = frozenset[int]() if now is None else idle_sources(self.catalog, sources, now)
        return watermark_of(view, sources, views, times, idle)

    def _closed(
        self, view: ViewRecord, plan: ViewPlan, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
    ) -> int | None:
        """Windows that end at or before this are too old to take anything."""
        if plan.window is None:
            return None
        watermark = self.watermark(view, sources, views)
        return None if watermark is None else watermark - lateness_of(view)

    def place(self, spark: SparkSession, time: int = 0) -> Place:
        """The number of shards is fixed with the first view of a home that runs."""
        found = self.catalog.settings().get(SHARDS)
        if found is None:
            found = str(min(MOST_SHARDS, spark.sparkContext.defaultParallelism))
            self.catalog.commit([PutSetting(SHARDS, found)])
        return Place(str(self.storage.home), int(found), time)

    def run(
        self,
        spark: SparkSession,
        states: Sequence[ViewState],
        deltas: Relations,
        place: Place,
        released: tuple[ViewState, DataFrame] | None = None,
    ) -> Outcome:
        """One job. `spark` is a session of our own: how its plans shuffle is set here.

        `released` is what a view had held back, as changes; the others read it. A row on which an expression fails is
        set aside; a view that cannot be computed for all that is failed alone.
        """
        job = ViewJob(self.catalog, self.storage, place, released=released)
        try:
            return self.attempt(spark, job, states, deltas)
        except ExpressionFailed:
            return self.guarded(spark, job, states, deltas)

    def attempt(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> Outcome:
        """ExpressionFailed when the query of a view cannot be computed of these rows."""
        try:
            return job.run(spark, states, deltas)
        except PySparkException as problem:
            if is_of_the_query(problem):
                raise ExpressionFailed from problem
            raise

    def guarded(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> Outcome:
        """All views with rows set aside; where that fails too, those that cannot be computed are found."""
        job = replace(job, is_guarded=True)
        for delta in deltas.values():
            # What is wrong with the rows themselves is no fault of a view, and raised.
            delta.write.format("noop").mode("overwrite").save()
        try:
            return self.attempt(spark, job, states, deltas)
        except ExpressionFailed:
            return self._apart(spark, job, states, deltas)

    def _apart(self, spark: SparkSession, job: ViewJob, states: Sequence[ViewState], deltas: Relations) -> Outcome:
        good: list[ViewState] = []
        failures: list[tuple[ViewState, FailureNote]] = []
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
                told = str(problem.__cause__).partition("\n")[0]
                failures.append((state, FailureNote(state.owner, QUERY_FAILED, told)))
            else:
                good.append(state)
        found = job.run(spark, good, deltas) if good or job.released is not None else NOTHING
        views = self.catalog.views()
        stopped = [
            update for state, failure in failures for update in job.stopped(failure, state, above(state.name, views))
        ]
        return Outcome((*found.updates, *stopped), (*found.failures, *(failure for _, failure in failures)))


def is_of_the_query(problem: PySparkException) -> bool:
    """Whether an expression cannot be computed, rather than Spark or the machine being in trouble: by its SQLSTATE."""
    return (problem.getSqlState() or "")[:2] in EXPRESSION_STATES


def lateness_of(view: ViewRecord) -> int:
    """How long after its end a window takes corrections, in microseconds."""
    return duration(option(view.options, "allowed_lateness", VIEW_OPTIONS) or "0 seconds") // timedelta(microseconds=1)


def with_weight(rows: DataFrame, weight: int = 1) -> DataFrame:
    return rows.withColumn(WEIGHT, F.lit(weight).cast("bigint"))
