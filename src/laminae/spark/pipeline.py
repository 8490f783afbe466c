"""A running home: one streaming query per source, sources and sinks that come and go, one lease, an orderly stop."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from laminae.errors import LaminaeError, PipelineFailed
from laminae.spark.epoch import EpochRunner, Replayed
from laminae.spark.lease import HeldLease, take_lease
from laminae.spark.logs import open_log
from laminae.spark.outlets import Outlets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from laminae.catalog.model import SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.spark.storage import Storage

WATCH_SECONDS = 0.2


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source as `status()` shows it. `run_id` is Spark's own: it changes when a query is started again."""

    source: str
    state: str
    version: int
    epochs: int
    rows: int
    dead_letters: int
    run_id: str | None
    problem: str | None


@dataclass(slots=True)
class _Stream:
    source: SourceRecord
    query: StreamingQuery
    problem: LaminaeError | None = None


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
    _lease: HeldLease = field(init=False)
    _runner: EpochRunner = field(init=False)
    _outlets: Outlets = field(init=False)
    _streams: dict[int, _Stream] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _watch: threading.Thread | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def hold(self) -> Pipeline:
        """Take the lease and be ready, without starting any source."""
        self._lease = take_lease(self.catalog, jvm_pid(self.spark), now)
        self._runner = EpochRunner(self.catalog, self.engine, self.storage, self._lease.token, now)
        self._outlets = Outlets(self.catalog, self.storage, self._runner.between_epochs, now)
        return self

    def start(self) -> Pipeline:
        self.hold()
        try:
            self._follow_definitions()
        except BaseException:
            self.stop()
            raise
        self._watch = threading.Thread(target=self._watch_definitions, name="laminae-watch", daemon=True)
        self._watch.start()
        return self

    def process_all_available(self) -> None:
        """Return when everything that is there now has been committed and delivered. Raises what stopped a source."""
        self._follow_definitions()
        for stream in self._running():
            # What stopped a query is raised below, in our words.
            with suppress(StreamingQueryException):
                stream.query.processAllAvailable()
        self.raise_problems()
        self._outlets.pump(self.spark)

    def await_termination(self) -> None:
        """Return when every source has come to its end (a bounded run), or raise what stopped one."""
        for stream in self._running():
            with suppress(StreamingQueryException):
                stream.query.awaitTermination()
        self.raise_problems()
        self._outlets.pump(self.spark)

    def replay(self, source: str) -> Replayed:
        """Put the dead letters of a source through again, after a fix."""
        done = self._runner.replay(self.spark, source)
        self._outlets.pump(self.spark)
        return done

    def status(self) -> tuple[SourceStatus, ...]:
        return tuple(self._status(source) for source in self.catalog.sources())

    def is_running(self) -> bool:
        return any(stream.query.isActive for stream in self._running()) or not self._running()

    def stop(self) -> None:
        """Let the epochs under way end, then give the lease back."""
        self._stop.set()
        if self._watch is not None and self._watch is not threading.current_thread():
            self._watch.join()
        for stream in self._running():
            stream.query.stop()
        self._lease.release()

    def _running(self) -> list[_Stream]:
        with self._lock:
            return list(self._streams.values())

    def _watch_definitions(self) -> None:
        seen = -1
        while not self._stop.wait(WATCH_SECONDS):
            seq = self.catalog.definition_seq()
            if seq != seen:
                self._follow_definitions()
                seen = seq
            self._outlets.pump(self.spark)

    def _follow_definitions(self) -> None:
        """Start what was created, stop what was dropped."""
        with self._lock:
            live = {source.id: source for source in self.catalog.sources()}
            for source_id in self._streams.keys() - live.keys():
                self._streams.pop(source_id).query.stop()
            for source_id, source in live.items():
                if source_id not in self._streams:
                    self._streams[source_id] = _Stream(source, self._start(source))

    def _start(self, source: SourceRecord) -> StreamingQuery:
        log = open_log(source, str(self.storage.home))
        writer: DataStreamWriter = log.stream(self.spark).writeStream.queryName(f"laminae-{source.name}-{source.id}")
        writer = writer.option("checkpointLocation", self.storage.checkpoint(source.id))
        writer = writer.foreachBatch(self._body(source))
        if self.interval is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.interval).start()

    def _body(self, source: SourceRecord):  # type: ignore[no-untyped-def]  # pyspark types foreachBatch loosely
        def epoch(batch: DataFrame, batch_id: int) -> None:
            try:
                self._runner.run(batch.sparkSession, source.name, source.id, batch_id)
            except LaminaeError as problem:
                self._streams[source.id].problem = problem
                raise

        return epoch

    def raise_problems(self) -> None:
        """Raise what stopped a source, if anything did."""
        for stream in self._running():
            if stream.problem is not None:
                raise stream.problem
            failure = stream.query.exception()
            if failure is not None:
                raise PipelineFailed(source=stream.source.name, problem=str(failure)) from failure

    def _status(self, source: SourceRecord) -> SourceStatus:
        stream = self._streams.get(source.id)
        totals = self.catalog.epoch_totals(source.id)
        failure = stream.query.exception() if stream is not None else None
        problem = str(stream.problem or failure or "") if stream is not None else ""
        state = (
            "stopped" if stream is None else "failed" if problem else "running" if stream.query.isActive else "ended"
        )
        run_id = str(stream.query.runId) if stream is not None else None
        return SourceStatus(
            source.name, state, source.version, totals.epochs, totals.rows, totals.dead_letters, run_id, problem or None
        )


def jvm_pid(spark: SparkSession) -> int | None:
    """The process id of the driver's JVM; None under Spark Connect, which has none here."""
    jvm = getattr(spark, "_jvm", None)
    return None if jvm is None else int(jvm.java.lang.ProcessHandle.current().pid())
