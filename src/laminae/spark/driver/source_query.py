"""The streaming query of one source: the query or why it does not run, its restart backoff, and its status."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from laminae.catalog.model import QueryStatus
from laminae.errors import LaminaeError, PipelineFailed, RegistryUnavailable, SourceUnavailable
from laminae.net.backoff import Backoff

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql.streaming.query import StreamingQuery

    from laminae.catalog.model import EpochTotals, SourceRecord
    from laminae.spark.sources.protocol import Source

# Without jitter: one driver restarts its own sources, and each reads from another place.
BACKOFF = Backoff(first=1.0, longest=60.0, jitter=0.0)
# Spark allows a Python worker 10 seconds to start, even on a busy machine (4.2.0; there is no setting for it).
SLOW_START = "Python worker failed to connect back"


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source as `status()` shows it. `run_id` is Spark's: it changes when a query is restarted."""

    source: str
    state: QueryStatus
    version: int
    epochs: int
    rows: int
    dead_letters: int
    run_id: str | None
    problem: str | None


@dataclass(slots=True)
class SourceStream:
    """`problem` is the error that keeps it from running. A source that cannot be read is restarted at `due`,
    after a backoff that grows with its `failures` in a row.

    `planned` is the schema version for which its epochs are already planned. `held` is why some of its records wait as
    dead letters while the others are processed, `unasked` why polling its registry for a newer schema failed, which
    does not stop the source.
    """

    source: SourceRecord
    planned: int = 0
    log: Source | None = None
    query: StreamingQuery | None = None
    problem: LaminaeError | None = None
    due: datetime | None = None
    failures: int = 0
    well_since: datetime | None = None
    held: LaminaeError | None = None
    unasked: LaminaeError | None = None

    @property
    def is_active(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    @property
    def run_id(self) -> str | None:
        return None if self.query is None else str(self.query.runId)

    def stopped_by(self, problem: LaminaeError) -> None:
        self.problem = problem

    def failure(self) -> LaminaeError | None:
        """The error that stopped it, if any."""
        if self.problem is not None or self.query is None:
            return self.problem
        failure = self.query.exception()
        return None if failure is None else PipelineFailed(source=self.source.name, problem=str(failure))

    def process_all_available(self) -> None:
        # The pipeline raises what stopped a query, as a `LaminaeError`.
        with suppress(StreamingQueryException):
            if self.query is not None:
                self.query.processAllAvailable()

    def await_termination(self) -> None:
        with suppress(StreamingQueryException):
            if self.query is not None:
                self.query.awaitTermination()

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    @property
    def is_retried(self) -> bool:
        """Whether the failure may be transient: source or registry unreachable, or Python workers too slow to start."""
        failure = self.failure()
        is_away = isinstance(failure, SourceUnavailable | RegistryUnavailable)
        return is_away or (failure is not None and SLOW_START in str(failure))

    def is_due(self, now: datetime) -> bool:
        """Whether to restart it: the failure may be transient, and the backoff has passed."""
        if self.is_active:
            # Once it has run for longer than the backoff, the failure is over: reset the backoff.
            self.well_since = self.well_since or now
            if now - self.well_since >= timedelta(seconds=BACKOFF.ceiling(self.failures + 1)):
                self.failures = 0
            return False
        self.well_since = None
        if not self.is_retried:
            return False
        if self.due is None:
            self.failures += 1
            self.due = now + timedelta(seconds=BACKOFF.wait(self.failures))
        return now >= self.due

    def problem_now(self) -> str | None:
        """What keeps it from running or from reading some of its data, as text."""
        problem = self.failure() or (self._waits_for() if self.is_active else None) or self.unasked or self._not_read()
        return None if problem is None else str(problem)

    def status(self, source: SourceRecord, totals: EpochTotals) -> SourceStatus:
        """The status for `status()`; `source` is the current catalog record."""
        failure = self.failure()
        waits_for = self._waits_for() if failure is None and self.is_active else None
        state = QueryStatus.RUNNING if self.is_active else QueryStatus.ENDED
        if failure is not None:
            state = QueryStatus.FAILED
        elif waits_for is not None:
            state = QueryStatus.WAITING
        run_id = None if self.query is None else str(self.query.runId)
        problem = failure or waits_for or self.unasked
        return SourceStatus(
            source.name, state, source.version, *totals, run_id, None if problem is None else str(problem)
        )

    def _not_read(self) -> LaminaeError | None:
        try:
            return None if self.log is None else self.log.problem()
        except (LaminaeError, OSError):
            # The query that reads the source fails with the same error and reports it.
            return None

    def _waits_for(self) -> LaminaeError | None:
        """Why it waits. Spark's stream reader waits silently for an unreachable source; reading the latest offset here
        gives the reason.
        """
        if self.held is not None:
            return self.held
        try:
            if self.log is not None:
                self.log.latest()
        except LaminaeError as problem:
            return problem
        return None
