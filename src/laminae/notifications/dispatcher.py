"""Delivers notices on its own threads, so that no statement and no epoch waits for a receiver.

Failed deliveries are retried for some minutes, then logged and counted. Notices are in memory only: a killed process
loses those it has not delivered. The history of a source has every change in any case.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from laminae.net.backoff import Retry
from laminae.notifications.webhook import NotDelivered, Webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord
    from laminae.notifications.model import SchemaNotice

    OnChange = Callable[[SchemaNotice], None]

LOG = logging.getLogger("laminae")
RETRY = Retry(attempts=10, first=0.5, longest=60.0, budget=300.0)
# Schemas do not change that often; beyond this limit the receiver has been down for long.
MOST_WAITING = 1_000
CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NoticeCounts:
    """Counts of this process: delivered, given up, and waiting."""

    sent: int
    failed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Delivery:
    notice: SchemaNotice
    send: OnChange


class Dispatcher:
    """`callback` receives the notices of every source; a source with the option `on_change` also has a webhook."""

    def __init__(self, callback: OnChange | None = None, retry: Retry = RETRY) -> None:
        self._callback = callback
        self._retry = retry
        self._lock = threading.Lock()
        self._routes: dict[int | None, _Route] = {}
        self._last: dict[int, SchemaNotice] = {}

    def dispatch(self, source: SourceRecord, notice: SchemaNotice) -> None:
        """Queue a notice and return at once. A notice that repeats the last one of its source is skipped."""
        webhook = Webhook.of_options(source.options, source.name)
        with self._lock:
            if notice.says_the_same(self._last.get(source.id)):
                return
            self._last[source.id] = notice
            if self._callback is not None:
                self._route(None).put(_Delivery(notice, self._callback))
            if webhook is not None:
                # A webhook that does not respond delays only the notices of its own source.
                self._route(source.id).put(_Delivery(notice, lambda notice: webhook.post(notice.to_json())))

    def counts(self) -> NoticeCounts:
        with self._lock:
            counts = [route.counts() for route in self._routes.values()]
        return NoticeCounts(*(sum(getattr(count, name) for count in counts) for name in ("sent", "failed", "waiting")))

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Wait a moment for deliveries in flight; give up the rest."""
        end = time.monotonic() + seconds
        with self._lock:
            routes = list(self._routes.values())
        for route in routes:
            route.close(max(0.0, end - time.monotonic()))

    def _route(self, key: int | None) -> _Route:
        return self._routes.setdefault(key, _Route(self._retry))


@dataclass(slots=True)
class _Route:
    """A queue of notices for one receiver, delivered in order. Its thread runs only while the queue is not empty."""

    retry: Retry
    _queue: deque[_Delivery] = field(default_factory=deque)
    _sent: int = 0
    _failed: int = 0
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        # Closing interrupts the wait between two attempts.
        self.retry = replace(self.retry, sleep=self._wait)

    def put(self, delivery: _Delivery) -> None:
        with self._lock:
            if len(self._queue) >= MOST_WAITING:
                self._give_up(delivery, f"{MOST_WAITING} other notices are waiting")
                return
            self._queue.append(delivery)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="laminae-notices", daemon=True)
                self._thread.start()

    def counts(self) -> NoticeCounts:
        with self._lock:
            return NoticeCounts(self._sent, self._failed, len(self._queue))

    def close(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        self._closed.set()
        with self._lock:
            for delivery in self._queue:
                self._give_up(delivery, "the process ended")
            self._queue.clear()

    def _wait(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._thread = None
                    return
                delivery = self._queue[0]
            problem = self._attempts(delivery)
            with self._lock:
                # `close` has given it up and counted it meanwhile.
                if not self._queue:
                    self._thread = None
                    return
                self._queue.popleft()
                if problem is None:
                    self._sent += 1
                else:
                    self._give_up(delivery, problem)

    def _attempts(self, delivery: _Delivery) -> str | None:
        """None if it was delivered, else why it failed in the end."""
        problem = "it was not sent"
        for attempt in self.retry.rounds():
            if self._closed.is_set():
                break
            try:
                delivery.send(delivery.notice)
            except NotDelivered as refusal:
                problem = str(refusal)
                if refusal.is_final:
                    break
                attempt.wait_at_least = refusal.retry_after
            except Exception as error:  # noqa: BLE001  # a receiver must not stop the sender; it is logged
                problem = f"{type(error).__name__}: {error}"
            else:
                return None
        return problem

    def _give_up(self, delivery: _Delivery, problem: str) -> None:
        self._failed += 1
        notice = delivery.notice
        LOG.error(
            "the notice of a change that was %s for source %s (version %s) could not be delivered: %s",
            notice.outcome,
            notice.source,
            notice.version,
            problem,
        )
