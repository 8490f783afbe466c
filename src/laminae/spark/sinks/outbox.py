"""Deliver committed segments to the sinks, each at its own pace. A failing sink backs off without delaying the others.

There is no thread and no sleep here: the pipeline calls `pump`, and the clock decides which sinks are due.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from laminae.catalog.model import STARTING_SINKS, SinkStatus
from laminae.catalog.updates import SetSinkProgress
from laminae.engine import faults
from laminae.errors import ConcurrentChange
from laminae.net.backoff import Backoff
from laminae.spark.sinks.registry import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.sinks.segment import Segment

# Jitter: wait between half and all of it, so that sinks that failed together do not retry together.
BACKOFF = Backoff(first=1.0, longest=60.0, jitter=0.5)


@dataclass(frozen=True, slots=True)
class FailedSink:
    """Its consecutive failures, and the earliest time of the next attempt."""

    failures: int
    due: datetime


@dataclass(slots=True)
class Outbox:
    """Delivers missing segments to each sink. Backoff is kept in memory: a new driver tries every sink at once."""

    catalog: Catalog
    home: str
    clock: Callable[[], datetime]
    lease_token: int | None = None
    backoff: Backoff = field(default_factory=lambda: BACKOFF)
    delivery: Delivery = field(default_factory=Delivery)
    _failed_sinks: dict[int, FailedSink] = field(default_factory=dict)

    def pump(self, spark: SparkSession, segments_after: Callable[[SinkRecord], Sequence[Segment]]) -> None:
        """One attempt for each sink that is due. Raises only when the catalog itself cannot be used."""
        sinks = self.catalog.sinks()
        self._failed_sinks = {sink.id: self._failed_sinks[sink.id] for sink in sinks if sink.id in self._failed_sinks}
        for sink in sinks:
            self.attempt(sink, partial(self._catch_up, spark, sink, segments_after))

    def attempt(self, sink: SinkRecord, work: Callable[[], None]) -> None:
        """Do the work for this sink if it is due; a failure is recorded as its problem and starts the backoff.

        A sink that fails while it is being created or rewound stays in that state, because that work is not done.
        """
        failed = self._failed_sinks.get(sink.id)
        if failed is not None and self.clock() < failed.due:
            return
        try:
            work()
        except Exception as problem:  # noqa: BLE001  # any failure of a sink is recorded, and the others continue
            self._failed(sink, str(problem), 1 if failed is None else failed.failures + 1)
        else:
            self._failed_sinks.pop(sink.id, None)

    def deliver(self, spark: SparkSession, segment: Segment, sink: SinkRecord) -> None:
        """Deliver one segment now, without recording progress; errors are raised."""
        self.delivery.deliver(spark, segment, sink)

    def take_back(self, sink: SinkRecord) -> None:
        """Undo the delivery of epochs that were rewound. The sink continues from its progress, or starts again."""
        self.delivery.take_back(sink, sink.progress)
        begins = sink.began is None or self.delivery.begins_again(sink)
        self._record(sink, sink.progress, SinkStatus.CREATING if begins else SinkStatus.LIVE, None)

    def _catch_up(
        self, spark: SparkSession, sink: SinkRecord, segments_after: Callable[[SinkRecord], Sequence[Segment]]
    ) -> None:
        missed = sorted((segment for segment in segments_after(sink) if segment.epoch > sink.progress), key=_epoch)
        for segment in missed:
            self.delivery.deliver(spark, segment, sink)
            faults.reach("segment delivered")
            self._record(sink, segment.epoch, SinkStatus.LIVE, None)
        if not missed and sink.state == SinkStatus.FAILING:
            self._record(sink, sink.progress, SinkStatus.LIVE, None)

    def _failed(self, sink: SinkRecord, problem: str, failures: int) -> None:
        due = self.clock() + timedelta(seconds=self.backoff.wait(failures))
        self._failed_sinks[sink.id] = FailedSink(failures, due)
        self._record(sink, sink.progress, sink.state if sink.state in STARTING_SINKS else SinkStatus.FAILING, problem)

    def _record(self, sink: SinkRecord, progress: int, state: SinkStatus, problem: str | None) -> None:
        # The sink was dropped in the meantime: there is nothing to record.
        with suppress(ConcurrentChange):
            self.catalog.commit([SetSinkProgress(sink.id, progress, state, problem)], lease_token=self.lease_token)


def _epoch(segment: Segment) -> int:
    return segment.epoch
