"""The body of an epoch: plan from the catalog, run one Spark job, fsync its files, commit once.

Nothing is visible before the single catalog transaction at the end. A re-run of the same offset range either finds the
epoch committed or executes it again.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import CommitEpoch
from laminae.engine import faults
from laminae.engine.epochs.epoch_plan import EpochPlan, SourceCache, plan_epoch
from laminae.engine.epochs.read_strategy import RangeFacts
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import connected
from laminae.engine.writer_schemas.binding import WriterSchemaBinder
from laminae.engine.writer_schemas.registry import latest
from laminae.errors import CheckpointDiverged, ConcurrentChange
from laminae.spark.catalyst.session import settle_epochs
from laminae.spark.catalyst.session_settings import cloned
from laminae.spark.catalyst.spark_errors import SPARK_ERRORS
from laminae.spark.catalyst.types import microseconds_of, spark_schema
from laminae.spark.epoch.dead_letters import write_dead_letters
from laminae.spark.epoch.fast_strategies import write_fast
from laminae.spark.epoch.metrics import EpochCommitted, OnMetric, told
from laminae.spark.epoch.offsets import range_of, time_of
from laminae.spark.epoch.schema_evolution import MOST_ROUNDS, Proposed, SchemaEvolver, released_by, set_aside
from laminae.spark.epoch.writer import EpochWriter, Written
from laminae.spark.epoch.writer_schemas import WriterSchemaResolver
from laminae.spark.formats.avro.schema_ids import SchemaIds, count_of
from laminae.spark.formats.protocol import ERROR, VERSION, Decoded
from laminae.spark.source_tables.future_rows import future_limit
from laminae.spark.source_tables.kept_table import source_table_state
from laminae.spark.source_tables.retractions import weights_of
from laminae.spark.source_tables.source_rows import dead_letter_records
from laminae.spark.sources.protocol import LogRange
from laminae.spark.sources.registry import open_source
from laminae.spark.views.group_plans import Plans
from laminae.spark.views.runner import EpochTimes, EpochViews, ViewRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.spark.driver.storage import Storage
    from laminae.spark.sources.reader import SourceReader


class Stopping(Exception):
    """Raised when an epoch would begin while its source is being stopped. The next driver runs that epoch."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay: how many dead letters became rows, and how many are dead letters again."""

    rows: int
    refused: int


@dataclass(frozen=True, slots=True)
class EpochRunner:
    """Runs the epochs of all sources of a home under one lease."""

    catalog: Catalog
    engine: Engine
    storage: Storage
    lease_token: int
    clock: Callable[[], datetime]
    on_metric: OnMetric | None = None
    began: datetime | None = None
    """When the driver began to read. Before that, an idle source cannot be told from one with unread records."""
    writers: WriterSchemaResolver = field(init=False)
    _locks: defaultdict[int, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _closed: set[int] = field(default_factory=set)
    _plans: Plans = field(default_factory=Plans)
    _schema_ids: SchemaIds = field(default_factory=SchemaIds)
    _memories: defaultdict[int, SourceCache] = field(default_factory=lambda: defaultdict(SourceCache))

    def __post_init__(self) -> None:
        meeting = WriterSchemaResolver(self.catalog, self.engine, self.storage, self.lease_token)
        object.__setattr__(self, "writers", meeting)

    @contextmanager
    def between_epochs(self, source_id: int) -> Iterator[None]:
        """While this is held, no epoch of the source is being planned, run or committed.

        The same holds for every source that is connected with it by a view: their epochs exclude each other.
        """
        while True:
            group = self._group(source_id)
            with ExitStack() as held:
                for member in group:
                    held.enter_context(self._locks[member])
                if self._group(source_id) == group:
                    yield
                    return

    def _group(self, source_id: int) -> tuple[int, ...]:
        sources = self.catalog.sources()
        own = next((source for source in sources if source.id == source_id), None)
        return (source_id,) if own is None else connected(own, sources, self.catalog.views())

    def close(self, source_id: int) -> None:
        """Wait until no epoch of the source is running, and let no further epoch begin."""
        with self.between_epochs(source_id):
            self._closed.add(source_id)

    def run(self, spark: SparkSession, source_name: str, source_id: int, batch_id: int) -> int | None:
        """Run the epoch of a micro-batch and return its number, or None when the source was dropped.

        A batch that is already committed is not run again.
        """
        began = time.monotonic()
        settle_epochs(spark)
        with self.between_epochs(source_id):
            if source_id in self._closed:
                raise Stopping(source_name)
            # Spark re-runs a batch whose end it did not record in its commit log; the metric is reported only once.
            is_told = self.on_metric is None or self.catalog.batch(source_id, batch_id) is not None
            number = self._run(spark, source_name, source_id, batch_id)
        done = self.catalog.batch(source_id, batch_id) if not is_told and number is not None else None
        if done is not None:
            seconds = time.monotonic() - began
            counts = (done.epoch, batch_id, done.version, done.rows, done.dead_letters)
            told(self.on_metric, EpochCommitted(source_name, *counts, seconds))
        return number

    def _run(self, spark: SparkSession, source_name: str, source_id: int, batch_id: int) -> int | None:
        source = self.catalog.source(source_name)
        if source is None or source.id != source_id:
            return None
        log = open_source(source, str(self.storage.home))
        span = range_of(self.storage.checkpoint(source.id), source.name, batch_id, log.source.initial())
        done = self.catalog.batch(source.id, batch_id)
        if done is not None and (done.start_offsets, done.end_offsets) == (span.start, span.end):
            return done.epoch
        self._refuse_divergence(source, batch_id, span)
        self._memories[source_id].settle()
        while True:
            try:
                return self._read(spark, source, log, batch_id, span)
            except ConcurrentChange:
                # Options that decide how records are read may change until the first epoch is committed. Read again
                # with the new options.
                now = self.catalog.source(source_name)
                if now is None or now.id != source_id or now.options == source.options:
                    raise
                return self._run(spark, source_name, source_id, batch_id)
            except (*SPARK_ERRORS, UnicodeEncodeError):
                # An unreadable file becomes one dead letter and does not stop the source. A missing file does:
                # `broken` raises for it, and the epoch is retried until the file is back.
                broken = log.source.broken(span)
                if broken == span.broken:
                    raise
                span = replace(span, broken=broken)

    def _read(self, spark: SparkSession, source: SourceRecord, log: SourceReader, batch_id: int, span: LogRange) -> int:
        memory = self._memories[source.id]
        items = range(log.source.item(span.start), log.source.item(span.end))
        stamps = log.source.stamps_at_hand(span)
        time = time_of(self.storage.checkpoint(source.id), source.name, batch_id)
        evolving, writing = SchemaEvolver(self.engine, self.lease_token, self.catalog), EpochWriter(self.storage)
        waits_for: int | None = None
        for rounds_left in reversed(range(MOST_ROUNDS)):
            memory.learn(source, self.catalog.versions)
            memory.learn_writers(source, self.catalog.writers)
            place = (span.start, span.end)
            facts = RangeFacts(has_broken_items=bool(span.broken), waits_for_change=waits_for is not None)
            plan = plan_epoch(source, memory, self.catalog.sinks(), batch_id, place, items, stamps, facts)
            if rounds_left and evolving.follow(plan, log.source.outside(span)):
                source = self.engine.source(source.name)
                continue
            views = self._views(spark, source, time)
            faults.reach("epoch planned")
            attempt = write_fast(spark, log, span, plan, views, memory, writing)
            if attempt.written is not None:
                return self._commit(plan, None, attempt.written)
            if attempt.has_failed and rounds_left and self._meets_ids(spark, memory, plan, log, span):
                faults.reach("schema evolved")
                source = self.engine.source(source.name)
                continue
            decoded = log.decoded(spark, span, plan.table)
            if waits_for is not None:
                decoded = replace(decoded, records=set_aside(decoded.records, waits_for))
            decoded = replace(decoded, records=views.judged(decoded.records))
            written = writing.closely(plan, decoded.records, views)
            if waits_for is not None or not (written.has_errors or written.has_unknown):
                break
            learned = self._learns(memory, plan, decoded, evolving) if rounds_left else Proposed(False)
            if not learned and learned.waits_for is None:
                break
            if written.segment is not None:
                self.storage.remove(written.segment)
            faults.reach("schema evolved")
            # Run again: with the evolved schema, or with the records that wait for its confirmation set aside.
            waits_for = learned.waits_for
            source = self.engine.source(source.name)
        number = self._commit(plan, decoded.records, written, waits_for)
        if waits_for is not None:
            # The change may have been confirmed before these dead letters were committed, so look for them again.
            memory.released_at = None
        return number

    def make_ready(self, spark: SparkSession, source: SourceRecord) -> None:
        """After a change of the source's definition, prepare ahead of time the plans that its next epoch will need."""
        # A running epoch may itself have caused the change, by binding a new schema id. It makes its own plans.
        if not (spec_of(source).is_framed and self._locks[source.id].locked()):
            self._make_ready(spark, source)

    def _make_ready(self, spark: SparkSession, source: SourceRecord) -> None:
        memory = self._memories[source.id]
        if spec_of(source).changelog.retracts or (spec_of(source).is_framed and memory.writers is None):
            return
        # The caller uses its session for other work too; do not change its settings.
        spark = cloned(spark)
        settle_epochs(spark)
        log = open_source(source, str(self.storage.home))
        last = self.catalog.last_batch(source.id)
        first = log.source.item(log.source.initial() if last is None else last.end_offsets)
        table = memory.ahead(source, self.catalog.versions(source.id), range(first, first + 1))
        log.make_ready(spark, table, None if last is None else LogRange(last.start_offsets, last.end_offsets))

    def follow_subject(self, spark: SparkSession, source: SourceRecord) -> None:
        """Bind the newest schema of a source's subject now, as the first record with its schema id would do."""
        newest = latest(spec_of(source), source.name)
        with self.between_epochs(source.id):
            present = self.catalog.source(source.name)
            if present is None or present.id != source.id:
                return
            memory = self._memories[source.id]
            if all(writer.schema_id != newest.schema_id for writer in self.catalog.writers(source.id)):
                WriterSchemaBinder(self.catalog, self.engine, self.lease_token).meet(source.name, newest.schema_id)
                present = self.engine.source(source.name)
                memory.meet_writer(present, newest.schema_id)
                memory.learn(present, self.catalog.versions)
                memory.learn_writers(present, self.catalog.writers)
                self._make_ready(spark, present)

    def can_release(self, source: SourceRecord) -> bool:
        """Whether dead letters can be replayed because the registry answers again or a pending change is confirmed."""
        if self.writers.can_release(source):
            return True
        memory = self._memories[source.id]
        if not spec_of(source).evolves or memory.released_at == source.version:
            return False
        is_over = bool(released_by(self.catalog, source))
        memory.released_at = source.version
        return is_over

    def replay(self, spark: SparkSession, source_name: str) -> Replayed:
        """Replay every waiting dead letter of a source in one separate epoch: all or none."""
        # The given session belongs to the user; do not change its settings.
        spark = cloned(spark)
        settle_epochs(spark)
        source = self.engine.source(source_name)
        with self.between_epochs(source.id):
            dead = self.catalog.dead_letter_epochs(source.id)
            if not dead:
                return Replayed(0, 0)
            letters = dead_letter_records(spark, self.storage, dead).drop("reason")
            if spec_of(source).has_writers:
                self.writers.ask_again(source, letters)
                self._memories[source.id].writers = None
                source = self.engine.source(source.name)
            evolving = SchemaEvolver(self.engine, self.lease_token, self.catalog)
            plan, again, waits_for = evolving.replayed(self.storage, source, dead, letters)
            # No cached plans here: their tasks get the session's settings only inside a streaming micro-batch.
            views = replace(self._views(spark, plan.source, microseconds_of(self.clock())), plans=None)
            decoded = views.judged(again)
            written = EpochWriter(self.storage).closely(plan, decoded, views)
            number = self._commit(plan, decoded, written, waits_for)
            # One dead letter may represent a whole file, so this is not the number of letters taken minus the rows.
            refused = sum(epoch.dead_letters for epoch in self.catalog.epochs(source.id) if epoch.epoch == number)
            return Replayed(written.rows, refused)

    def _refuse_divergence(self, source: SourceRecord, batch_id: int, span: LogRange) -> None:
        last = self.catalog.last_batch(source.id)
        expected_id, expected_start = (0, span.start) if last is None else (last.batch_id + 1, last.end_offsets)
        if (batch_id, span.start) != (expected_id, expected_start):
            spark, catalog = f"batch {batch_id} from {span.start}", f"batch {expected_id} from {expected_start}"
            problem = f"Spark is at {spark}, the catalog at {catalog}"
            raise CheckpointDiverged(batch=batch_id, source=source.name, problem=problem)

    def _views(self, spark: SparkSession, source: SourceRecord, time: int) -> EpochViews:
        """The views that this epoch updates, in their current state."""
        runner = ViewRunner(self.catalog, self.storage, self.lease_token)
        states = runner.live(source, EpochTimes(self.clock(), self.began))
        table = source_table_state(self.catalog, self.storage, source) if spec_of(source).keeps_table else None
        place = runner.placement(spark, time) if states or table is not None else None
        weights = weights_of(source, self.catalog.versions(source.id)) if spec_of(source).is_retract else None
        schema = spark_schema(source.schema)
        future = future_limit(source)
        return EpochViews(runner, spark, source.name, states, place, table, weights, future, self._plans, schema)

    def _learns(self, memory: SourceCache, plan: EpochPlan, decoded: Decoded, evolving: SchemaEvolver) -> Proposed:
        """Whether a schema id, a version or a schema change is in force now that the epoch was not planned with."""
        if plan.table.writers is not None:
            return Proposed(self.writers.meet_in(memory, plan.source, decoded))
        if spec_of(plan.source).brings_schemas and self.writers.meet_heads(memory, plan, decoded):
            return Proposed(True)
        return Proposed(True) if self._meets_versions(memory, plan, decoded) else evolving.evolve(plan, decoded)

    def cache_of(self, source_id: int) -> SourceCache:
        """A copy of what this driver has learned of a source, for EXPLAIN EPOCH."""
        return self._memories[source_id].copy()

    def _meets_ids(
        self, spark: SparkSession, memory: SourceCache, plan: EpochPlan, log: SourceReader, span: LogRange
    ) -> bool:
        """Whether the fast path failed because of schema ids missing from the plan that are bound by now.

        Only the frame header of each record is read: decoding the records with the known writer schemas would take as
        long as the epoch itself.
        """
        if plan.table.writers is None:
            return False
        read = partial(log.source.read, spark, span)
        schema_ids = self._schema_ids.found(spark, read, log.source.planned(spark, span))
        strangers = schema_ids - {writer.schema_id for writer in plan.table.writers}
        is_new = not strangers.issubset(writer.schema_id for writer in memory.writers or ())
        is_met = self.writers.meet(memory, plan.source, strangers, lambda: count_of(read, strangers))
        if is_met and is_new:
            memory.keep_to(schema_ids)
        return is_met

    def _meets_versions(self, memory: SourceCache, plan: EpochPlan, decoded: Decoded) -> bool:
        """Whether records were refused only because the decoder table lacks their versions: the epoch then re-runs."""
        if VERSION not in decoded.records.columns:
            return False
        known = [decoder.version for decoder in plan.table.decoders]
        is_known = F.col(VERSION).between(1, plan.source.version)
        strangers = decoded.records.where(F.col(ERROR).isNotNull() & is_known & ~F.col(VERSION).isin(known))
        return memory.meet(row[VERSION] for row in strangers.select(VERSION).distinct().collect())

    def _commit(
        self, plan: EpochPlan, decoded: DataFrame | None, written: Written, waits_for: int | None = None
    ) -> int:
        dead_segment, dead = None, 0
        if decoded is not None and written.has_errors:
            dead_segment, dead = write_dead_letters(self.catalog, self.storage, plan, decoded)
        for segment in filter(None, (written.segment, dead_segment)):
            self.storage.sync(segment)
        faults.reach("files synced")
        update = CommitEpoch(
            source_id=plan.source.id,
            source_name=plan.source.name,
            batch_id=plan.batch_id,
            start_offsets=plan.start,
            end_offsets=plan.end,
            version=plan.source.version,
            rows=written.rows,
            committed_at=self.clock(),
            segment=written.segment,
            dead_letters=dead,
            dead_letter_segment=dead_segment,
            replays=plan.replays,
            event_time=written.event_time,
            options=plan.source.options,
            waits_for=waits_for,
        )
        updates = [*plan.positions, update, *written.views.updates]
        committed = self.catalog.commit(updates, lease_token=self.lease_token)
        faults.reach("epoch committed")
        return committed.ids[len(plan.positions)]
