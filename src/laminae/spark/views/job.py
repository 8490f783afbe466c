"""One Spark job for the views of an epoch, and the catalog updates to commit with the epoch.

A guarded job sets aside rows on which an expression fails; it costs more and runs only after an unguarded job failed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.catalog.updates import AdvanceOwner, SetViewState
from laminae.engine.views.order import FAILED, WAITING, above
from laminae.spark.catalyst.plans.prepared_frame import MappedFrame
from laminae.spark.catalyst.types import arrow_schema
from laminae.spark.formats.frame_rows import FrameRows
from laminae.spark.tasks.arrow_batches import DEFAULT_LIMITS
from laminae.spark.tasks.task_reports import (
    REPORT,
    FailureReport,
    LateReport,
    OwnerReports,
    StateReport,
    report_of,
)
from laminae.spark.views.error_isolation import ErrorIsolation, letters
from laminae.spark.views.group_plans import BasedRelation, is_ready
from laminae.spark.views.late_rows import late_delta
from laminae.spark.views.plan import Deltas, emitted, view_delta
from laminae.spark.views.reading.changelog_table import with_ids
from laminae.views.operators import reads_in
from laminae.zset.changelog import OP, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import CatalogUpdate
    from laminae.spark.driver.storage import Storage
    from laminae.spark.tasks.task_reports import TaskReport
    from laminae.spark.views.group_plans import Based
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState
    from laminae.views.operators import GroupBy

# Settings that the plans of views depend on; they override those of the user's session.
_OWN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    **DEFAULT_LIMITS,
}


@dataclass(frozen=True, slots=True)
class ViewsResult:
    """The result of an epoch for its views: updates for its commit, and failures of views that could not apply it."""

    updates: tuple[CatalogUpdate, ...] = ()
    failures: tuple[FailureReport, ...] = ()


NOTHING = ViewsResult()


@dataclass(frozen=True, slots=True)
class ExcludedRows:
    """The number of rows that an epoch did not apply to a view, and the directories that hold them."""

    rows: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _JobReports:
    """The reports of the tasks, and the late and refused rows by view id."""

    reports: tuple[TaskReport, ...]
    late: Mapping[int, ExcludedRows]
    refused: Mapping[int, ExcludedRows]


@dataclass(frozen=True, slots=True)
class ViewJob:
    """Runs the views of an epoch as one Spark job.

    `is_guarded`: rows on which expressions fail are set aside. `released`: changes that a view emits now after holding
    them back. `based`: rows that views read through cached plans; no delta is passed for their relations.
    """

    catalog: Catalog
    storage: Storage
    placement: ShardPlacement
    is_guarded: bool = False
    released: tuple[ViewState, DataFrame] | None = None
    based: Based | None = None

    def run(self, spark: SparkSession, views: Sequence[ViewState], deltas: Relations) -> ViewsResult:
        """`spark` must be a session owned by laminae: its shuffle settings are changed here."""
        self._configure(spark)
        states = [*views] if self.released is None else [self.released[0], *views]
        relations, frames, based = dict(deltas), dict[int, DataFrame](), self.based
        guards = {state.owner: ErrorIsolation() for state in states if self.is_guarded}
        cached: list[DataFrame] = []
        try:
            for state in states:
                above = readers(state.name, states)
                reads, relation = len(above), state.name.casefold()
                frame = self._delta(state, relations, guards.get(state.owner), based, reads > 0)
                if frame is None:
                    continue
                if reads > (0 if self.is_guarded else 1):
                    frame = frame.persist()
                    cached.append(frame)
                frames[state.owner] = frame
                if based is not None and isinstance(frame, MappedFrame) and reads == 1 and is_ready(above[0], relation):
                    own = BasedRelation(frame.schema, FrameRows(frame, is_bare=True), _without_time, None)
                    based = based.beside(relation, own)
                elif reads:
                    relations[relation] = _without_time(frame)
            last = [frames[s.owner] for s in states if s.owner in frames and not readers(s.name, states)]
            reports = _collected(last, are_reports=self.released is None)
            return self._result(states, frames, self._found(states, relations, guards, reports))
        finally:
            for frame in cached:
                frame.unpersist()
            for guard in guards.values():
                guard.release()

    def fill(
        self, spark: SparkSession, view: ViewState, operator: GroupBy, deltas: Relations
    ) -> tuple[Mapping[int, str], str | None]:
        """The manifests of one operator after these deltas, by shard, and the problem if it failed.

        Operators above it are not computed.
        """
        self._configure(spark)
        frame = Deltas(view, deltas, self.placement).kept(operator, None)
        reports = () if frame is None else _collected([frame], are_reports=False)
        problem = next((report.problem for report in reports if isinstance(report, FailureReport)), None)
        return {report.shard: report.manifest for report in reports if isinstance(report, StateReport)}, problem

    def _configure(self, spark: SparkSession) -> None:
        for name, value in {**_OWN, "spark.sql.shuffle.partitions": str(self.placement.shards)}.items():
            spark.conf.set(name, value)

    def _delta(
        self,
        state: ViewState,
        relations: Relations,
        guard: ErrorIsolation | None,
        based: Based | None,
        has_readers: bool,
    ) -> DataFrame | None:
        directory = self.storage.new_segment(state.owner, "changes")
        if self.released is not None and state is self.released[0]:
            return emitted(state, self.released[1], self.placement, directory)
        return view_delta(state, relations, self.placement, directory, guard, based, has_readers)

    def _found(
        self,
        states: Sequence[ViewState],
        deltas: Relations,
        guards: Mapping[int, ErrorIsolation],
        reports: tuple[TaskReport, ...],
    ) -> _JobReports:
        """The late and refused rows, written by separate jobs: small ones, and only in epochs that have such rows."""
        are_late = {report.owner for report in reports if isinstance(report, LateReport)}
        late, refused = dict[int, ExcludedRows](), dict[int, ExcludedRows]()
        for state in states:
            if state.owner in are_late:
                rows = late_delta(state, deltas, self.placement, ErrorIsolation() if self.is_guarded else None)
                late[state.owner] = self._aside(state, "late", [] if rows is None else [rows])
            if state.owner in guards:
                parts = [letters(state.name, rejection) for rejection in guards[state.owner].refused]
                refused[state.owner] = self._aside(state, "refused", [part for part in parts if part is not None])
        return _JobReports(reports, late, refused)

    def _aside(self, state: ViewState, kind: str, parts: Sequence[DataFrame]) -> ExcludedRows:
        if not parts:
            return ExcludedRows()
        segment = self.storage.new_segment(state.owner, kind)
        reduce(DataFrame.unionAll, parts).write.mode("errorifexists").parquet(self.storage.path(segment))
        self.storage.sync(segment)
        count = self.storage.rows(segment)
        return ExcludedRows(count, (segment,) if count else ())

    def _result(self, states: Sequence[ViewState], made: Mapping[int, DataFrame], found: _JobReports) -> ViewsResult:
        by_owner: defaultdict[int, list[TaskReport]] = defaultdict(list)
        for report in found.reports:
            by_owner[report.owner].append(report)
        failures = {report.owner: report for report in found.reports if isinstance(report, FailureReport)}
        updates: list[CatalogUpdate] = []
        views = self.catalog.views()
        stopped = set(failures)
        for state in states:
            if state.owner in failures:
                waiting = [view for view in above(state.name, views) if view.id not in failures]
                stopped |= {view.id for view in waiting}
                updates += self.stopped(failures[state.owner], state, waiting)
            elif state.owner in made and state.owner not in stopped:
                aside = [excluded.get(state.owner, ExcludedRows()) for excluded in (found.late, found.refused)]
                updates += _advanced(state, made[state.owner], by_owner[state.owner], *aside)
        return ViewsResult(tuple(updates), tuple(failures.values()))

    def stopped(self, failure: FailureReport, state: ViewState, waiting: Sequence[ViewRecord]) -> list[CatalogUpdate]:
        """Updates that stop a failed view, and the views that read it, at the last committed epoch."""
        last = self.catalog.last_epoch()
        own = SetViewState(state.owner, FAILED, failure.problem, last, if_there=True)
        reason = f"it waits for {state.name}"
        return [own, *(SetViewState(view.id, WAITING, reason, last, if_there=True) for view in waiting)]


def _advanced(
    state: ViewState, frame: DataFrame, reports: Sequence[TaskReport], late: ExcludedRows, refused: ExcludedRows
) -> list[CatalogUpdate]:
    own = OwnerReports.of(f"view {state.name}", reports)
    is_touched = own.states or own.changes or own.held_files or late.rows or refused.rows
    if not (is_touched or state.moves_watermark):
        return []
    shown = arrow_schema(StructType([column for column in frame.schema.fields if column.name != REPORT]))
    return [
        AdvanceOwner(
            owner_id=state.owner,
            name=state.name,
            expected=state.expected,
            manifests=own.manifests,
            files=own.files,
            rows=own.rows,
            schema=with_ids(shown, state.plan.columns, state.plan.ids),
            anomalies=own.anomalies,
            dropped=own.dropped,
            late=late.rows,
            late_files=late.files,
            refused=refused.rows,
            refused_files=refused.files,
            held_files=own.held_files,
            watermark=state.watermark,
        )
    ]


def readers(relation: str, states: Sequence[ViewState]) -> list[ViewState]:
    name = relation.casefold()
    return [other for other in states for read in reads_in(other.plan.root) if read.relation.casefold() == name]


def _collected(frames: Sequence[DataFrame], are_reports: bool) -> tuple[TaskReport, ...]:
    """Run the frames and return their reports, without duplicates: a report can arrive on two paths.

    `are_reports`: the frames contain no data rows.
    """
    if not frames:
        return ()
    (first, *rest) = frames
    if not rest and isinstance(first, MappedFrame):
        texts = first.texts(REPORT)
    elif not rest and are_reports:
        texts = [row[REPORT] for row in first.collect()]
    else:
        reports = reduce(
            DataFrame.unionAll, [frame.where(F.col(REPORT).isNotNull()).select(REPORT) for frame in frames]
        )
        texts = [row[REPORT] for row in reports.collect()]
    return tuple(map(report_of, dict.fromkeys(texts)))


def _without_time(changes: DataFrame) -> DataFrame:
    return changes.drop(OP, TIMESTAMP)
