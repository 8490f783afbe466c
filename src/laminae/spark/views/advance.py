"""New, waiting and resumed views: filled to an epoch while their sources run, caught up between two epochs, then live.

An epoch that was planned before a view is live leaves it out; every later one takes it along. So nothing is missed or
counted twice.
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
from laminae.engine.view_columns import added_parts, view_plan
from laminae.engine.view_order import CREATING, FAILED, LIVE, WAITING, in_order, inputs_of
from laminae.errors import CatalogUnavailable, ConcurrentChange, LaminaeError, LeaseLost, QueryFailed
from laminae.spark.instants import microseconds_of
from laminae.spark.types import arrow_schema
from laminae.spark.views.events import OWN
from laminae.spark.views.job import ViewJob
from laminae.spark.views.reading import relation_changes, relation_filling, relation_table, relations_of, table_of
from laminae.spark.views.run import ViewRunner, is_of_the_query, with_weight
from laminae.spark.views.tables import view_table
from laminae.spark.views.tree import view_state
from laminae.views.accumulation import ids_of
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import GroupBy, Read, ViewPlan

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.catalog.updates import CatalogUpdate
    from laminae.spark.storage import Storage
    from laminae.spark.views.tree import Place, Relations, ViewState

LOG = logging.getLogger(__name__)
FORMER = "#former"
"""What the rows of a replaced view are called while they are taken over; no relation is called so."""


class StateOfAnother(Exception):
    """The state of a replaced view is not what its successor needs, though its text promised so."""


@dataclass(frozen=True, slots=True)
class Advancer:
    """`between_epochs(source_id)` keeps every source of a group of views from starting an epoch."""

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self, spark: SparkSession) -> None:
        """Bring every view that can be live to it. One that cannot be filled is failed alone."""
        with self._lock:
            self._pump(spark)

    def _pump(self, spark: SparkSession) -> None:
        for name in [view.name for view in in_order(self.catalog.views())]:
            view = self.catalog.view(name)
            if view is not None and view.state in (CREATING, WAITING) and self._is_ready(view):
                self._advance(spark.newSession(), view)

    def _is_ready(self, view: ViewRecord) -> bool:
        """Whether the views that it reads are live."""
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
            # Somebody changed a definition meanwhile: the next round begins with that.
            LOG.info("view %s is filled again: %s", view.name, problem)
        except PySparkException as problem:
            # A machine that is too busy, a lost executor: the view has done nothing wrong, and is tried again.
            if not is_of_the_query(problem):
                raise
            self._commit([SetViewState(view.id, FAILED, str(problem).partition("\n")[0], if_there=True)])
        except LaminaeError as problem:
            self._commit([SetViewState(view.id, FAILED, str(problem).partition("\n")[0], if_there=True)])

    def _step(self, spark: SparkSession, view: ViewRecord, until: int, state: str) -> None:
        """Take along what changed up to an epoch: all of it for a view that has nothing yet."""
        if self._begins_empty(view):
            self._commit([SetViewState(view.id, state, None, max(until, 1), if_there=True)])
            return
        if view.applied and view.applied >= until:
            self._commit([SetViewState(view.id, state, None, if_there=True)])
            return
        runner = ViewRunner(self.catalog, self.storage)
        own = runner.state(view, self.catalog.sources(), self.catalog.views())
        place = runner.place(spark, microseconds_of(self.clock()))
        outcome = runner.run(spark, [own], self._deltas(spark, view, own, until), place)
        faults.reach("view filled")
        if outcome.failures:
            self._commit([SetViewState(view.id, FAILED, outcome.failures[0].problem, if_there=True)])
            return
        done = SetViewState(view.id, state, None, until, if_there=True)
        self._commit([NextEpoch(), *outcome.updates, done])
        faults.reach("view advanced")

    def _begin(self, spark: SparkSession, view: ViewRecord) -> None:
        """An epoch for a view that has replaced another and has nothing to say yet: in it sinks take back what they
        were given of the other.
        """
        if self.catalog.last_advance(view.id) or self.catalog.replaced(view.id) is None:
            return
        self._commit([NextEpoch(), self._empty(spark, view)])

    def _empty(self, spark: SparkSession, view: ViewRecord) -> AdvanceOwner:
        """A first epoch without a row."""
        rows = table_of(spark, self.catalog, self.storage, view, view.applied)
        schema = arrow_schema(StructType([*OWN.fields, *rows.schema.fields]))
        return AdvanceOwner(view.id, view.name, expected=0, manifests=(), files=(), rows=0, schema=schema)

    def _adopted(self, spark: SparkSession, view: ViewRecord, former: int) -> ViewRecord:
        """The view, with the state of the one that it replaced if that can be; else it begins from nothing.

        State lacks the rows that were set aside because of an expression that the new view may not have any more.
        """
        if not self.catalog.refused(former):
            try:
                self._adopt(spark, view, former)
            except StateOfAnother as problem:
                LOG.info("view %s is filled from the beginning: %s", view.name, problem)
            except PySparkException as problem:
                if not is_of_the_query(problem):
                    raise
            else:
                return view
        self._commit([SetViewState(view.id, view.state, None, applied=0)])
        return replace(view, applied=0)

    def _adopt(self, spark: SparkSession, view: ViewRecord, former: int) -> None:
        """Go on with the state of the view that this one replaced, and emit what it comes to as new rows.

        Nothing is read again but for aggregates that are new. That the rest is what this view needs was judged when it
        was created.
        """
        runner = ViewRunner(self.catalog, self.storage)
        own = runner.state(view, self.catalog.sources(), self.catalog.views())
        state = view_state(view.id, view.name, own.plan, 0, self.catalog.manifests(former, view.applied))
        place = runner.place(spark, microseconds_of(self.clock()))
        filled = self._filled(spark, view, state, place)
        if filled is not None:
            state = filled
        tables = {
            name: relation_table(spark, self.catalog, self.storage, name, view.applied) for name in relations_of(state)
        }
        # Not under its own name: a view that another of the job reads is not run for itself.
        shown = replace(own, plan=ViewPlan(Read(FORMER, own.plan.columns), own.plan.key, None))
        rows = with_weight(view_table(spark, state, tables, place))
        outcome = runner.run(spark, [shown], {FORMER: rows}, place)
        if outcome.failures:
            raise QueryFailed(problem=outcome.failures[0].problem)
        if filled is None:
            adopted = AdoptState(view.id, former, tuple(operator_id(each) for each in stateful(own.plan.root)))
            self._commit([NextEpoch(), adopted, *outcome.updates])
            return
        found = [each for each in outcome.updates if isinstance(each, AdvanceOwner)]
        (first,) = found or [self._empty(spark, view)]
        self._commit([NextEpoch(), AdoptState(view.id, former, ()), replace(first, manifests=_listed(filled))])

    def _filled(self, spark: SparkSession, view: ViewRecord, state: ViewState, place: Place) -> ViewState | None:
        """The state with what aggregates hold that the former view did not have; None when it had them all."""
        sources, views = self.catalog.sources(), self.catalog.views()
        former = self.catalog.replaced(view.id)
        assert former is not None  # its state is taken over
        try:
            before = view_plan(former.name, former.query, sources, views, former.written)
        except LaminaeError as problem:
            # Nothing protects the columns that only the former read.
            raise StateOfAnother(str(problem)) from problem
        added = added_parts(before, state.plan)
        if not added:
            return None
        deltas = {
            name: relation_filling(spark, self.catalog, self.storage, name, view.applied)
            for name in relations_of(state)
        }
        # What stands above the groups is computed when they are whole.
        (group,) = stateful(state.plan.root)
        assert isinstance(group, GroupBy)  # a DISTINCT has no aggregates to add
        job, own = ViewJob(self.catalog, self.storage, place), operator_id(group)
        shards, fault = job.fill(spark, replace(state, fresh=ids_of(added)), group, deltas)
        if fault is not None:
            raise StateOfAnother(fault)
        return replace(state, manifests={own: {**state.manifests.get(own, {}), **shards}})

    def _begins_empty(self, view: ViewRecord) -> bool:
        return view.applied == 0 and option(view.options, "backfill", VIEW_OPTIONS) == "false"

    def _deltas(self, spark: SparkSession, view: ViewRecord, own: ViewState, until: int) -> Relations:
        found: Relations = {}
        for name in relations_of(own):
            if view.applied == 0:
                found[name] = relation_filling(spark, self.catalog, self.storage, name, until)
            else:
                found[name] = relation_changes(spark, self.catalog, self.storage, name, view.applied, until)
        return found

    def _source_below(self, view: ViewRecord) -> SourceRecord:
        """A source that the view stands on, through other views if need be."""
        names, waiting = set[str](), [*inputs_of(view)]
        while waiting:
            name = waiting.pop()
            if (source := self.catalog.source(name)) is not None:
                return source
            below = self.catalog.view(name)
            if below is not None and name not in names:
                names.add(name)
                waiting += inputs_of(below)
        raise AssertionError(f"view {view.name} stands on no source")

    def _commit(self, updates: list[CatalogUpdate]) -> None:
        self.catalog.commit(updates, lease_token=self.lease_token)


def _listed(state: ViewState) -> tuple[tuple[str, int, str], ...]:
    return tuple(sorted((name, *found) for name, shards in state.manifests.items() for found in shards.items()))
