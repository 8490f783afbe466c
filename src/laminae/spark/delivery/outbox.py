"""Drive committed segments to the sinks, each at its own pace. A sink that fails lags and waits; nobody else does.

There is no thread and no sleep here: the pipeline calls `pump`, the clock says who is due.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from laminae.catalog.updates import SetSinkProgress
from laminae.engine import faults
from laminae.errors import ConcurrentChange
from laminae.spark.delivery.deliver import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.delivery.segment import Segment

CREATING, REWINDING, LIVE, FAILING = "creating", "rewinding", "live", "failing"
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(minutes=1)
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Retry:
    """After so many failures in a row, not before this time."""

    failures: int
    due: datetime


@dataclass(slots=True)
class Outbox:
    """Sinks with what they have missed. Waits are kept in memory: a new driver tries every sink at once."""

    catalog: Catalog
    home: str
    clock: Callable[[], datetime]
    lease_token: int | None = None
    dice: Callable[[], float] = random.random
    delivery: Delivery = field(default_factory=Delivery)
    _retries: dict[int, Retry] = field(default_factory=dict)

    def pump(self, spark: SparkSession, segments_after: Callable[[SinkRecord], Sequence[Segment]]) -> None:
        """One attempt for each sink that is due. Raises only when the catalog itself cannot be used."""
        sinks = self.catalog.sinks()
        self._retries = {sink.id: self._retries[sink.id] for sink in sinks if sink.id in self._retries}
        for sink in sinks:
            self.attempt(sink, partial(self._catch_up, spark, sink, segments_after))

    def attempt(self, sink: SinkRecord, work: Callable[[], None]) -> None:
        """Do the work for this sink if it is due; a failure becomes its problem and the reason to wait.

        A sink that is still being created or rewound stays so: that is not done yet.
        """
        retry = self._retries.get(sink.id)
        if retry is not None and self.clock() < retry.due:
            return
        try:
            work()
        except Exception as problem:  # noqa: BLE001  # whatever a sink does, it is recorded, and the others go on
            self._failed(sink, str(problem), 0 if retry is None else retry.failures)
        else:
            self._retries.pop(sink.id, None)

    def deliver(self, spark: SparkSession, segment: Segment, sink: SinkRecord) -> None:
        """One delivery now, without a record of it; what goes wrong is raised."""
        self.delivery.deliver(spark, segment, sink)

    def take_back(self, sink: SinkRecord) -> None:
        """Undo what was delivered of epochs that are no more; the sink goes on from its progress, or begins anew."""
        self.delivery.take_back(sink, sink.progress)
        begins = sink.began is None or self.delivery.begins_again(sink)
        self._record(sink, sink.progress, CREATING if begins else LIVE, None)

    def _catch_up(
        self, spark: SparkSession, sink: SinkRecord, segments_after: Callable[[SinkRecord], Sequence[Segment]]
    ) -> None:
        missed = sorted((segment for segment in segments_after(sink) if segment.epoch > sink.progress), key=_epoch)
        for segment in missed:
            self.delivery.deliver(spark, segment, sink)
            faults.reach("segment delivered")
            self._record(sink, segment.epoch, LIVE, None)
        if not missed and sink.state == FAILING:
            self._record(sink, sink.progress, LIVE, None)

    def _failed(self, sink: SinkRecord, problem: str, failures: int) -> None:
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures, _MOST_DOUBLINGS))
        # Between half and all of it, so that sinks that failed together do not come back together.
        due = self.clock() + wait * (0.5 + self.dice() / 2)
        self._retries[sink.id] = Retry(failures + 1, due)
        self._record(sink, sink.progress, sink.state if sink.state in (CREATING, REWINDING) else FAILING, problem)

    def _record(self, sink: SinkRecord, progress: int, state: str, problem: str | None) -> None:
        # Dropped meanwhile: there is nothing left to record.
        with suppress(ConcurrentChange):
            self.catalog.commit([SetSinkProgress(sink.id, progress, state, problem)], lease_token=self.lease_token)


def _epoch(segment: Segment) -> int:
    return segment.epoch
