"""A producer that keeps sending while a test takes services and drivers away: each record once, whatever happens."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.topics import Topic

# About 200 records a second: enough that every epoch has some, and few enough for a machine that does other things.
PACE_SECONDS = 0.005
END_SECONDS = 120.0


@dataclass(slots=True)
class Load:
    """`record` makes the bytes of record 0, 1, 2, ...; they go to the partitions in turn.

    The producer is Kafka's idempotent one: a broker that is away is waited for, and has every record once.
    """

    topic: Topic
    record: Callable[[int], bytes]
    partitions: int = 1
    sent: int = 0
    problem: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Returns when the broker has all that was sent, which `sent` counts."""
        self._stop.set()
        self._thread.join(END_SECONDS)
        assert not self._thread.is_alive(), "the broker has not taken what was sent"
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": self.topic.address, "enable.idempotence": True, "linger.ms": 5}
        refused: list[object] = []
        try:
            # What it has to say about a broker that is away is no news to a test.
            producer = Producer({**settings, "log_level": 0})
            for number in itertools.count():
                producer.produce(
                    self.topic.name,
                    self.record(number),
                    partition=number % self.partitions,
                    on_delivery=lambda error, _: refused.append(error) if error else None,
                )
                producer.poll(0)
                self.sent = number + 1
                if self._stop.wait(PACE_SECONDS):
                    break
            left = producer.flush(END_SECONDS)
            assert not left, f"{left} messages were not taken"
            assert not refused, refused
        except BaseException as problem:  # noqa: BLE001  # raised again by whoever ends the load
            self.problem = problem
