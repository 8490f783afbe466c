"""Timer epochs: emit the changes that a view held back, triggered by the watermark, the clock or the end of a run.

A timer epoch commits in one transaction, like any epoch, but has no Spark micro-batch.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import AdvanceOwner, NextEpoch
from laminae.engine import faults
from laminae.engine.retention.changelog_compaction import segment_piece
from laminae.engine.views.order import LIVE, in_order, live_above
from laminae.engine.views.watermarks import sources_below
from laminae.errors import LaminaeError
from laminae.spark.catalyst.session_settings import active, cloned
from laminae.spark.catalyst.types import microseconds_of
from laminae.spark.tasks.failures import is_view_failure
from laminae.spark.views.plan import NEVER, WINDOW_END
from laminae.spark.views.reading.changelog_table import segment_rows
from laminae.spark.views.reading.relation import stateless_tables
from laminae.spark.views.reading.table import held_rows, net_change, netted, view_table
from laminae.spark.views.runner import EpochTimes, ViewRunner, lateness_of, with_weight
from laminae.views.emit import Kind, bound_of, strategy_of
from laminae.zset.changelog import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState


@dataclass(frozen=True, slots=True)
class Due:
    """Rows of windows that end at or before `bound` are due at this watermark; if it is None, all rows are due now."""

    bound: int
    watermark: int | None


@dataclass(frozen=True, slots=True)
class TimerRunner:
    """Runs the timer epochs of views.

    `between_epochs(source_id)` keeps every source of a group of connected views from starting an epoch.
    """

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    began: datetime | None = None
    _tried: dict[int, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pump(self, spark: SparkSession, is_all_read: bool = False, ending: bool = False) -> None:
        """Emit what is due. `ending`: a bounded run ends, so views that do not wait for a watermark emit everything.

        `is_all_read`: all available records were read, so the idle time of a source counts from its last batch, even if
        no driver was reading it since then.
        """
        with self._lock:
            self._pump(spark, None if is_all_read else self.began, ending)

    def _pump(self, spark: SparkSession, began: datetime | None, ending: bool) -> None:
        for name in [view.name for view in in_order(self.catalog.views()) if not _is_immediate(view)]:
            view = self.catalog.view(name)
            if view is None or view.state != LIVE or not self._is_due(view, began, ending):
                continue
            source = next(iter(sources_below(view, self.catalog.sources(), self.catalog.views())))
            with self.between_epochs(source.id):
                now = self.catalog.view(name)
                if now is not None and now.id == view.id and now.state == LIVE:
                    due = self._due(now, began, ending)
                    if due is not None:
                        with active(cloned(spark)) as session:
                            self._tick(session, now, due)

    def _is_due(self, view: ViewRecord, began: datetime | None, ending: bool) -> bool:
        """Whether the view has something to emit. A view that can no longer be planned is marked as failed."""
        try:
            return self._due(view, began, ending) is not None
        except LaminaeError as problem:
            if not is_view_failure(problem):
                raise
            ViewRunner(self.catalog, self.storage, self.lease_token).fail(view, problem)
            return False

    def _due(self, view: ViewRecord, began: datetime | None, ending: bool) -> Due | None:
        """The bound up to which to emit now; None when nothing is due."""
        runner = ViewRunner(self.catalog, self.storage)
        sources, views = self.catalog.sources(), self.catalog.views()
        state = runner.state(view, sources, views)
        strategy, now, watermark = state.strategy, self.clock(), None
        if state.plan.window is not None and strategy.kind is not Kind.EVERY:
            watermark = runner.watermark(view, sources, views, EpochTimes(now, began))
            bound = bound_of(strategy, True, watermark, lateness_of(view))
            if bound is None or bound <= (NEVER if state.bound is None else state.bound):
                return None
        else:
            bound = microseconds_of(now)
            is_time = strategy.kind is Kind.EVERY and bound - (state.bound or 0) >= strategy.every
            if not (is_time or ending):
                return None
        # The same state was already checked with this bound (or by the clock) and had nothing to emit.
        tried = self._tried.get(view.id)
        by_clock = state.plan.window is None or strategy.kind is Kind.EVERY
        if tried is not None and tried[1] == state.expected and (by_clock or tried[0] >= bound):
            return None
        return Due(bound, watermark)

    def _tick(self, spark: SparkSession, view: ViewRecord, due: Due) -> None:
        runner = ViewRunner(self.catalog, self.storage)
        sources, views = self.catalog.sources(), self.catalog.views()
        state = runner.state(view, sources, views)
        placement = runner.placement(spark, microseconds_of(self.clock()))
        above = [runner.state(reader, sources, views) for reader in live_above(view.name, views)]
        rows = self._rows(spark, view, state, placement, due.bound)
        outcome = runner.run(spark, above, {}, placement, (state, rows))
        faults.reach("tick computed")
        updates = list(outcome.updates)
        own = next(
            (update for update in updates if isinstance(update, AdvanceOwner) and update.owner_id == view.id), None
        )
        self._tried[view.id] = (due.bound, state.expected)
        if own is None:
            return
        updates[updates.index(own)] = replace(own, bound=due.bound, watermark=due.watermark)
        self.catalog.commit([NextEpoch(), *updates], lease_token=self.lease_token)
        faults.reach("tick committed")

    def _rows(
        self, spark: SparkSession, view: ViewRecord, state: ViewState, placement: ShardPlacement, bound: int
    ) -> DataFrame:
        if state.plan.window is not None and state.strategy.kind is not Kind.EVERY:
            tables = self._tables(spark, state, None)
            after = NEVER if state.bound is None else state.bound
            return with_weight(held_rows(spark, state, tables, placement, after, bound))
        last = self.catalog.last_emission(view.id)
        if view.keeps_held:
            return self._held_changes(spark, view, state, 0 if last is None else last[0])
        new = _whole_table(spark, state, self._tables(spark, state, None), placement)
        if last is None:
            return with_weight(new)
        runner = ViewRunner(self.catalog, self.storage)
        then = runner.state(view, self.catalog.sources(), self.catalog.views(), last[0])
        old = _whole_table(spark, then, self._tables(spark, then, last[0]), placement)
        return net_change(old, new, state.plan.key)

    def _held_changes(self, spark: SparkSession, view: ViewRecord, state: ViewState, since: int) -> DataFrame:
        """The net change over the epochs since the last timer epoch."""
        advances = [advance for advance in self.catalog.advances(view.id, since) if advance.held_files]
        assert state.inputs is not None  # always set by ViewRunner.state
        wanted = state.inputs.schema(spark, state.plan.root)
        segments = [replace(segment_piece(advance), files=advance.held_files) for advance in advances]
        rows = segment_rows(spark, self.catalog, self.storage, view, wanted, state.plan.ids, segments)
        if state.plan.window is None:
            return netted(rows.drop(TIMESTAMP), state.plan.key)
        # `Emit` stores the window's end minus one millisecond as the timestamp.
        end = F.timestamp_add("MILLISECOND", F.lit(1), F.col(TIMESTAMP))
        return netted(rows.withColumn(WINDOW_END, end).drop(TIMESTAMP), state.plan.key)

    def _tables(self, spark: SparkSession, state: ViewState, until: int | None) -> Relations:
        return stateless_tables(spark, self.catalog, self.storage, state, until)


def _whole_table(spark: SparkSession, state: ViewState, tables: Relations, placement: ShardPlacement) -> DataFrame:
    """All rows of the view, with the window end of each if it has windows."""
    if state.plan.window is None:
        return view_table(spark, state, tables, placement)
    return held_rows(spark, state, tables, placement, NEVER, -NEVER)


def _is_immediate(view: ViewRecord) -> bool:
    return strategy_of(view.emit).is_immediate
