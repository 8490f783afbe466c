"""The body of an epoch: plan from the catalog, run one Spark job, make its files durable, commit once.

Nothing exists until the one catalog transaction at the end; a replay of the same range finds it done or does it again.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.updates import CommitEpoch
from laminae.engine import faults
from laminae.engine.changelogs import APPEND, changelog_of, is_retract, keeps_table
from laminae.engine.epochs import EpochPlan, SourceMemory, Way, plan_epoch, plan_replay
from laminae.engine.heads import brings_schemas, has_writers
from laminae.engine.options import is_framed, option
from laminae.engine.subjects import latest
from laminae.engine.view_order import connected
from laminae.engine.writers import Writers
from laminae.errors import CheckpointDiverged, ConcurrentChange, DeadLetterLimit, RecordRefused
from laminae.spark.avro_letters import with_exact_reasons
from laminae.spark.contract import ERROR, RAW_COLUMNS, VERSION, Decoded, LogRange, QuickRows
from laminae.spark.epoch_rows import EpochRows, Written
from laminae.spark.evolving import Evolving
from laminae.spark.instants import microseconds_of
from laminae.spark.logs import open_log
from laminae.spark.logs.numbered import NumberedLog
from laminae.spark.metrics import EpochCommitted, OnMetric, told
from laminae.spark.offsets import range_of, time_of
from laminae.spark.schema_ids import SchemaIds, count_of
from laminae.spark.session import beside, settle_epochs
from laminae.spark.tables import dead_letter_records
from laminae.spark.types import spark_schema
from laminae.spark.views.future import future_limit
from laminae.spark.views.plans import Plans
from laminae.spark.views.run import EpochViews, ViewRunner
from laminae.spark.views.source_tables import source_table_state
from laminae.spark.views.weights import weights_of
from laminae.spark.writers import WriterMeeting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.spark.contract import SourceLog
    from laminae.spark.storage import Storage

# Each round but one applies a new version, so a stream that keeps inventing fields cannot hold an epoch for ever.
MOST_ROUNDS = 5


class Stopping(Exception):
    """An epoch that would begin while its source is being stopped. It is done by the next driver."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many dead letters became rows, and how many are dead letters again."""

    rows: int
    refused: int


@dataclass(frozen=True, slots=True)
class EpochRunner:
    """Runs the epochs of every source of a home under one lease."""

    catalog: Catalog
    engine: Engine
    storage: Storage
    lease_token: int
    clock: Callable[[], datetime]
    on_metric: OnMetric | None = None
    writers: WriterMeeting = field(init=False)
    _locks: defaultdict[int, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _closed: set[int] = field(default_factory=set)
    _plans: Plans = field(default_factory=Plans)
    _schema_ids: SchemaIds = field(default_factory=SchemaIds)
    _memories: defaultdict[int, SourceMemory] = field(default_factory=lambda: defaultdict(SourceMemory))

    def __post_init__(self) -> None:
        meeting = WriterMeeting(self.catalog, self.engine, self.storage, self.lease_token)
        object.__setattr__(self, "writers", meeting)

    @contextmanager
    def between_epochs(self, source_id: int) -> Iterator[None]:
        """While it is held, no epoch of the source is planned, running or being committed.

        Nor is one of a source that a view connects with it: their epochs take turns.
        """
        while True:
            group = self._group(source_id)
            with ExitStack() as held:
                for each in group:
                    held.enter_context(self._locks[each])
                if self._group(source_id) == group:
                    yield
                    return

    def _group(self, source_id: int) -> tuple[int, ...]:
        sources = self.catalog.sources()
        own = next((source for source in sources if source.id == source_id), None)
        return (source_id,) if own is None else connected(own, sources, self.catalog.views())

    def close(self, source_id: int) -> None:
        """Returns when no epoch of the source is under way; none begins any more."""
        with self.between_epochs(source_id):
            self._closed.add(source_id)

    def run(self, spark: SparkSession, source_name: str, source_id: int, batch_id: int) -> int | None:
        """The number of the committed epoch, None when the source is gone. Committed before: nothing is done."""
        began = time.monotonic()
        settle_epochs(spark)
        with self.between_epochs(source_id):
            if source_id in self._closed:
                raise Stopping(source_name)
            # Spark runs a batch again that it did not hear the end of; its epoch is told of once.
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
        log = open_log(source, str(self.storage.home))
        span = range_of(self.storage.checkpoint(source.id), source.name, batch_id, log.initial())
        done = self.catalog.batch(source.id, batch_id)
        if done is not None and (done.start_offsets, done.end_offsets) == (span.start, span.end):
            return done.epoch
        self._refuse_divergence(source, batch_id, span)
        self._memories[source_id].settle()
        while True:
            try:
                return self._read(spark, source, log, batch_id, span)
            except ConcurrentChange:
                # Options that decide how records are read may change until the first epoch: it is read anew with them.
                now = self.catalog.source(source_name)
                if now is None or now.id != source_id or now.options == source.options:
                    raise
                return self._run(spark, source_name, source_id, batch_id)
            except (PySparkException, Py4JError, UnicodeEncodeError):
                # A file that cannot be read is a dead letter as a whole, and nothing to stop for. One that is not there
                # is waited for.
                broken = log.broken(span)
                if broken == span.broken:
                    raise
                span = replace(span, broken=broken)

    def _read(self, spark: SparkSession, source: SourceRecord, log: SourceLog, batch_id: int, span: LogRange) -> int:
        memory = self._memories[source.id]
        items = range(log.item(span.start), log.item(span.end))
        stamps = log.stamps_at_hand(span)
        time = time_of(self.storage.checkpoint(source.id), source.name, batch_id)
        evolving, writing = Evolving(self.engine, self.lease_token), EpochRows(self.storage)
        for rounds_left in reversed(range(MOST_ROUNDS)):
            memory.learn(source, self.catalog.versions)
            memory.learn_writers(source, self.catalog.writers)
            place = (span.start, span.end)
            plan = plan_epoch(source, memory, self.catalog.sinks(), batch_id, place, items, stamps)
            if rounds_left and evolving.follow(plan, log.outside(span)):
                source = self.engine.source(source.name)
                continue
            views = self._views(spark, source, time)
            faults.reach("epoch planned")
            # Rows that come quickly have no reason against them: one that needs a closer look spoils the way.
            is_spoiled = False
            for way in views.ways(memory.ways(batch_id)):
                if way not in memory.ways(batch_id):
                    continue
                quick = self._quick(spark, log, span, plan, way, views.fits)
                if quick is not None:
                    written = writing.quickly(plan, quick, views)
                    if not written.has_errors:
                        return self._commit(plan, None, written)
                    memory.look_closer(batch_id, than=way, only_long=quick.only_long())
                    is_spoiled = True
            if is_spoiled and rounds_left and self._meets_ids(spark, memory, plan, log, span):
                faults.reach("schema evolved")
                source = self.engine.source(source.name)
                continue
            decoded = log.decoded(spark, span, plan.table)
            decoded = replace(decoded, records=views.judged(decoded.records))
            written = writing.closely(plan, decoded.records, views)
            if not (written.has_errors or written.has_unknown):
                break
            if not rounds_left or not self._learns(memory, plan, decoded, evolving):
                break
            if written.segment is not None:
                self.storage.remove(written.segment)
            faults.reach("schema evolved")
            source = self.engine.source(source.name)
        return self._commit(plan, decoded.records, written)

    def _quick(
        self, spark: SparkSession, log: SourceLog, span: LogRange, plan: EpochPlan, way: Way, fits: str | None
    ) -> QuickRows | None:
        if way is Way.QUICK:
            return log.quick_rows(spark, span, plan.table, fits)
        return log.chunked_rows(spark, span, plan.table, are_short=way is Way.SHORT) if fits is None else None

    def make_ready(self, spark: SparkSession, source: SourceRecord) -> None:
        """Plan ahead what the next epoch of a source will need when its definition has changed."""
        # An epoch under way has perhaps met the schema id that changed it, and plans for itself.
        if not (is_framed(source.options) and self._locks[source.id].locked()):
            self._make_ready(spark, source)

    def _make_ready(self, spark: SparkSession, source: SourceRecord) -> None:
        memory = self._memories[source.id]
        if changelog_of(source.options) != APPEND or (is_framed(source.options) and memory.writers is None):
            return
        # Whoever asks has a session for other things, too.
        spark = beside(spark)
        settle_epochs(spark)
        log = open_log(source, str(self.storage.home))
        last = self.catalog.last_batch(source.id)
        first = log.item(log.initial() if last is None else last.end_offsets)
        table = memory.ahead(source, self.catalog.versions(source.id), range(first, first + 1))
        log.make_ready(spark, table, None if last is None else LogRange(last.start_offsets, last.end_offsets))

    def follow_subject(self, spark: SparkSession, source: SourceRecord) -> None:
        """Take the newest schema of a source's subject as the first record that has it would be taken."""
        found = latest(source.options, source.name)
        with self.between_epochs(source.id):
            present = self.catalog.source(source.name)
            if present is None or present.id != source.id:
                return
            memory = self._memories[source.id]
            if all(writer.schema_id != found.schema_id for writer in self.catalog.writers(source.id)):
                Writers(self.catalog, self.engine, self.lease_token).meet(source.name, found.schema_id)
                present = self.engine.source(source.name)
                memory.meet_writer(present, found.schema_id)
                memory.learn(present, self.catalog.versions)
                memory.learn_writers(present, self.catalog.writers)
                self._make_ready(spark, present)

    def replay(self, spark: SparkSession, source_name: str) -> Replayed:
        """Put every waiting dead letter of a source through again, in one epoch of its own: all or none."""
        # The session that is given is the user's.
        spark = beside(spark)
        settle_epochs(spark)
        source = self.engine.source(source_name)
        with self.between_epochs(source.id):
            dead = self.catalog.dead_letter_epochs(source.id)
            if not dead:
                return Replayed(0, 0)
            letters = dead_letter_records(spark, self.storage, dead).drop("reason")
            if has_writers(source.options):
                self.writers.ask_again(source, letters)
                self._memories[source.id].writers = None
                source = self.engine.source(source.name)
            versions, sinks = self.catalog.versions(source.id), self.catalog.sinks()
            writers = self.catalog.writers(source.id)
            plan = plan_replay(source, versions, sinks, dead, self.catalog.last_epoch(), writers)
            # Without kept plans: only in the batch of a stream do their tasks have the settings of the session.
            views = replace(self._views(spark, source, microseconds_of(self.clock())), plans=None)
            again = open_log(source, str(self.storage.home)).decoded_again(letters, plan.table)
            decoded = views.judged(again.records)
            written = EpochRows(self.storage).closely(plan, decoded, views)
            number = self._commit(plan, decoded, written)
            # One letter may stand for a whole file, so this is not what is left of those that were taken.
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
        """The views that the epoch takes along, as they are now."""
        runner = ViewRunner(self.catalog, self.storage)
        states = runner.live(source)
        table = source_table_state(self.catalog, self.storage, source) if keeps_table(source) else None
        place = runner.place(spark, time) if states or table is not None else None
        weights = weights_of(source, self.catalog.versions(source.id)) if is_retract(source) else None
        schema = spark_schema(source.schema)
        future = future_limit(source)
        return EpochViews(runner, spark, source.name, states, place, table, weights, future, self._plans, schema)

    def _learns(self, memory: SourceMemory, plan: EpochPlan, decoded: Decoded, evolving: Evolving) -> bool:
        """Whether something is known by now, or in force, that was not when the epoch was planned."""
        if plan.table.writers is not None:
            return self.writers.meet_in(memory, plan.source, decoded)
        if brings_schemas(plan.source.options) and self.writers.meet_heads(memory, plan, decoded):
            return True
        return self._meets_versions(memory, plan, decoded) or evolving.evolve(plan, decoded)

    def _meets_ids(
        self, spark: SparkSession, memory: SourceMemory, plan: EpochPlan, log: SourceLog, span: LogRange
    ) -> bool:
        """Whether records came too quickly only because nobody knew their schema ids, which are known by now.

        It is asked of their first bytes: to decode them with what is known would take as long as the epoch itself.
        """
        if plan.table.writers is None or not isinstance(log, NumberedLog):
            return False
        read = partial(log.read, spark, span)
        found = self._schema_ids.found(spark, read, log.planned(spark, span))
        strangers = found - {writer.schema_id for writer in plan.table.writers}
        is_new = not strangers.issubset(writer.schema_id for writer in memory.writers or ())
        is_met = self.writers.meet(memory, plan.source, strangers, lambda: count_of(read, strangers))
        if is_met and is_new:
            memory.keep_to(found)
        return is_met

    def _meets_versions(self, memory: SourceMemory, plan: EpochPlan, decoded: Decoded) -> bool:
        """Whether records were refused only because the table lacks their versions: then the epoch runs again."""
        if VERSION not in decoded.records.columns:
            return False
        known = [decoder.version for decoder in plan.table.decoders]
        is_known = F.col(VERSION).between(1, plan.source.version)
        strangers = decoded.records.where(F.col(ERROR).isNotNull() & is_known & ~F.col(VERSION).isin(known))
        return memory.meet(row[VERSION] for row in strangers.select(VERSION).distinct().collect())

    def _commit(self, plan: EpochPlan, decoded: DataFrame | None, written: Written) -> int:
        dead_segment, dead = None, 0
        if decoded is not None and written.has_errors:
            dead_segment, dead = self._write_dead_letters(plan, decoded)
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
        )
        updates = [*plan.positions, update, *written.views.updates]
        committed = self.catalog.commit(updates, lease_token=self.lease_token)
        faults.reach("epoch committed")
        return committed.ids[len(plan.positions)]

    def _write_dead_letters(self, plan: EpochPlan, decoded: DataFrame) -> tuple[str, int]:
        """A second, small job, only for epochs that have some."""
        source = plan.source
        refused = decoded.where(F.col(ERROR).isNotNull()).select(*RAW_COLUMNS, F.col(ERROR).alias("reason"))
        refused = with_exact_reasons(refused, plan.table)
        if option(source.options, "on_error") == "fail":
            first = refused.select("reason", "partition", "offset").first()
            where = f"{first['partition']} at {first['offset']}" if first else "the epoch"
            reason = first["reason"] if first else ""
            raise RecordRefused(source=source.name, place=where, reason=reason)
        segment = self.storage.new_segment(source.id, "dead_letters")
        refused.write.mode("errorifexists").parquet(self.storage.path(segment))
        faults.reach("dead letters written")
        count = self.storage.rows(segment)
        limit = int(option(source.options, "dead_letter_limit") or 0)
        others = (epoch for epoch in self.catalog.dead_letter_epochs(source.id) if epoch.epoch not in plan.replays)
        waiting = sum(epoch.dead_letters for epoch in others)
        if waiting + count > limit:
            raise DeadLetterLimit(source=source.name, count=waiting + count, limit=limit)
        return segment, count
