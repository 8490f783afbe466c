"""Timer epochs: what a view has held back is emitted when the watermark, the clock or the end of a run says so.

The same single transaction as an epoch, with no Spark batch behind it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import AdvanceOwner, NextEpoch
from laminae.engine import faults
from laminae.engine.view_order import LIVE, in_order, live_above
from laminae.engine.watermarks import sources_below
from laminae.spark.instants import microseconds_of
from laminae.spark.views.reading import relation_table, relations_of
from laminae.spark.views.run import ViewRunner, lateness_of, with_weight
from laminae.spark.views.tables import held_rows, net_change, view_table
from laminae.spark.views.tree import NEVER
from laminae.views.emission import Kind, bound_of, strategy_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage
    from laminae.spark.views.tree import Place, Relations, ViewState


@dataclass(frozen=True, slots=True)
class Ticker:
    """`between_epochs(source_id)` keeps every source of a group of views from starting an epoch."""

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    _tried: dict[int, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self, spark: SparkSession, ending: bool = False) -> None:
        """Emit what is due. `ending`: a bounded run has come to its end, so nothing that can be said is kept back."""
        with self._lock:
            self._pump(spark, ending)

    def _pump(self, spark: SparkSession, ending: bool) -> None:
        for name in [view.name for view in in_order(self.catalog.views()) if not _is_immediate(view)]:
            view = self.catalog.view(name)
            if view is None or view.state != LIVE or self._due(view, ending) is None:
                continue
            source = next(iter(sources_below(view, self.catalog.sources(), self.catalog.views())))
            with self.between_epochs(source.id):
                now = self.catalog.view(name)
                if now is not None and now.id == view.id and now.state == LIVE:
                    bound = self._due(now, ending)
                    if bound is not None:
                        self._tick(spark.newSession(), now, bound)

    def _due(self, view: ViewRecord, ending: bool) -> int | None:
        """The bound up to which to emit now; None when nothing is to be done."""
        runner = ViewRunner(self.catalog, self.storage)
        sources, views = self.catalog.sources(), self.catalog.views()
        state = runner.state(view, sources, views)
        strategy, now = state.strategy, self.clock()
        if state.plan.window is not None and strategy.kind is not Kind.EVERY:
            watermark = runner.watermark(view, sources, views, now)
            bound = bound_of(strategy, True, watermark, lateness_of(view))
            if bound is None or bound <= (NEVER if state.bound is None else state.bound):
                return None
        else:
            bound = microseconds_of(now)
            is_time = strategy.kind is Kind.EVERY and bound - (state.bound or 0) >= strategy.every
            if not (is_time or ending):
                return None
        # The same state was looked at with the same bound before, and had nothing to emit.
        tried = self._tried.get(view.id)
        by_clock = state.plan.window is None or strategy.kind is Kind.EVERY
        if tried is not None and tried[1] == state.expected and (by_clock or tried[0] >= bound):
            return None
        return bound

    def _tick(self, spark: SparkSession, view: ViewRecord, bound: int) -> None:
        runner = ViewRunner(self.catalog, self.storage)
        sources, views = self.catalog.sources(), self.catalog.views()
        state = runner.state(view, sources, views)
        place = runner.place(spark, microseconds_of(self.clock()))
        above = [runner.state(each, sources, views) for each in live_above(view.name, views)]
        rows = self._rows(spark, view, state, place, bound)
        outcome = runner.run(spark, above, {}, place, (state, rows))
        faults.reach("tick computed")
        updates = list(outcome.updates)
        own = next((each for each in updates if isinstance(each, AdvanceOwner) and each.owner_id == view.id), None)
        self._tried[view.id] = (bound, state.expected)
        if own is None:
            return
        updates[updates.index(own)] = replace(own, bound=bound)
        self.catalog.commit([NextEpoch(), *updates], lease_token=self.lease_token)
        faults.reach("tick committed")

    def _rows(self, spark: SparkSession, view: ViewRecord, state: ViewState, place: Place, bound: int) -> DataFrame:
        tables = self._tables(spark, state, None)
        if state.plan.window is not None and state.strategy.kind is not Kind.EVERY:
            after = NEVER if state.bound is None else state.bound
            return with_weight(held_rows(spark, state, tables, place, after, bound))
        new = _whole_table(spark, state, tables, place)
        last = self.catalog.last_emission(view.id)
        if last is None:
            return with_weight(new)
        runner = ViewRunner(self.catalog, self.storage)
        then = runner.state(view, self.catalog.sources(), self.catalog.views(), last[0])
        old = _whole_table(spark, then, self._tables(spark, then, last[0]), place)
        return net_change(old, new, state.plan.key)

    def _tables(self, spark: SparkSession, state: ViewState, until: int | None) -> Relations:
        return {name: relation_table(spark, self.catalog, self.storage, name, until) for name in relations_of(state)}


def _whole_table(spark: SparkSession, state: ViewState, tables: Relations, place: Place) -> DataFrame:
    """All rows, with the ends of their windows where they have some."""
    if state.plan.window is None:
        return view_table(spark, state, tables, place)
    return held_rows(spark, state, tables, place, NEVER, -NEVER)


def _is_immediate(view: ViewRecord) -> bool:
    return strategy_of(view.emit).is_immediate
