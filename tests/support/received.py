"""What a topic of a real broker holds, as a reader of a sink sees it."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

PARTITIONS = 2
ANSWER_SECONDS = 60.0


def make_topic(address: str, name: str) -> None:
    # Held until it has answered: a client that is collected gives up what it was asked.
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(ANSWER_SECONDS)


def received(address: str, topic: str) -> list[Message]:
    """Every message of the topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": str(uuid4()), "enable.auto.commit": False})
    found = []
    try:
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, ANSWER_SECONDS)
            consumer.assign([place])
            # Messages that were given up leave no gap here: nothing is written in transactions.
            for _ in range(end):
                message = consumer.poll(ANSWER_SECONDS)
                assert message is not None
                assert message.error() is None
                found.append(message)
    finally:
        consumer.close()
    return found


def ends(address: str, prefix: str) -> dict[tuple[str, int], int]:
    """How many messages each partition of the topics with a prefix has been sent.

    Asked for all at once: one by one takes a third of a second each.
    """
    admin = AdminClient({"bootstrap.servers": address})
    known = admin.list_topics(timeout=ANSWER_SECONDS).topics
    topics = sorted(name for name in known if name.startswith(prefix))
    places = [TopicPartition(topic, partition) for topic in topics for partition in known[topic].partitions]
    asked = admin.list_offsets({place: OffsetSpec.latest() for place in places})  # type: ignore[no-untyped-call]  # without types
    return {(place.topic, place.partition): answer.result().offset for place, answer in asked.items()}


def name_of(message: Message) -> tuple[str, ...]:
    """What the headers say: sink, epoch, sequence."""
    headers = dict(message.headers() or ())
    return tuple(_text(headers[f"laminae.{name}"]) for name in ("sink", "epoch", "sequence"))


def _text(header: str | bytes | None) -> str:
    assert isinstance(header, bytes), header
    return header.decode()


def once(messages: Iterable[Message]) -> list[Message]:
    """Each message as it came first; one that came again under its name must be the same."""
    seen: dict[tuple[str, ...], tuple[bytes | None, bytes | None]] = {}
    found = []
    for message in messages:
        name, pair = name_of(message), (message.key(), message.value())
        if name not in seen:
            found.append(message)
        assert seen.setdefault(name, pair) == pair, name
    return found


def by_key(messages: Iterable[Message], key: str = "customer") -> dict[object, list[object]]:
    """The JSON values of each key, None for a tombstone, in their order."""
    found: dict[object, list[object]] = defaultdict(list)
    for message in messages:
        message_key, value = message.key(), message.value()
        assert message_key is not None
        found[json.loads(message_key)[key]].append(None if value is None else json.loads(value))
    return dict(found)


def table(messages: Iterable[Message], key: str = "customer") -> dict[object, object]:
    """What a reader that keeps the last row of each key has at the end."""
    return {each: values[-1] for each, values in by_key(messages, key).items() if values[-1] is not None}
