"""What feeds the sinks: a new sink begins with the rows that are there, between two epochs, then follows what comes.

A sink of a source is given the rows of its epochs, a sink of a view or of a table by key the changelog that its epochs
have committed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from laminae.catalog.model import SourceRecord, ViewRecord
from laminae.catalog.updates import SetSinkProgress
from laminae.engine import faults
from laminae.engine.changelogs import keeps_table, row_key, weighted_by
from laminae.engine.definitions import view_plan
from laminae.engine.former_views import delivered_before
from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.sinks import sink_mode
from laminae.engine.view_order import LIVE, inputs_of
from laminae.errors import ChangelogExpired, LaminaeError, UnknownObject
from laminae.spark.delivery import Outbox, Segment
from laminae.spark.delivery.outbox import CREATING, REWINDING
from laminae.spark.delivery.segment import Holds
from laminae.spark.tables import source_table
from laminae.spark.types import arrow_schema
from laminae.spark.views.reading import table_of
from laminae.spark.views.replaced import taken_back
from laminae.views.emission import shows_old_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


@dataclass(slots=True)
class Outlets:
    """`between_epochs(source_id)` keeps the source from starting an epoch while a new sink finds its place.

    So it does with every source that a view connects with it.
    """

    catalog: Catalog
    storage: Storage
    between_epochs: Callable[[int], AbstractContextManager[object]]
    clock: Callable[[], datetime]
    lease_token: int | None = None
    _outbox: Outbox = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._outbox = Outbox(self.catalog, str(self.storage.home), self.clock, self.lease_token)

    def place_new(self) -> None:
        """Before any epoch runs: a sink of a relation that is empty yet begins with the first of them."""
        for sink in self.catalog.sinks():
            if sink.state == CREATING and not sink.progress and self._place(sink) == 0:
                self.catalog.commit([SetSinkProgress(sink.id, 0, "live")], lease_token=self.lease_token)

    def pump(self, spark: SparkSession) -> None:
        """Deliver what is committed and not delivered. A failing sink lags and is tried again; nothing is raised."""
        with self._lock:
            for sink in self.catalog.sinks():
                if sink.state == REWINDING:
                    self._outbox.attempt(sink, partial(self._outbox.take_back, sink))
            for sink in self.catalog.sinks():
                if sink.state == CREATING:
                    self._outbox.attempt(sink, partial(self._begin, spark, sink))
            self._outbox.pump(spark, partial(self._segments_after, spark))

    def _begin(self, spark: SparkSession, sink: SinkRecord) -> None:
        with self.between_epochs(self._source_below(self._relation(sink)).id):
            # Epochs that are planned from here on know the sink, and write segments for it.
            epoch = sink.progress or self._place(sink)
        if epoch is None:
            return
        if epoch and option(sink.options, "snapshot", SINK_OPTIONS) == "true":
            self._outbox.deliver(spark, self._snapshot(spark, sink, epoch), sink)
        self.catalog.commit([SetSinkProgress(sink.id, epoch, "live")], lease_token=self.lease_token)

    def _place(self, sink: SinkRecord) -> int | None:
        """The epoch up to which the sink begins with a snapshot, recorded first: a crash must not move it.

        None while a view is not live: its rows are not there yet.
        """
        match self._relation(sink):
            case ViewRecord(state=state) if state != LIVE:
                return None
            case ViewRecord(id=view_id):
                is_empty = not self.catalog.last_advance(view_id)
            case SourceRecord() as source if keeps_table(source):
                is_empty = not self.catalog.last_advance(source.id)
            case SourceRecord(id=source_id):
                is_empty = self.catalog.last_batch(source_id) is None
        if is_empty:
            return 0
        epoch = self.catalog.last_epoch()
        self.catalog.commit([SetSinkProgress(sink.id, epoch, CREATING)], lease_token=self.lease_token)
        faults.reach("sink placed")
        return epoch

    def _snapshot(self, spark: SparkSession, sink: SinkRecord, epoch: int) -> Segment:
        """Its rows have the time of the sink: written again after a crash, they are the same."""
        relation = self._relation(sink)
        if isinstance(relation, SourceRecord):
            rows = source_table(spark, self.catalog, self.storage, relation, until=epoch)
            key, schema = row_key(relation), relation.schema
        else:
            rows, key = table_of(spark.newSession(), self.catalog, self.storage, relation, epoch), self._key(relation)
            schema = arrow_schema(rows.schema)
        place = self.storage.new_segment(relation.id, "snapshots")
        path = self.storage.path(place)
        rows.write.parquet(path)
        self.storage.sync(place)
        faults.reach("snapshot written")
        count = self.storage.rows(place)
        return Segment(epoch, path, schema, count, Holds.SNAPSHOT, time=sink.created_at, key=key)

    def _segments_after(self, spark: SparkSession, sink: SinkRecord) -> list[Segment]:
        if sink.state in (CREATING, REWINDING):
            return []
        relation = self._relation(sink)
        if isinstance(relation, ViewRecord):
            found = self._changes_after(sink, relation, self._key(relation))
            return _with_former(self._former_rows_gone(spark, sink, relation), found)
        if keeps_table(relation):
            return self._changes_after(sink, relation, row_key(relation))
        return self._rows_after(sink, relation)

    def _rows_after(self, sink: SinkRecord, source: SourceRecord) -> list[Segment]:
        schemas = {version.version: version.schema for version in self.catalog.versions(source.id)}
        history = [schemas[version] for version in sorted(schemas)]
        return [
            Segment(
                epoch.epoch,
                self.storage.path(epoch.segment),
                schemas[epoch.version],
                epoch.rows,
                time=epoch.committed_at,
                weighted_by=weighted_by(source, history, schemas[epoch.version]),
            )
            for epoch in self.catalog.epochs(source.id, sink.progress)
            if epoch.segment is not None
        ]

    def _changes_after(
        self, sink: SinkRecord, relation: SourceRecord | ViewRecord, key: tuple[str, ...] | None
    ) -> list[Segment]:
        advances = [each for each in self.catalog.advances(relation.id, sink.progress) if each.rows]
        if not advances:
            return []
        lost = [each.epoch for each in advances if not each.files]
        if lost:
            raise ChangelogExpired(view=relation.name, first=lost[-1], since=sink.progress)
        # A view that was replaced may have become one that the sink cannot take.
        sink_mode(sink.name, sink.relation, sink.options, self.catalog.sources(), self.catalog.views())
        home, shows_old = str(self.storage.home), isinstance(relation, SourceRecord) or shows_old_rows(relation.emit)
        return [
            Segment(each.epoch, home, each.schema, each.rows, Holds.CHANGES, each.files, key=key, shows_old=shows_old)
            for each in advances
        ]

    def _former_rows_gone(self, spark: SparkSession, sink: SinkRecord, view: ViewRecord) -> Segment | None:
        """What a sink has yet to take back because the view took the place of another: with its first epoch.

        That may be one without any row, so that a view that stays empty empties its sinks.
        """
        begun = self.catalog.advances(view.id, sink.progress)
        former = delivered_before(self.catalog, view, sink.progress) if begun else None
        if former is None:
            return None
        at = (begun[0].epoch, view.created_at)
        found = taken_back(spark.newSession(), self.catalog, self.storage, former, sink.progress, at)
        return None if found is None else replace(found, key=self._former_key(former, view))

    def _former_key(self, former: ViewRecord, view: ViewRecord) -> tuple[str, ...] | None:
        sources, views = self.catalog.sources(), self.catalog.views()
        try:
            return view_plan(former.name, former.query, sources, views, former.written).key
        except LaminaeError:
            # What it read has changed since. A sink that knows rows by their key was let through with the same one.
            return self._key(view)

    def _relation(self, sink: SinkRecord) -> SourceRecord | ViewRecord:
        found = self.catalog.source(sink.relation) or self.catalog.view(sink.relation)
        if found is None:
            raise UnknownObject(kind="source or materialized view", name=sink.relation, suggestion="")
        return found

    def _key(self, view: ViewRecord) -> tuple[str, ...] | None:
        return view_plan(view.name, view.query, self.catalog.sources(), self.catalog.views()).key

    def _source_below(self, relation: SourceRecord | ViewRecord) -> SourceRecord:
        """A source that a view stands on; all of them take turns."""
        while isinstance(relation, ViewRecord):
            name = min(inputs_of(relation))
            below = self.catalog.source(name) or self.catalog.view(name)
            assert below is not None  # it cannot be dropped while a view reads it
            relation = below
        return relation


def _with_former(gone: Segment | None, found: list[Segment]) -> list[Segment]:
    """The changes of a view behind what takes the rows of the one before it back.

    In one epoch, and in one changelog where both have the same shape: a row that is there again is then an update.
    """
    if gone is None:
        return found
    if not found or found[0].epoch != gone.epoch:
        return [gone, *found]
    first, *rest = found
    if _shape(gone) == _shape(first) and gone.key == first.key:
        return [replace(first, parts=(*(gone.parts or ()), *(first.parts or ()))), *rest]
    return [replace(first, former=gone), *rest]


def _shape(segment: Segment) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in segment.schema]
