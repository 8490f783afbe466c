"""A running home: one streaming query per source, sources and sinks that come and go, one lease, an orderly stop."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from laminae.catalog.updates import SetSourceProblem
from laminae.errors import CatalogUnavailable, LaminaeError, LeaseLost, PipelineFailed
from laminae.spark.epoch import EpochRunner, Replayed
from laminae.spark.java import java_class
from laminae.spark.lease import HeldLease, identity, is_alive, take_lease
from laminae.spark.logs import open_log
from laminae.spark.metrics import OnMetric, ProgressListener, listening
from laminae.spark.offsets import refuse_divergence
from laminae.spark.outlets import Outlets
from laminae.spark.polling import Polling
from laminae.spark.running import SourceStatus, SourceStream
from laminae.spark.views.advance import Advancer
from laminae.spark.views.ticks import Ticker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.spark.storage import Storage

LOG = logging.getLogger(__name__)
WATCH_SECONDS = 0.2
DYING_SECONDS, DYING_LOOK_SECONDS = 5.0, 0.02
TELL_SECONDS = 1.0


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Pipeline:
    """Made by `db.start()`. Every epoch reads the catalog afresh, so DDL takes effect between two epochs.

    `interval` is the trigger; without one the sources process what is there now and end.
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
    _outlets: Outlets = field(init=False)
    _advancer: Advancer = field(init=False)
    _ticker: Ticker = field(init=False)
    _polling: Polling = field(default_factory=Polling)
    _streams: dict[int, SourceStream] = field(default_factory=dict)
    _problem: LaminaeError | None = None
    _told: dict[int, str | None] = field(default_factory=dict)
    _next_telling: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _watch: threading.Thread | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def hold(self) -> Pipeline:
        """Take the lease and be ready, without starting any source."""
        jvm = jvm_pid(self.spark)
        self._jvm = None if jvm is None else identity(jvm)
        self._lease = take_lease(self.catalog, jvm, now)
        self._runner = EpochRunner(self.catalog, self.engine, self.storage, self._lease.token, now, self.on_metric)
        self._advancer = Advancer(self.catalog, self.storage, self._runner.between_epochs, now, self._lease.token)
        self._ticker = Ticker(self.catalog, self.storage, self._runner.between_epochs, now, self._lease.token)
        self._outlets = Outlets(self.catalog, self.storage, self._runner.between_epochs, now, self._lease.token)
        return self

    def start(self) -> Pipeline:
        """What keeps one source from starting is its own problem, shown by `status()`; the others run."""
        self.hold()
        try:
            with self._telling_of_a_dead_jvm():
                if self.on_metric is not None:
                    self._listener = listening(self.spark, self.on_metric, self._source_of)
                # A view that can be live before the first epoch sees every epoch as it comes.
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
        """Return when everything that is there now has been committed and delivered. Raises what stopped a source."""
        with self._telling_of_a_dead_jvm():
            self._follow_definitions()
            self._advancer.pump(self.spark)
            for stream in self._running():
                stream.process_all_available()
            self._release_held()
            # What the others have committed is delivered, whatever stopped one of them.
            self._advancer.pump(self.spark)
            self._ticker.pump(self.spark)
            self._outlets.pump(self.spark)
            self.raise_problems()

    def await_termination(self) -> None:
        """Return when every source has come to its end (a bounded run), or raise what stopped one."""
        with self._telling_of_a_dead_jvm():
            for stream in self._running():
                stream.await_termination()
            self._release_held()
            # What the others have committed is delivered, whatever stopped one of them.
            self._advancer.pump(self.spark)
            self._ticker.pump(self.spark, ending=True)
            self._outlets.pump(self.spark)
            self.raise_problems()

    def make_ready(self) -> None:
        """Plan the next epochs of sources whose schema has changed, so that they need not wait for it."""
        for source in self.catalog.sources():
            with self._lock:
                stream = self._streams.get(source.id)
                if stream is None or stream.planned == source.version or not stream.is_active:
                    continue
                stream.planned = source.version
            try:
                self._runner.make_ready(self.spark, source)
            except Exception as problem:  # noqa: BLE001
                # It only saves time: the epoch that needs it meets the same problem, whatever it is, and says so.
                LOG.info("the next epoch of %s is not planned ahead: %s", source.name, problem)

    def replay(self, source: str) -> Replayed:
        """Put the dead letters of a source through again, after a fix."""
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
        """Whether anything can still happen: a source runs, waits to be tried again, or may yet be created."""
        if self._ended() is not None:
            return False
        streams = self._running()
        with self._telling_of_a_dead_jvm():
            return not streams or any(stream.is_active or stream.is_retried for stream in streams)

    def stop(self) -> None:
        """Let the epochs under way end, then give the lease back, whatever happens to the queries."""
        self._stop.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        try:
            if self._dead_jvm() is None:
                self._next_telling = 0.0
                # Where the catalog cannot be written, that is what stopped the sources, and is raised as such.
                with suppress(LaminaeError):
                    self._tell_problems()
            self._stop_queries(orderly=True)
            if self._listener is not None:
                self.spark.streams.removeListener(self._listener)
        finally:
            self._lease.release()

    def raise_problems(self) -> None:
        """Raise what stopped the pipeline or a source, if anything did."""
        problem = self._ended() or next(filter(None, (stream.failure() for stream in self._running())), None)
        if problem is not None:
            raise problem

    def _source_of(self, run_id: str) -> str | None:
        """The source of a query of ours."""
        return next((stream.source.name for stream in self._running() if stream.run_id == run_id), None)

    def _running(self) -> list[SourceStream]:
        with self._lock:
            return list(self._streams.values())

    def _ended(self) -> LaminaeError | None:
        """What ended the pipeline as a whole."""
        lost = self._lease.lost if isinstance(self._lease.lost, LeaseLost) else None
        return self._dead_jvm() or lost or self._problem

    def _dead_jvm(self) -> LaminaeError | None:
        """A JVM that was killed says nothing, and a call into it fails with words about sockets."""
        if self._jvm is None or is_alive(self._jvm):
            return None
        process = self._jvm.partition("@")[0]
        return PipelineFailed(source="every source", problem=f"Spark's JVM, process {process}, has ended")

    @contextmanager
    def _telling_of_a_dead_jvm(self) -> Iterator[None]:
        try:
            yield
        except (Py4JError, OSError) as problem:
            gone = self._dead_jvm()
            if gone is None and isinstance(problem, Py4JNetworkError | ConnectionError):
                gone = self._dying_jvm()
            if gone is None:
                raise
            raise gone from problem

    def _dying_jvm(self) -> LaminaeError | None:
        """A process that is killed closes its sockets some moments before it is gone."""
        deadline = time.monotonic() + DYING_SECONDS
        while (gone := self._dead_jvm()) is None and time.monotonic() < deadline:
            time.sleep(DYING_LOOK_SECONDS)
        return gone

    def _stop_queries(self, orderly: bool) -> None:
        for stream in self._running() if self._dead_jvm() is None else ():
            if orderly:
                # Spark would cancel the job of an epoch under way: it may end, and none begins after it.
                self._runner.close(stream.source.id)
            stream.stop()

    def _watch_home(self) -> None:
        seen = -1
        while not self._stop.wait(WATCH_SECONDS):
            try:
                seen = self._look_around(seen)
            except CatalogUnavailable as problem:
                # Looked at again in the next round; commits of epochs say it too, and stop their source.
                self._problem = problem
            except (LaminaeError, PySparkException, Py4JError, OSError) as problem:
                # Nothing is delivered any more: `is_running` says no, and `raise_problems` why.
                self._problem = PipelineFailed(source="every source", problem=str(problem))
                return
            else:
                self._problem = None
            if isinstance(self._lease.lost, LeaseLost):
                self._stop_queries(orderly=False)
                return

    def _look_around(self, seen: int) -> int:
        """Follow new definitions, try waiting sources again, deliver. Returns the definitions that were looked at."""
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
        self._tell_problems()
        return seq

    def _release_held(self) -> None:
        """Put records through that were held because a registry was away, where it answers again."""
        for source in self.catalog.sources():
            stream = self._streams.get(source.id)
            if stream is None:
                continue
            if self._runner.writers.can_release(source):
                self._runner.replay(self.spark, source.name)
            stream.held = self._runner.writers.problem(source.id)

    def _follow_subjects(self) -> None:
        """Ask registries for newer schemas where a source wants it. What comes of it never stops a source."""
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
        """Write down what keeps a source from running, and that nothing does any more, for whoever asks the catalog."""
        if time.monotonic() < self._next_telling:
            return
        self._next_telling = time.monotonic() + TELL_SECONDS
        for stream in self._running():
            problem = stream.problem_now()
            if problem != self._told.get(stream.source.id, stream.source.problem):
                self.catalog.commit([SetSourceProblem(stream.source.id, problem)])
                self._told[stream.source.id] = problem

    def _follow_definitions(self) -> None:
        """Start what was created, stop what was dropped."""
        with self._lock:
            live = {source.id: source for source in self.catalog.sources()}
            for source_id in self._streams.keys() - live.keys():
                self._streams.pop(source_id).stop()
            for source_id, source in live.items():
                if source_id not in self._streams:
                    # Its first epoch, which comes at once if there is anything to read, plans itself.
                    self._streams[source_id] = SourceStream(source, planned=source.version)
                    self._launch(self._streams[source_id])

    def _launch(self, stream: SourceStream) -> None:
        """Start its query, or note why it cannot be."""
        stream.problem, stream.due = None, None
        source, checkpoint = stream.source, self.storage.checkpoint(stream.source.id)
        try:
            stream.log = open_log(source, str(self.storage.home))
            refuse_divergence(checkpoint, source.name, self.catalog.last_batch(source.id))
        except CatalogUnavailable:
            raise
        except LaminaeError as problem:
            stream.problem = problem
            return
        # Unique among all homes of the session: Spark refuses a second query of one name.
        name = f"laminae-{source.name}-{uuid.uuid4().hex[:8]}"
        writer: DataStreamWriter = stream.log.stream(self.spark, stream.stopped_by).writeStream.queryName(name)
        writer = writer.option("checkpointLocation", checkpoint).foreachBatch(self._body(stream))
        when = {"availableNow": True} if self.interval is None else {"processingTime": self.interval}
        stream.query = writer.trigger(**when).start()

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
            return SourceStatus(source.name, "failed", source.version, *totals, None, str(problem))
        if stream is None:
            return SourceStatus(source.name, "stopped", source.version, *totals, None, None)
        return stream.status(source, totals)


def jvm_pid(spark: SparkSession) -> int | None:
    """The process id of the driver's JVM; None under Spark Connect, which has none here."""
    jvm = getattr(spark, "_jvm", None)
    return None if jvm is None else int(java_class(jvm, "java.lang.ProcessHandle").current().pid())
