"""Topics of a real broker in the hands of a test: made, written to, grown and cut off."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic with a name of its own: tests share the broker."""

    address: str
    name: str

    def send(
        self, values: Iterable[bytes | None], partition: int = 0, headers: Mapping[str, bytes] | None = None
    ) -> None:
        """Returns when the broker has them all."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5})
        refused: list[object] = []
        for value in values:
            producer.produce(
                self.name,
                value,
                partition=partition,
                headers=list((headers or {}).items()),
                on_delivery=lambda error, _: refused.append(error) if error else None,
            )
        left = producer.flush(ANSWER_SECONDS)
        assert not left, f"{left} messages were not taken"
        assert not refused, refused

    def send_rows(self, rows: Iterable[Mapping[str, object]], partition: int = 0, **headers: bytes) -> None:
        self.send((json.dumps(row).encode() for row in rows), partition, headers)

    def grow(self, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        _done(self.address, lambda admin: admin.create_partitions([NewPartitions(self.name, partitions)]).values())

    def forget_before(self, offset: int, partition: int = 0) -> None:
        """What retention does, at once."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self.name, partition, offset)
        _done(self.address, lambda admin: admin.delete_records([place]).values())


def new_topic(address: str, partitions: int = 1) -> Topic:
    from confluent_kafka.admin import NewTopic

    name = f"orders-{uuid4().hex[:8]}"
    _done(address, lambda admin: admin.create_topics([NewTopic(name, partitions, 1)]).values())
    return Topic(address, name)


def _done(address: str, ask: Callable[[AdminClient], Iterable[Future[object]]]) -> None:
    from confluent_kafka.admin import AdminClient

    # Kept until the answer is there: its requests end with it.
    admin = AdminClient({"bootstrap.servers": address})
    for answer in ask(admin):
        answer.result(ANSWER_SECONDS)
