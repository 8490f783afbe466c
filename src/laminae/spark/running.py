"""The stream of one source as the pipeline holds it: its query, or why there is none, and how `status()` shows it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from laminae.errors import LaminaeError, PipelineFailed, RegistryUnavailable, SourceUnavailable

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql.streaming.query import StreamingQuery

    from laminae.catalog.model import EpochTotals, SourceRecord
    from laminae.spark.contract import SourceLog

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(minutes=1)
# Spark gives a Python worker 10 seconds to start, however busy the machine is (4.2.0; there is no setting for it).
SLOW_START = "Python worker failed to connect back"


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
class SourceStream:
    """`problem` is what keeps it from running, in our words. A source that cannot be read is tried again at `due`.

    `planned` is the schema version that its epochs are planned for already. `held` is why some of its records wait
    while the others go on, `unasked` why its registry could not be asked for a newer schema: it goes on without.
    """

    source: SourceRecord
    planned: int = 0
    log: SourceLog | None = None
    query: StreamingQuery | None = None
    problem: LaminaeError | None = None
    due: datetime | None = None
    wait: timedelta = FIRST_WAIT
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
        """What stopped it, if anything did."""
        if self.problem is not None or self.query is None:
            return self.problem
        failure = self.query.exception()
        return None if failure is None else PipelineFailed(source=self.source.name, problem=str(failure))

    def process_all_available(self) -> None:
        # What stopped a query is raised by the pipeline, in our words.
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
        """Whether what stopped it may pass: something out of reach, or a machine too busy to start Python workers."""
        failure = self.failure()
        is_away = isinstance(failure, SourceUnavailable | RegistryUnavailable)
        return is_away or (failure is not None and SLOW_START in str(failure))

    def is_due(self, now: datetime) -> bool:
        """Whether to start it again: what stopped it may have passed, and it has waited long enough."""
        if self.is_active:
            # Once it has run for longer than it waited, what kept it from running is over.
            self.well_since = self.well_since or now
            if now - self.well_since >= self.wait:
                self.wait = FIRST_WAIT
            return False
        self.well_since = None
        if not self.is_retried:
            return False
        if self.due is None:
            self.due, self.wait = now + self.wait, min(LONGEST_WAIT, self.wait * 2)
        return now >= self.due

    def problem_now(self) -> str | None:
        """What keeps it from running or from reading, as text."""
        found = self.failure() or (self._waits_for() if self.is_active else None) or self.unasked
        return None if found is None else str(found)

    def status(self, source: SourceRecord, totals: EpochTotals) -> SourceStatus:
        """`source` as the catalog has it now."""
        failure = self.failure()
        waits_for = self._waits_for() if failure is None and self.is_active else None
        state = "failed" if failure else "waiting" if waits_for else "running" if self.is_active else "ended"
        run_id = None if self.query is None else str(self.query.runId)
        problem = failure or waits_for or self.unasked
        return SourceStatus(
            source.name, state, source.version, *totals, run_id, None if problem is None else str(problem)
        )

    def _waits_for(self) -> LaminaeError | None:
        """The stream's reader waits without a word for a source that is out of reach: this look gives the reason."""
        if self.held is not None:
            return self.held
        try:
            if self.log is not None:
                self.log.latest()
        except LaminaeError as problem:
            return problem
        return None
