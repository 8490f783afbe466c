"""The views of an epoch: one Spark job for all of them, and what it asks the catalog to commit with the epoch."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import AdvanceOwner, PutSetting, SetViewState
from laminae.engine.definitions import view_plan
from laminae.engine.options import VIEW_OPTIONS, duration, option
from laminae.engine.view_order import FAILED, WAITING, above, live_above
from laminae.engine.watermarks import idle_sources, watermark_of
from laminae.spark.types import arrow_schema
from laminae.spark.views.keyed import advance_table
from laminae.spark.views.notes import NOTE, ChangesNote, FailureNote, LateNote, StateNote, note_of
from laminae.spark.views.tasks import TIMESTAMP
from laminae.spark.views.tree import Place, ViewState, emitted, late_rows, view_delta, view_state
from laminae.trace.spec import WEIGHT
from laminae.views.emission import strategy_of
from laminae.views.kernels.changelog import OP
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import CatalogUpdate
    from laminae.spark.storage import Storage
    from laminae.spark.views.keyed import SourceTable
    from laminae.spark.views.notes import Note
    from laminae.spark.views.tree import Relations
    from laminae.spark.views.weights import Weights
    from laminae.views.operators import ViewPlan

SHARDS = "shards"
QUERY_FAILED = "QUERY_FAILED"
# Data exceptions, and queries that cannot be analysed.
EXPRESSION_STATES = ("22", "42")
MOST_SHARDS = 64
# What the plans of views rest on, whatever the session of the user says.
_OWN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch does to views: updates of its commit, and the views that could not take it."""

    updates: tuple[CatalogUpdate, ...] = ()
    failures: tuple[FailureNote, ...] = ()


NOTHING = Outcome()


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows that came too late for every window they belong to, and the directories that hold them."""

    rows: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochViews:
    """The views that an epoch of one source takes along, ready to be given its rows."""

    runner: ViewRunner
    spark: SparkSession
    source: str
    states: tuple[ViewState, ...]
    place: Place | None
    table: SourceTable | None = None
    weights: Weights | None = None

    @property
    def reads(self) -> int:
        """How often the rows of the source are read."""
        return len(_readers(self.source, self.states))

    def run_table(self, placed: DataFrame) -> Outcome:
        """The records of a source that keeps a table: first through that, and its changes through the views."""
        assert self.table is not None  # else there is nothing to run
        assert self.place is not None
        directory = self.runner.storage.new_segment(self.table.owner, "changes")
        own, changes = advance_table(self.spark, self.table, placed, self.place, directory)
        if changes is None or not self.states:
            return Outcome(own)
        found = self.runner.run(self.spark, self.states, {self.source.casefold(): changes}, self.place)
        return Outcome((*own, *found.updates), found.failures)

    def run(self, rows: DataFrame) -> Outcome:
        if self.place is None:
            return NOTHING
        changes = with_weight(rows) if self.weights is None else self.weights.changes(rows)
        return self.runner.run(self.spark, self.states, {self.source.casefold(): changes}, self.place)


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
        plan = view_plan(view.name, view.query, sources, views)
        manifests = self.catalog.manifests(view.id, until)
        found = view_state(view.id, view.name, plan, self.catalog.last_advance(view.id), manifests)
        strategy = strategy_of(view.emit)
        emission = None if strategy.is_immediate else self.catalog.last_emission(view.id, until)
        bound = None if emission is None else emission[1]
        return replace(found, strategy=strategy, bound=bound, closed=self._closed(view, plan, sources, views))

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

        `released` is what a view had held back, as changes; the others read it. A view whose expressions cannot be
        computed is failed alone.
        """
        try:
            return self._job(spark, states, deltas, place, released)
        except PySparkException as problem:
            if released is not None or not states or not is_of_the_query(problem):
                raise
            return self._apart(spark, states, deltas, place)

    def _apart(self, spark: SparkSession, states: Sequence[ViewState], deltas: Relations, place: Place) -> Outcome:
        """Find out which views cannot be computed; the others are."""
        for delta in deltas.values():
            # What is wrong with the rows themselves is no fault of a view, and raised.
            delta.write.format("noop").mode("overwrite").save()
        good: list[ViewState] = []
        failures: list[tuple[ViewState, FailureNote]] = []
        out = set[str]()
        for state in states:
            name = state.name.casefold()
            if any(read.relation.casefold() in out for read in reads_in(state.plan.root)):
                out.add(name)
                continue
            try:
                self._job(spark, [*good, state], deltas, place)
            except PySparkException as problem:
                if not is_of_the_query(problem):
                    raise
                out.add(name)
                failures.append((state, FailureNote(state.owner, QUERY_FAILED, str(problem).partition("\n")[0])))
            else:
                good.append(state)
        found = self._job(spark, good, deltas, place) if good else NOTHING
        views = self.catalog.views()
        stopped = [
            update for state, failure in failures for update in self._stopped(failure, state, above(state.name, views))
        ]
        return Outcome((*found.updates, *stopped), (*found.failures, *(failure for _, failure in failures)))

    def _job(
        self,
        spark: SparkSession,
        states: Sequence[ViewState],
        deltas: Relations,
        place: Place,
        released: tuple[ViewState, DataFrame] | None = None,
    ) -> Outcome:
        for name, value in {**_OWN, "spark.sql.shuffle.partitions": str(place.shards)}.items():
            spark.conf.set(name, value)
        relations, made = dict(deltas), dict[int, DataFrame]()
        kept: list[DataFrame] = []
        if released is not None:
            states = [released[0], *states]
        for state in states:
            directory = self.storage.new_segment(state.owner, "changes")
            if released is not None and state is released[0]:
                frame: DataFrame | None = emitted(state, released[1], place, directory)
            else:
                frame = view_delta(state, relations, place, directory)
            if frame is None:
                continue
            if len(_readers(state.name, states)) > 1:
                frame = frame.persist()
                kept.append(frame)
            made[state.owner] = frame
            relations[state.name.casefold()] = frame.drop(OP, TIMESTAMP)
        try:
            notes = _collected([made[s.owner] for s in states if s.owner in made and not _readers(s.name, states)])
        finally:
            for frame in kept:
                frame.unpersist()
        late = {note.owner for note in notes if isinstance(note, LateNote)}
        found = {state.owner: self._late(state, relations, place) for state in states if state.owner in late}
        return self._outcome(states, made, notes, found)

    def _late(self, state: ViewState, deltas: Relations, place: Place) -> LateRows:
        """A second, small job, only for epochs that have some."""
        rows = late_rows(state, deltas, place)
        if rows is None:
            return LateRows()
        segment = self.storage.new_segment(state.owner, "late")
        rows.write.mode("errorifexists").parquet(self.storage.path(segment))
        self.storage.sync(segment)
        count = self.storage.rows(segment)
        return LateRows(count, (segment,) if count else ())

    def _outcome(
        self,
        states: Sequence[ViewState],
        made: Mapping[int, DataFrame],
        notes: Iterable[Note],
        late: Mapping[int, LateRows],
    ) -> Outcome:
        by_owner: defaultdict[int, list[Note]] = defaultdict(list)
        for note in notes:
            by_owner[note.owner].append(note)
        failures = {note.owner: note for found in by_owner.values() for note in found if isinstance(note, FailureNote)}
        updates: list[CatalogUpdate] = []
        views = self.catalog.views()
        stopped = set(failures)
        for state in states:
            if state.owner in failures:
                waiting = [view for view in above(state.name, views) if view.id not in failures]
                stopped |= {view.id for view in waiting}
                updates += self._stopped(failures[state.owner], state, waiting)
            elif state.owner in made and state.owner not in stopped:
                found = late.get(state.owner, LateRows())
                updates += _advanced(state, made[state.owner], by_owner[state.owner], found)
        return Outcome(tuple(updates), tuple(failures.values()))

    def _stopped(self, failure: FailureNote, state: ViewState, waiting: Sequence[ViewRecord]) -> list[CatalogUpdate]:
        """A view that cannot take an epoch stays at the one before, and those that read it with it."""
        last = self.catalog.last_epoch()
        own = SetViewState(state.owner, FAILED, failure.problem, last, if_there=True)
        told = f"it waits for {state.name}"
        return [own, *(SetViewState(view.id, WAITING, told, last, if_there=True) for view in waiting)]


def is_of_the_query(problem: PySparkException) -> bool:
    """Whether an expression cannot be computed, rather than Spark or the machine being in trouble: by its SQLSTATE."""
    return (problem.getSqlState() or "")[:2] in EXPRESSION_STATES


def lateness_of(view: ViewRecord) -> int:
    """How long after its end a window takes corrections, in microseconds."""
    return duration(option(view.options, "allowed_lateness", VIEW_OPTIONS) or "0 seconds") // timedelta(microseconds=1)


def _advanced(state: ViewState, frame: DataFrame, notes: Sequence[Note], late: LateRows) -> list[CatalogUpdate]:
    kept = [note for note in notes if isinstance(note, StateNote)]
    changes = sorted((note for note in notes if isinstance(note, ChangesNote)), key=lambda note: note.file)
    shards = [(note.operator, note.shard) for note in kept]
    if len(set(shards)) != len(shards):
        raise AssertionError(f"a shard of view {state.name} was computed in two tasks: {sorted(shards)}")
    if not kept and not changes and not late.rows:
        return []
    return [
        AdvanceOwner(
            owner_id=state.owner,
            name=state.name,
            expected=state.expected,
            manifests=tuple(sorted((note.operator, note.shard, note.manifest) for note in kept)),
            files=tuple(note.file for note in changes),
            rows=sum(note.rows for note in changes),
            schema=arrow_schema(frame.drop(NOTE).schema),
            anomalies=sum(note.anomalies - note.recovered for note in kept),
            dropped=sum(note.dropped for note in kept),
            late=late.rows,
            late_files=late.files,
        )
    ]


def _readers(relation: str, states: Sequence[ViewState]) -> list[ViewState]:
    name = relation.casefold()
    return [other for other in states for read in reads_in(other.plan.root) if read.relation.casefold() == name]


def _collected(frames: Sequence[DataFrame]) -> tuple[Note, ...]:
    """The notes of all frames; those that came by two ways are one."""
    if not frames:
        return ()
    notes = reduce(DataFrame.unionAll, [frame.where(F.col(NOTE).isNotNull()).select(NOTE) for frame in frames])
    return tuple(note_of(text) for text in dict.fromkeys(row[NOTE] for row in notes.collect()))


def with_weight(rows: DataFrame, weight: int = 1) -> DataFrame:
    return rows.withColumn(WEIGHT, F.lit(weight).cast("bigint"))
