"""Backfill of new, waiting and resumed views.

A view is filled up to an epoch while its sources run, then caught up between two epochs, and then live. An epoch that
was planned before the view became live excludes it, every later one includes it: no change is missed or counted twice.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from laminae.catalog.updates import AdoptState, AdvanceOwner, NextEpoch, SetViewState
from laminae.engine import faults
from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.views.order import CREATING, FAILED, LIVE, WAITING, in_order, inputs_of
from laminae.engine.views.resolution import added_parts, view_plan
from laminae.errors import CatalogUnavailable, ConcurrentChange, LaminaeError, LeaseLost, QueryFailed, StateIncompatible
from laminae.spark.catalyst.session_settings import active, cloned
from laminae.spark.catalyst.types import arrow_schema, microseconds_of
from laminae.spark.tasks.failures import failure_text, is_view_failure
from laminae.spark.views.job import ViewJob
from laminae.spark.views.plan import view_state
from laminae.spark.views.reading.changes import OWN
from laminae.spark.views.reading.relation import (
    relation_changes,
    relation_filling,
    relation_schema,
    relations_of,
    stateless_tables,
)
from laminae.spark.views.reading.table import view_table
from laminae.spark.views.runner import ViewRunner, with_weight
from laminae.views.accumulation import ids_of
from laminae.views.identity import operator_id, refuse_state_of_another, stateful
from laminae.views.operators import GroupBy, Read, ViewPlan

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord, ViewStatus
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import CatalogUpdate
    from laminae.spark.driver.storage import Storage
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState

LOG = logging.getLogger(__name__)
FORMER = "#former"
"""The name under which the rows of a replaced view are read while its state is adopted; no relation has this name."""


class StateOfAnother(Exception):
    """The state of a replaced view does not fit its successor, although a comparison of the two queries allowed it."""


@dataclass(frozen=True, slots=True)
class Backfiller:
    """Backfills views and makes them live.

    `between_epochs(source_id)` keeps every source of a group of connected views from starting an epoch.
    """

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self, spark: SparkSession) -> None:
        """Make every view live that can be. A view that cannot be filled is marked as failed, without the others."""
        with self._lock:
            self._pump(spark)

    def _pump(self, spark: SparkSession) -> None:
        for name in [view.name for view in in_order(self.catalog.views())]:
            view = self.catalog.view(name)
            if view is not None and view.state in (CREATING, WAITING) and self._is_ready(view):
                with active(cloned(spark)) as session:
                    self._advance(session, view)

    def _is_ready(self, view: ViewRecord) -> bool:
        """Whether all views that it reads are live."""
        reads = inputs_of(view)
        return all(other.state == LIVE for other in self.catalog.views() if other.name.casefold() in reads)

    def _advance(self, spark: SparkSession, view: ViewRecord) -> None:
        source = self._source_below(view)
        try:
            if view.former is not None and view.applied:
                view = self._adopted(spark, view, view.former)
            if view.applied < (last := self.catalog.last_epoch()):
                self._step(spark, view, last, view.state)
            with self.between_epochs(source.id):
                now = self.catalog.view(view.name)
                if now is not None and now.id == view.id and now.state == view.state and self._is_ready(now):
                    self._begin(spark, now)
                    self._step(spark, now, self.catalog.last_epoch(), LIVE)
        except (CatalogUnavailable, LeaseLost):
            raise
        except ConcurrentChange as problem:
            # A definition was changed concurrently: the next call of `pump` starts from the new one.
            LOG.info("view %s is backfilled again: %s", view.name, problem)
        except Exception as problem:
            # An overloaded machine or a lost executor is not caused by the view, so the error is raised and the view is
            # retried. Any LaminaeError fails the view, also for records that are gone or a broker that does not answer:
            # only this view's backfill reads them.
            if not isinstance(problem, LaminaeError) and not is_view_failure(problem):
                raise
            self._commit([SetViewState(view.id, FAILED, failure_text(problem).partition("\n")[0], if_there=True)])

    def _step(self, spark: SparkSession, view: ViewRecord, until: int, state: ViewStatus) -> None:
        """Apply the changes up to an epoch; for a view without state, all rows of its inputs."""
        if self._begins_empty(view):
            self._commit([SetViewState(view.id, state, None, max(until, 1), if_there=True)])
            return
        if view.applied and view.applied >= until:
            self._commit([SetViewState(view.id, state, None, if_there=True)])
            return
        runner = ViewRunner(self.catalog, self.storage)
        own = runner.state(view, self.catalog.sources(), self.catalog.views())
        placement = runner.placement(spark, microseconds_of(self.clock()))
        outcome = runner.run(spark, [own], self._deltas(spark, view, own, until), placement)
        faults.reach("view filled")
        if outcome.failures:
            self._commit([SetViewState(view.id, FAILED, outcome.failures[0].problem, if_there=True)])
            return
        done = SetViewState(view.id, state, None, until, if_there=True)
        self._commit([NextEpoch(), *outcome.updates, done])
        faults.reach("view advanced")

    def _begin(self, spark: SparkSession, view: ViewRecord) -> None:
        """Commit an empty first epoch for a view that replaced another and has no changes yet.

        In this epoch sinks retract what was delivered of the replaced view.
        """
        if self.catalog.last_advance(view.id) or self.catalog.replaced(view.id) is None:
            return
        self._commit([NextEpoch(), self._empty(spark, view)])

    def _empty(self, spark: SparkSession, view: ViewRecord) -> AdvanceOwner:
        """The update for a first epoch without rows."""
        rows = relation_schema(spark, self.catalog, view.name)
        schema = arrow_schema(StructType([*OWN.fields, *rows.fields]))
        return AdvanceOwner(view.id, view.name, expected=0, manifests=(), files=(), rows=0, schema=schema)

    def _adopted(self, spark: SparkSession, view: ViewRecord, former: int) -> ViewRecord:
        """The view after it adopted the state of the view that it replaced; if that is impossible, it starts empty.

        State is not adopted if the replaced view set rows aside: they are missing from its state, and the failing
        expression may no longer be part of the new view.
        """
        if not self.catalog.refused(former):
            try:
                self._adopt(spark, view, former)
            except StateOfAnother as problem:
                LOG.info("view %s is backfilled from the beginning: %s", view.name, problem)
            except PySparkException as problem:
                if not is_view_failure(problem):
                    raise
            else:
                return view
        self._commit([SetViewState(view.id, view.state, None, applied=0)])
        return replace(view, applied=0)

    def _adopt(self, spark: SparkSession, view: ViewRecord, former: int) -> None:
        """Adopt the state of the view that this one replaced, and emit the rows computed from it as inserts.

        Inputs are read again only for aggregates that are new. That the rest of the state fits this view was checked
        when the view was created.
        """
        runner = ViewRunner(self.catalog, self.storage)
        own = runner.state(view, self.catalog.sources(), self.catalog.views())
        state = view_state(view.id, view.name, own.plan, 0, self.catalog.manifests(former, view.applied))
        try:
            refuse_state_of_another(view.name, state.plan.root, state.manifests)
        except StateIncompatible as problem:
            raise StateOfAnother(str(problem)) from problem
        state = replace(state, inputs=own.inputs)
        placement = runner.placement(spark, microseconds_of(self.clock()))
        filled = self._filled(spark, view, state, placement)
        if filled is not None:
            state = filled
        tables = stateless_tables(spark, self.catalog, self.storage, state, view.applied)
        # Not under the view's own name: the job would take it for a view that reads itself, and not run it.
        shown = replace(own, plan=ViewPlan(Read(FORMER, own.plan.columns), own.plan.key, None, own.plan.ids))
        rows = with_weight(view_table(spark, state, tables, placement))
        outcome = runner.run(spark, [shown], {FORMER: rows}, placement)
        if outcome.failures:
            raise QueryFailed(problem=outcome.failures[0].problem)
        if filled is None:
            adopted = AdoptState(view.id, former, tuple(operator_id(operator) for operator in stateful(own.plan.root)))
            self._commit([NextEpoch(), adopted, *outcome.updates])
            return
        advances = [update for update in outcome.updates if isinstance(update, AdvanceOwner)]
        (first,) = advances or [self._empty(spark, view)]
        self._commit([NextEpoch(), AdoptState(view.id, former, ()), replace(first, manifests=_listed(filled))])

    def _filled(
        self, spark: SparkSession, view: ViewRecord, state: ViewState, placement: ShardPlacement
    ) -> ViewState | None:
        """The state with newly filled aggregates that the replaced view did not have; None when it had all of them."""
        sources, views = self.catalog.sources(), self.catalog.views()
        former = self.catalog.replaced(view.id)
        assert former is not None  # its state is being adopted
        try:
            before = view_plan(former.name, former.query, sources, views, former.written, former.reading)
        except LaminaeError as problem:
            # Columns that only the replaced view read are not protected against DROP COLUMN and other changes.
            raise StateOfAnother(str(problem)) from problem
        added = added_parts(before, state.plan)
        if not added:
            return None
        deltas = {
            name: relation_filling(spark, self.catalog, self.storage, name, view.applied)
            for name in relations_of(state)
        }
        # Operators above the GROUP BY are computed later, when its state is complete.
        (group,) = stateful(state.plan.root)
        assert isinstance(group, GroupBy)  # a DISTINCT has no aggregates to add
        job, own = ViewJob(self.catalog, self.storage, placement), operator_id(group)
        shards, fault = job.fill(spark, replace(state, fresh=ids_of(added)), group, deltas)
        if fault is not None:
            raise StateOfAnother(fault)
        return replace(state, manifests={own: {**state.manifests.get(own, {}), **shards}})

    def _begins_empty(self, view: ViewRecord) -> bool:
        return view.applied == 0 and self._backfill(view) == "false"

    def _deltas(self, spark: SparkSession, view: ViewRecord, own: ViewState, until: int) -> Relations:
        deltas: Relations = {}
        at, only_left = (spark, self.catalog, self.storage), self._backfill(view) == "available"
        for name in relations_of(own):
            if view.applied == 0:
                deltas[name] = relation_filling(*at, name, until, only_left)
            else:
                deltas[name] = relation_changes(*at, name, view.applied, until, only_left)
        return deltas

    def _backfill(self, view: ViewRecord) -> str | None:
        return option(view.options, "backfill", VIEW_OPTIONS)

    def _source_below(self, view: ViewRecord) -> SourceRecord:
        """A source that the view reads, directly or through other views."""
        names, waiting = set[str](), [*inputs_of(view)]
        while waiting:
            name = waiting.pop()
            if (source := self.catalog.source(name)) is not None:
                return source
            below = self.catalog.view(name)
            if below is not None and name not in names:
                names.add(name)
                waiting += inputs_of(below)
        raise AssertionError(f"view {view.name} reads no source")

    def _commit(self, updates: list[CatalogUpdate]) -> None:
        self.catalog.commit(updates, lease_token=self.lease_token)


def _listed(state: ViewState) -> tuple[tuple[str, int, str], ...]:
    return tuple(sorted((name, *shard) for name, shards in state.manifests.items() for shard in shards.items()))
