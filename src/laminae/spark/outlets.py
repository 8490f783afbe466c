"""What feeds the sinks: a new sink begins with the rows that are there, between two epochs, then follows segments."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from laminae.catalog.updates import SetSinkProgress
from laminae.engine import faults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.spark.delivery import Outbox, Segment
from laminae.spark.delivery.outbox import CREATING, REWINDING
from laminae.spark.tables import source_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


@dataclass(slots=True)
class Outlets:
    """`between_epochs(source_id)` keeps the source from starting an epoch while a new sink finds its place."""

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    _outbox: Outbox = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._outbox = Outbox(self.catalog, str(self.storage.home), self.clock, self.lease_token)

    def pump(self, spark: SparkSession) -> None:
        """Deliver what is committed and not delivered. A failing sink lags and is tried again; nothing is raised."""
        with self._lock:
            for sink in self.catalog.sinks():
                if sink.state == REWINDING:
                    self._outbox.attempt(sink, partial(self._outbox.take_back, sink))
            for sink in self.catalog.sinks():
                if sink.state == CREATING:
                    self._outbox.attempt(sink, partial(self._begin, spark, sink))
            self._outbox.pump(spark, self._segments_after)

    def _begin(self, spark: SparkSession, sink: SinkRecord) -> None:
        source = self.catalog.source(sink.relation)
        if source is None:
            return
        with self.between_epochs(source.id):
            # Epochs that are planned from here on know the sink, and write segments for it.
            epoch = sink.progress or self._place(sink, source)
        if epoch and option(sink.options, "snapshot", SINK_OPTIONS) == "true":
            self._deliver_snapshot(spark, sink, source, epoch)
        self.catalog.commit([SetSinkProgress(sink.id, epoch, "live")], lease_token=self.lease_token)

    def _place(self, sink: SinkRecord, source: SourceRecord) -> int:
        """The epoch up to which the sink begins with a snapshot, recorded first: a crash must not move it."""
        if self.catalog.last_batch(source.id) is None:
            return 0
        epoch = self.catalog.last_epoch()
        self.catalog.commit([SetSinkProgress(sink.id, epoch, CREATING)], lease_token=self.lease_token)
        faults.reach("sink placed")
        return epoch

    def _deliver_snapshot(self, spark: SparkSession, sink: SinkRecord, source: SourceRecord, epoch: int) -> None:
        segment = self.storage.new_segment(source.id, "snapshots")
        source_table(spark, self.catalog, self.storage, source, until=epoch).write.parquet(self.storage.path(segment))
        self.storage.sync(segment)
        faults.reach("snapshot written")
        rows = self.storage.rows(segment)
        self._outbox.deliver(spark, Segment(epoch, self.storage.path(segment), source.schema, rows), sink)

    def _segments_after(self, sink: SinkRecord) -> list[Segment]:
        source = self.catalog.source(sink.relation)
        if source is None or sink.state in (CREATING, REWINDING):
            return []
        schemas = {version.version: version.schema for version in self.catalog.versions(source.id)}
        return [
            Segment(epoch.epoch, self.storage.path(epoch.segment), schemas[epoch.version], epoch.rows)
            for epoch in self.catalog.epochs(source.id, sink.progress)
            if epoch.segment is not None
        ]
