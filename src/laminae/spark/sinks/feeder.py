"""Feed the sinks: a new sink starts with a snapshot taken between two epochs, then receives every committed epoch.

A sink on an append or retract source receives the rows of its epochs. A sink on a view, or on a source that keeps a
table, receives the changelog that the epochs committed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from laminae.catalog.model import STARTING_SINKS, SinkStatus, SourceRecord, ViewRecord
from laminae.catalog.updates import SetSinkProgress
from laminae.engine import faults
from laminae.engine.changelogs import row_key, weighted_by
from laminae.engine.definitions.objects import view_plan
from laminae.engine.definitions.sent_schemas import first_schema
from laminae.engine.definitions.sinks import AVRO, format_of, sink_mode
from laminae.engine.evolution.added_columns import added_defaults
from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import LIVE, inputs_of
from laminae.engine.views.replacement import delivered_before
from laminae.errors import ChangelogExpired, LaminaeError, UnknownObject
from laminae.schema.identity import column_ids, with_column_ids
from laminae.spark.catalyst.session_settings import cloned
from laminae.spark.catalyst.types import arrow_schema
from laminae.spark.sinks import Outbox, Segment
from laminae.spark.sinks.replacement import taken_back
from laminae.spark.sinks.segment import Holds
from laminae.spark.source_tables.source_rows import source_table
from laminae.spark.views.reading.relation import table_of
from laminae.views.emit import shows_old_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.views.operators import ViewPlan


@dataclass(slots=True)
class SinkFeeder:
    """Determines the segments that each sink is missing and hands them to the outbox.

    `between_epochs(source_id)` blocks epochs of the source, and of every source that a view connects with it, while
    the start epoch of a new sink is determined.
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
        """Called before any epoch runs: a new sink on a relation that is still empty starts with its first epoch."""
        for sink in self.catalog.sinks():
            if sink.state == SinkStatus.CREATING and not sink.progress and self._place(sink) == 0:
                self.catalog.commit([SetSinkProgress(sink.id, 0, SinkStatus.LIVE)], lease_token=self.lease_token)

    def pump(self, spark: SparkSession) -> None:
        """Deliver what is committed but not delivered. A failing sink lags and is retried; nothing is raised."""
        with self._lock:
            for sink in self.catalog.sinks():
                if sink.state == SinkStatus.REWINDING:
                    self._outbox.attempt(sink, partial(self._outbox.take_back, sink))
            for sink in self.catalog.sinks():
                if sink.state == SinkStatus.CREATING:
                    self._outbox.attempt(sink, partial(self._begin, spark, sink))
            self._outbox.pump(spark, partial(self._segments_after, spark))

    def _begin(self, spark: SparkSession, sink: SinkRecord) -> None:
        with self.between_epochs(self._source_below(self._relation(sink)).id):
            # Epochs planned from here on know the sink and write segments for it.
            epoch = sink.progress or self._place(sink)
        if epoch is None:
            return
        if epoch and option(sink.options, "snapshot", SINK_OPTIONS) == "true":
            self._outbox.deliver(spark, self._snapshot(spark, sink, epoch), sink)
        self.catalog.commit([SetSinkProgress(sink.id, epoch, SinkStatus.LIVE)], lease_token=self.lease_token)

    def _place(self, sink: SinkRecord) -> int | None:
        """The epoch of the sink's initial snapshot, 0 for an empty relation. Recorded first: a crash must not move it.

        None while a view is not live, because its rows have not been computed yet.
        """
        match self._relation(sink):
            case ViewRecord(state=state) if state != LIVE:
                return None
            case ViewRecord(id=view_id):
                is_empty = not self.catalog.last_advance(view_id)
            case SourceRecord() as source if spec_of(source).keeps_table:
                is_empty = not self.catalog.last_advance(source.id)
            case SourceRecord(id=source_id):
                is_empty = self.catalog.last_batch(source_id) is None
        if is_empty:
            return 0
        epoch = self.catalog.last_epoch()
        self.catalog.commit([SetSinkProgress(sink.id, epoch, SinkStatus.CREATING)], lease_token=self.lease_token)
        faults.reach("sink placed")
        return epoch

    def _snapshot(self, spark: SparkSession, sink: SinkRecord, epoch: int) -> Segment:
        """The rows carry the sink's creation time, so that a snapshot rewritten after a crash is identical."""
        relation = self._relation(sink)
        if isinstance(relation, SourceRecord):
            rows = source_table(spark, self.catalog, self.storage, relation, until=epoch)
            key, schema = row_key(relation), relation.schema
        else:
            rows, plan = table_of(cloned(spark), self.catalog, self.storage, relation, epoch), self._plan(relation)
            key, schema = plan.key, with_column_ids(arrow_schema(rows.schema), _ids(plan))
        place = self.storage.new_segment(relation.id, "snapshots")
        path = self.storage.path(place)
        rows.write.parquet(path)
        self.storage.sync(place)
        faults.reach("snapshot written")
        count = self.storage.rows(place)
        segment = Segment(epoch, path, schema, count, Holds.SNAPSHOT, time=sink.created_at, key=key)
        return self._of(relation, [segment])[0]

    def _segments_after(self, spark: SparkSession, sink: SinkRecord) -> list[Segment]:
        if sink.state in STARTING_SINKS:
            return []
        relation = self._relation(sink)
        if isinstance(relation, ViewRecord):
            segments = self._sent_before(sink, relation, self._changes_after(sink, relation, self._key(relation)))
            return _with_former(self._former_rows_gone(spark, sink, relation), self._of(relation, segments))
        if spec_of(relation).keeps_table:
            segments = self._changes_after(sink, relation, row_key(relation))
        else:
            segments = self._rows_after(sink, relation)
        return self._of(relation, self._sent_before(sink, relation, segments))

    def _sent_before(
        self, sink: SinkRecord, relation: SourceRecord | ViewRecord, segments: list[Segment]
    ) -> list[Segment]:
        """Attach to each segment the schemas of earlier messages. Avro consumers resolve these with the newest one."""
        if not segments or format_of(sink.options) != AVRO:
            return segments
        began, first = sink.began or 0, []
        if isinstance(relation, SourceRecord) and not spec_of(relation).keeps_table:
            schemas = {version.version: version.schema for version in self.catalog.versions(relation.id)}
            sent = [(epoch.epoch, schemas[epoch.version]) for epoch in self.catalog.epochs(relation.id, began)]
        else:
            sent = [(advance.epoch, advance.schema) for advance in self.catalog.advances(relation.id, began)]
        if isinstance(relation, SourceRecord) and began:
            first = [first_schema(self.catalog.versions(relation.id), sink.created_at)]
        return [
            replace(segment, sent=(*first, *(schema for epoch, schema in sent if epoch < segment.epoch)))
            for segment in segments
        ]

    def _of(self, relation: SourceRecord | ViewRecord, segments: list[Segment]) -> list[Segment]:
        """Attach the relation id and the fill values of added columns, by column id."""
        if not segments:
            return segments
        defaults = added_defaults(relation, self.catalog.sources(), self.catalog.views())
        ids = column_ids(relation.schema) if isinstance(relation, SourceRecord) else _ids(self._plan(relation))
        fills = {ids[name]: value for name, value in defaults.items()}
        return [replace(segment, relation_id=relation.id, fills=fills) for segment in segments]

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
        advances = [advance for advance in self.catalog.advances(relation.id, sink.progress) if advance.rows]
        if not advances:
            return []
        lost = [advance.epoch for advance in advances if not advance.files]
        if lost:
            raise ChangelogExpired(view=relation.name, first=lost[-1], since=sink.progress)
        # The view may have been replaced by one that the sink's mode does not support: this raises.
        sink_mode(sink.name, sink.relation, sink.options, self.catalog.sources(), self.catalog.views())
        home, shows_old = str(self.storage.home), isinstance(relation, SourceRecord) or shows_old_rows(relation.emit)
        return [
            Segment(
                advance.epoch,
                home,
                advance.schema,
                advance.rows,
                Holds.CHANGES,
                advance.files,
                key=key,
                shows_old=shows_old,
            )
            for advance in advances
        ]

    def _former_rows_gone(self, spark: SparkSession, sink: SinkRecord, view: ViewRecord) -> Segment | None:
        """Retractions of the rows that the sink received from a replaced view, due with the new view's first epoch.

        That epoch may have no rows, so that a new view that stays empty still empties its sinks.
        """
        begun = self.catalog.advances(view.id, sink.progress)
        former = delivered_before(self.catalog, view, sink.progress) if begun else None
        if former is None:
            return None
        at = (begun[0].epoch, view.created_at)
        segment = taken_back(cloned(spark), self.catalog, self.storage, former, sink.progress, at)
        return None if segment is None else replace(segment, key=self._former_key(former, view), relation_id=former.id)

    def _former_key(self, former: ViewRecord, view: ViewRecord) -> tuple[str, ...] | None:
        sources, views = self.catalog.sources(), self.catalog.views()
        try:
            return view_plan(former.name, former.query, sources, views, former.written, former.reading).key
        except LaminaeError:
            # The inputs of the replaced view have changed since. For a sink that identifies rows by key, the
            # replacement was only accepted because both views have the same key.
            return self._key(view)

    def _relation(self, sink: SinkRecord) -> SourceRecord | ViewRecord:
        relation = self.catalog.source(sink.relation) or self.catalog.view(sink.relation)
        if relation is None:
            raise UnknownObject(kind="source or materialized view", name=sink.relation, suggestion="")
        return relation

    def _key(self, view: ViewRecord) -> tuple[str, ...] | None:
        return self._plan(view).key

    def _plan(self, view: ViewRecord) -> ViewPlan:
        return view_plan(view.name, view.query, self.catalog.sources(), self.catalog.views())

    def _source_below(self, relation: SourceRecord | ViewRecord) -> SourceRecord:
        """Any one of the sources below a relation: epochs of all sources below one view are mutually exclusive."""
        while isinstance(relation, ViewRecord):
            name = min(inputs_of(relation))
            below = self.catalog.source(name) or self.catalog.view(name)
            assert below is not None  # it cannot be dropped while a view reads it
            relation = below
        return relation


def _with_former(gone: Segment | None, found: list[Segment]) -> list[Segment]:
    """Put the retractions for the replaced view in front of the changes of the new view.

    If both are due in the same epoch they form one segment, and if they also have the same columns and key, one
    changelog: a row that exists in both views then becomes an update.
    """
    if gone is None:
        return found
    if not found or found[0].epoch != gone.epoch:
        return [gone, *found]
    first, *rest = found
    if _shape(gone) == _shape(first) and gone.key == first.key:
        return [replace(first, parts=(*(gone.parts or ()), *(first.parts or ()))), *rest]
    return [replace(first, former=gone), *rest]


def _ids(plan: ViewPlan) -> dict[str, str]:
    return dict(zip(plan.columns, plan.ids, strict=True))


def _shape(segment: Segment) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in segment.schema]
