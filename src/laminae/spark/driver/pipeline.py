"""A running home: one streaming query per source, one lease, a watch thread that follows definitions and feeds sinks.

Sources, views and sinks may be created and dropped while it runs. `stop` lets running epochs finish.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from laminae.catalog.model import QueryStatus
from laminae.catalog.updates import SetSourceProblem
from laminae.errors import CatalogUnavailable, LaminaeError, LeaseLost, PipelineFailed
from laminae.spark.catalyst.jvm import jvm_pid
from laminae.spark.catalyst.spark_errors import SPARK_ERRORS, JvmCallError, JvmConnectionError
from laminae.spark.driver.changelog_compaction import Compactor, Merger
from laminae.spark.driver.lease import HeldLease, identity, is_alive, take_lease
from laminae.spark.driver.registry_poller import RegistryPoller
from laminae.spark.driver.source_query import SourceStatus, SourceStream
from laminae.spark.epoch.metrics import OnMetric, ProgressListener, listening
from laminae.spark.epoch.offsets import refuse_divergence
from laminae.spark.epoch.runner import EpochRunner, Replayed
from laminae.spark.sinks.feeder import SinkFeeder
from laminae.spark.sources.registry import open_source
from laminae.spark.views.backfill import Backfiller
from laminae.spark.views.timers import TimerRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.epochs.epoch_plan import SourceCache
    from laminae.spark.driver.storage import Storage

LOG = logging.getLogger(__name__)
WATCH_SECONDS = 0.2
DYING_SECONDS, DYING_LOOK_SECONDS = 5.0, 0.02
TELL_SECONDS = 1.0


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Pipeline:
    """Created by `db.start()`. Every epoch reads the catalog again, so DDL takes effect between two epochs.

    `interval` is the processing-time trigger; without it the sources process what is available now, then end.
    """

    spark: SparkSession
    catalog: Catalog
    engine: Engine
    storage: Storage
    interval: str | None
    on_metric: OnMetric | None = None
    _jvm: str | None = None
    _listener: ProgressListener | None = None
    _lease: HeldLease = field(init=False)
    _runner: EpochRunner = field(init=False)
    _outlets: SinkFeeder = field(init=False)
    _advancer: Backfiller = field(init=False)
    _ticker: TimerRunner = field(init=False)
    _compactor: Compactor = field(init=False)
    _polling: RegistryPoller = field(default_factory=RegistryPoller)
    _streams: dict[int, SourceStream] = field(default_factory=dict)
    _problem: LaminaeError | None = None
    _told: dict[int, str | None] = field(default_factory=dict)
    _next_telling: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _watch: threading.Thread | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def hold(self) -> Pipeline:
        """Acquire the lease and set up the components, without starting any source."""
        jvm = jvm_pid(self.spark)
        self._jvm = None if jvm is None else identity(jvm)
        self._lease = take_lease(self.catalog, jvm, now)
        token, began = self._lease.token, now()
        self._runner = EpochRunner(self.catalog, self.engine, self.storage, token, now, self.on_metric, began)
        self._advancer = Backfiller(self.catalog, self.storage, self._runner.between_epochs, now, self._lease.token)
        self._ticker = TimerRunner(self.catalog, self.storage, self._runner.between_epochs, now, token, began)
        self._outlets = SinkFeeder(self.catalog, self.storage, self._runner.between_epochs, now, self._lease.token)
        self._compactor = Compactor(Merger(self.catalog, self.storage, now, token))
        return self

    def start(self) -> Pipeline:
        """Start every source. If one cannot start, `status()` shows its problem and the others run."""
        self.hold()
        try:
            with self._telling_of_a_dead_jvm():
                if self.on_metric is not None:
                    self._listener = listening(self.spark, self.on_metric, self._source_of)
                # A view that becomes live before the first epoch is maintained incrementally from that epoch on.
                self._advancer.pump(self.spark)
                self._outlets.place_new()
                self._follow_definitions()
        except BaseException:
            self.stop()
            raise
        self._watch = threading.Thread(target=self._watch_home, name="laminae-watch", daemon=True)
        self._watch.start()
        return self

    def process_all_available(self) -> None:
        """Return when everything available now is committed and delivered. Raises the error that stopped a source."""
        with self._telling_of_a_dead_jvm():
            self._follow_definitions()
            self._advancer.pump(self.spark)
            for stream in self._running():
                stream.process_all_available()
            self._release_held()
            # Deliver what the other sources have committed, even if one of them was stopped by an error.
            self._advancer.pump(self.spark)
            self._ticker.pump(self.spark, is_all_read=True)
            self._outlets.pump(self.spark)
            self._compactor.pump()
            self.raise_problems()

    def await_termination(self) -> None:
        """Return when every source has ended (a bounded run), or raise the error that stopped one."""
        with self._telling_of_a_dead_jvm():
            for stream in self._running():
                stream.await_termination()
            self._release_held()
            # Deliver what the other sources have committed, even if one of them was stopped by an error.
            self._advancer.pump(self.spark)
            self._ticker.pump(self.spark, is_all_read=True, ending=True)
            self._outlets.pump(self.spark)
            self._compactor.pump()
            self.raise_problems()

    def source_cache(self, source_id: int) -> SourceCache:
        return self._runner.cache_of(source_id)

    def make_ready(self) -> None:
        """Plan the next epochs of sources whose schema has changed ahead of time, so that the epochs need not wait."""
        for source in self.catalog.sources():
            with self._lock:
                stream = self._streams.get(source.id)
                if stream is None or stream.planned == source.version or not stream.is_active:
                    continue
                stream.planned = source.version
            try:
                self._runner.make_ready(self.spark, source)
            except Exception as problem:  # noqa: BLE001
                # Planning ahead only saves time: the epoch that needs the plan reports the same error.
                LOG.info("the next epoch of %s is not planned ahead: %s", source.name, problem)

    def replay(self, source: str) -> Replayed:
        """Replay the dead letters of a source, after a fix."""
        with self._telling_of_a_dead_jvm():
            done = self._runner.replay(self.spark, source)
            self._outlets.pump(self.spark)
            return done

    def status(self) -> tuple[SourceStatus, ...]:
        with self._telling_of_a_dead_jvm():
            return tuple(self._status(source) for source in self.catalog.sources())

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set() or self._ended() is not None

    def is_running(self) -> bool:
        """Whether work can still happen: a source runs or waits for a retry, or there is no source yet."""
        if self._ended() is not None:
            return False
        streams = self._running()
        with self._telling_of_a_dead_jvm():
            return not streams or any(stream.is_active or stream.is_retried for stream in streams)

    def stop(self) -> None:
        """Let running epochs finish, stop the queries, and release the lease even if stopping them fails."""
        self._stop.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        try:
            if self._dead_jvm() is None:
                self._next_telling = 0.0
                # If the catalog cannot be written, the same error stopped the sources and is raised from there.
                with suppress(LaminaeError):
                    self._tell_problems()
            self._stop_queries(orderly=True)
            if self._listener is not None:
                self.spark.streams.removeListener(self._listener)
        finally:
            self._lease.release()

    def raise_problems(self) -> None:
        """Raise the error that stopped the pipeline or a source, if any."""
        problem = self._ended() or next(filter(None, (stream.failure() for stream in self._running())), None)
        if problem is not None:
            raise problem

    def _source_of(self, run_id: str) -> str | None:
        """The source whose query has this run id; None if the query is not ours."""
        return next((stream.source.name for stream in self._running() if stream.run_id == run_id), None)

    def _running(self) -> list[SourceStream]:
        with self._lock:
            return list(self._streams.values())

    def _ended(self) -> LaminaeError | None:
        """The error that ended the pipeline as a whole, if any."""
        lost = self._lease.lost if isinstance(self._lease.lost, LeaseLost) else None
        return self._dead_jvm() or lost or self._problem

    def _dead_jvm(self) -> LaminaeError | None:
        """An error if Spark's JVM has ended. Without it, calls into a killed JVM only fail with socket errors."""
        if self._jvm is None or is_alive(self._jvm):
            return None
        process = self._jvm.partition("@")[0]
        return PipelineFailed(source="every source", problem=f"Spark's JVM, process {process}, has ended")

    @contextmanager
    def _telling_of_a_dead_jvm(self) -> Iterator[None]:
        try:
            yield
        except (JvmCallError, OSError) as problem:
            gone = self._dead_jvm()
            if gone is None and isinstance(problem, (JvmConnectionError, ConnectionError)):
                gone = self._dying_jvm()
            if gone is None:
                raise
            raise gone from problem

    def _dying_jvm(self) -> LaminaeError | None:
        """Wait for the JVM to end: a killed process closes its sockets shortly before it disappears."""
        deadline = time.monotonic() + DYING_SECONDS
        while (gone := self._dead_jvm()) is None and time.monotonic() < deadline:
            time.sleep(DYING_LOOK_SECONDS)
        return gone

    def _stop_queries(self, orderly: bool) -> None:
        for stream in self._running() if self._dead_jvm() is None else ():
            if orderly:
                # Stopping a query cancels the Spark job of a running epoch, so let it finish and block new ones.
                self._runner.close(stream.source.id)
            stream.stop()

    def _watch_home(self) -> None:
        seen = -1
        while not self._stop.wait(WATCH_SECONDS):
            try:
                seen = self._look_around(seen)
            except CatalogUnavailable as problem:
                # Retried in the next round. Commits of epochs fail with the same error and stop their source.
                self._problem = problem
            except (LaminaeError, *SPARK_ERRORS, OSError) as problem:
                # Nothing is delivered any more: `is_running` returns False, and `raise_problems` raises the reason.
                self._problem = PipelineFailed(source="every source", problem=str(problem))
                return
            else:
                self._problem = None
            if isinstance(self._lease.lost, LeaseLost):
                self._stop_queries(orderly=False)
                return

    def _look_around(self, seen: int) -> int:
        """One round of the watch thread: apply new definitions, restart sources that are due, run timers, deliver.

        Returns the `definition_seq` that was applied.
        """
        seq = self.catalog.definition_seq()
        if seq != seen:
            self._follow_definitions()
            self.make_ready()
            self._advancer.pump(self.spark)
        for stream in self._running():
            if self.interval is not None and stream.is_due(now()):
                self._launch(stream)
        self._release_held()
        self._follow_subjects()
        self._ticker.pump(self.spark)
        self._outlets.pump(self.spark)
        self._compactor.pump()
        self._tell_problems()
        return seq

    def _release_held(self) -> None:
        """Replay records that waited for a registry that is reachable again, or for a change that was confirmed."""
        for source in self.catalog.sources():
            if (stream := self._streams.get(source.id)) is None:
                continue
            try:
                if self._runner.can_release(source):
                    self._runner.replay(self.spark, source.name)
            except (CatalogUnavailable, LeaseLost):
                raise
            except LaminaeError as problem:
                # The dead letters are unchanged, and the streams continue.
                stream.held = problem
            else:
                stream.held = self._runner.writers.problem(source.id)

    def _follow_subjects(self) -> None:
        """Poll the schema registry for sources with `registry_poll`. A failed poll never stops a source."""
        for source in self.catalog.sources():
            stream = self._streams.get(source.id)
            if stream is None or not stream.is_active or not self._polling.is_due(source):
                continue
            try:
                self._runner.follow_subject(self.spark, source)
            except (CatalogUnavailable, LeaseLost):
                raise
            except LaminaeError as problem:
                stream.unasked = problem
            else:
                stream.unasked = None

    def _tell_problems(self) -> None:
        """Record in the catalog what keeps a source from running, or that it runs again, for readers of the catalog."""
        if time.monotonic() < self._next_telling:
            return
        self._next_telling = time.monotonic() + TELL_SECONDS
        for stream in self._running():
            problem = stream.problem_now()
            if problem != self._told.get(stream.source.id, stream.source.problem):
                self.catalog.commit([SetSourceProblem(stream.source.id, problem)])
                self._told[stream.source.id] = problem

    def _follow_definitions(self) -> None:
        """Start sources that were created, stop those that were dropped."""
        with self._lock:
            live = {source.id: source for source in self.catalog.sources()}
            for source_id in self._streams.keys() - live.keys():
                self._streams.pop(source_id).stop()
            for source_id, source in live.items():
                if source_id not in self._streams:
                    # Not planned ahead: the first epoch follows at once if there is data, and plans itself.
                    self._streams[source_id] = SourceStream(source, planned=source.version)
                    self._launch(self._streams[source_id])

    def _launch(self, stream: SourceStream) -> None:
        """Start its query, or record in `stream.problem` why that is impossible."""
        stream.problem, stream.due = None, None
        source, checkpoint = stream.source, self.storage.checkpoint(stream.source.id)
        try:
            stream.log = open_source(source, str(self.storage.home)).source
            refuse_divergence(checkpoint, source.name, self.catalog.last_batch(source.id))
        except CatalogUnavailable:
            raise
        except LaminaeError as problem:
            stream.problem = problem
            return
        # Unique among all homes of the session: Spark refuses a second query with the same name.
        name = f"laminae-{source.name}-{uuid.uuid4().hex[:8]}"
        try:
            writer: DataStreamWriter = stream.log.stream(self.spark, stream.stopped_by).writeStream.queryName(name)
            writer = writer.option("checkpointLocation", checkpoint).foreachBatch(self._body(stream))
            when = {"availableNow": True} if self.interval is None else {"processingTime": self.interval}
            stream.query = writer.trigger(**when).start()
        except PySparkException as problem:
            # Only this source fails; the others start.
            stream.problem = PipelineFailed(source=source.name, problem=str(problem).partition("\n")[0])

    def _body(self, stream: SourceStream):  # type: ignore[no-untyped-def]  # pyspark types foreachBatch loosely
        def epoch(batch: DataFrame, batch_id: int) -> None:
            try:
                self._runner.run(batch.sparkSession, stream.source.name, stream.source.id, batch_id)
            except LaminaeError as problem:
                if self._is_dropped(stream.source):
                    return
                stream.problem = problem
                raise

        return epoch

    def _is_dropped(self, source: SourceRecord) -> bool:
        present = self.catalog.source(source.name)
        return present is None or present.id != source.id

    def _status(self, source: SourceRecord) -> SourceStatus:
        totals = self.catalog.epoch_totals(source.id)
        stream, problem = self._streams.get(source.id), self._ended()
        if problem is not None:
            return SourceStatus(source.name, QueryStatus.FAILED, source.version, *totals, None, str(problem))
        if stream is None:
            return SourceStatus(source.name, QueryStatus.STOPPED, source.version, *totals, None, None)
        return stream.status(source, totals)
