"""Carries notices in threads of its own, so that no statement and no epoch ever waits for whoever is told.

What cannot be delivered is tried again for some minutes, then logged and counted. Notices are in memory: a process that
is killed takes along what it has not told yet. The history of a source has every change in any case.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from laminae.notices.webhook import NotTaken, Webhook
from laminae.registry.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord
    from laminae.notices.model import SchemaNotice

    OnChange = Callable[[SchemaNotice], None]

LOG = logging.getLogger("laminae")
RETRY = Retry(attempts=10, first=0.5, longest=60.0, budget=300.0)
# A schema does not change so often; beyond this somebody is away for long.
MOST_WAITING = 1_000
CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NoticeCounts:
    """Of this process: told, given up, and still to be told."""

    sent: int
    failed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Errand:
    notice: SchemaNotice
    send: OnChange


class Courier:
    """`callback` is told of every source; a source with the option `on_change` has its address told, too."""

    def __init__(self, callback: OnChange | None = None, retry: Retry = RETRY) -> None:
        self._callback = callback
        self._retry = retry
        self._lock = threading.Lock()
        self._routes: dict[int | None, _Route] = {}
        self._last: dict[int, SchemaNotice] = {}

    def hand_over(self, source: SourceRecord, notice: SchemaNotice) -> None:
        """Returns at once. What was told of the source a moment ago is not told again."""
        webhook = Webhook.of_options(source.options, source.name)
        with self._lock:
            if notice.says_the_same(self._last.get(source.id)):
                return
            self._last[source.id] = notice
            if self._callback is not None:
                self._route(None).put(_Errand(notice, self._callback))
            if webhook is not None:
                # One that does not answer keeps the notices of its own source waiting, and no others.
                self._route(source.id).put(_Errand(notice, lambda each: webhook.post(each.to_json())))

    def counts(self) -> NoticeCounts:
        with self._lock:
            found = [route.counts() for route in self._routes.values()]
        return NoticeCounts(*(sum(getattr(each, name) for each in found) for name in ("sent", "failed", "waiting")))

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Give what is under way a moment to arrive. What has not by then is given up."""
        end = time.monotonic() + seconds
        with self._lock:
            routes = list(self._routes.values())
        for route in routes:
            route.close(max(0.0, end - time.monotonic()))

    def _route(self, key: int | None) -> _Route:
        return self._routes.setdefault(key, _Route(self._retry))


@dataclass(slots=True)
class _Route:
    """Errands to one place, one after the other. Its thread ends when there is nothing to do, and begins again."""

    retry: Retry
    _errands: deque[_Errand] = field(default_factory=deque)
    _sent: int = 0
    _failed: int = 0
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        # A wait between two attempts ends when the process does.
        self.retry = replace(self.retry, sleep=self._wait)

    def put(self, errand: _Errand) -> None:
        with self._lock:
            if len(self._errands) >= MOST_WAITING:
                self._give_up(errand, f"{MOST_WAITING} others are waiting")
                return
            self._errands.append(errand)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="laminae-notices", daemon=True)
                self._thread.start()

    def counts(self) -> NoticeCounts:
        with self._lock:
            return NoticeCounts(self._sent, self._failed, len(self._errands))

    def close(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        self._closed.set()
        with self._lock:
            for errand in self._errands:
                self._give_up(errand, "the process ended")
            self._errands.clear()

    def _wait(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._errands:
                    self._thread = None
                    return
                errand = self._errands[0]
            problem = self._attempts(errand)
            with self._lock:
                # Given up meanwhile: it was counted there.
                if not self._errands:
                    self._thread = None
                    return
                self._errands.popleft()
                if problem is None:
                    self._sent += 1
                else:
                    self._give_up(errand, problem)

    def _attempts(self, errand: _Errand) -> str | None:
        """None when it was taken, else why it was not in the end."""
        problem = "it was not tried"
        for attempt in self.retry.rounds():
            if self._closed.is_set():
                break
            try:
                errand.send(errand.notice)
            except NotTaken as refusal:
                problem = str(refusal)
                if refusal.is_final:
                    break
                attempt.wait_at_least = refusal.retry_after
            except Exception as error:  # noqa: BLE001  # whoever is told must not stop what it is told of; it is logged
                problem = f"{type(error).__name__}: {error}"
            else:
                return None
        return problem

    def _give_up(self, errand: _Errand, problem: str) -> None:
        self._failed += 1
        notice = errand.notice
        told = (notice.outcome, notice.source, notice.version, problem)
        LOG.error("a change that was %s for source %s (version %s) could not be told: %s", *told)
