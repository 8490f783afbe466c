"""The driver's offset queries to Kafka: the beginning and the end offsets of a topic, through Spark's own Kafka stream.

So security, topic patterns and starting offsets behave as in Spark's connector. This module reads no records.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from laminae.errors import InvalidOption, NotAvailable, SourceUnavailable
from laminae.secrets import masked
from laminae.spark.catalyst.jvm import gateway
from laminae.spark.catalyst.spark_errors import RAISED_BY_SPARK
from laminae.spark.catalyst.streaming.kafka_stream import KafkaStream, kafka_error
from laminae.spark.sources.kafka.jars import KAFKA, require
from laminae.spark.sources.kafka.settings import PREFIX, client_settings, servers
from laminae.spark.sources.kafka.slices import SliceList, nested, parsed
from laminae.spark.sources.log_head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from laminae.catalog.model import Options
    from laminae.spark.sources.kafka.slices import Offsets

EARLIEST, LATEST = "earliest", "latest"
# The driver retries soon anyway: an unreachable broker must not block it for the minutes that Kafka's client waits.
PATIENCE = {
    "kafka.default.api.timeout.ms": "5000",
    "kafka.request.timeout.ms": "5000",
    "fetchoffset.numretries": "1",
    "fetchoffset.retryintervalms": "100",
}


class SparkBroker:
    """`sources.kafka.slices.Broker` through the JVM; thread-safe (one lock). `settings` are those of the log."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self._source = settings["source"]
        self._lock = threading.Lock()
        self._stream: KafkaStream | None = None

    def beginning(self) -> Offsets:
        return self._asked(KafkaStream.initial_offsets)

    def ends(self, known: Offsets) -> Offsets:
        text = json.dumps(nested(known))
        return self._asked(lambda stream: stream.latest_offsets(text))

    def starts(self) -> Offsets:
        return self._asked(KafkaStream.earliest_offsets)

    def close(self) -> None:
        with self._lock:
            if self._stream is not None and self._stream.is_usable:
                self._stream.stop()
            self._stream = None

    def _asked(self, ask: Callable[[KafkaStream], str]) -> Offsets:
        with self._lock:
            try:
                return parsed(ask(self._opened()))
            except RAISED_BY_SPARK as problem:
                # The next request opens a new stream: a rejected secret may have been rotated by then.
                self._stream = None
                reason = kafka_error(problem)
                if reason is None:
                    raise
                raise SourceUnavailable(
                    source=self._source,
                    location=f"Kafka at {servers(of_client(self.settings))}",
                    problem=masked(reason),
                ) from None

    def _opened(self) -> KafkaStream:
        if self._stream is None or not self._stream.is_usable:
            self._stream = self._made()
        return self._stream

    def _made(self) -> KafkaStream:
        if gateway() is None:
            raise NotAvailable(
                feature=f"Asking Kafka about {self._source}", problem="Spark does not run", advice="Start it first."
            )
        spark = SparkSession.getActiveSession()
        if spark is not None:
            require(spark, f"source {self._source}", KAFKA)
        # The metadata path in which the stream stores its initial offsets; the first slice records them as well.
        return KafkaStream({**PATIENCE, **self._given()}, f"{self.settings['directory']}/beginning")

    def _given(self) -> dict[str, str]:
        return {
            **client_settings(of_client(self.settings), self._source),
            **topics(self.settings, self._source),
            **beginning(self.settings.get("start", EARLIEST), self._source),
        }


def topics(settings: Mapping[str, str], owner: str) -> dict[str, str]:
    """The topics of a source as Spark's connector takes them."""
    names = [name for name in ("topic", "topic_pattern") if name in settings]
    if len(names) != 1:
        problem = "topic_pattern is set as well" if names else "it is missing"
        raise InvalidOption(option="topic", owner=owner, problem=problem, advice="Set either topic or topic_pattern.")
    return {"subscribe" if names[0] == "topic" else "subscribePattern": settings[names[0]]}


def beginning(start: str, owner: str) -> dict[str, str]:
    """The starting position as options of Spark's connector: earliest or latest, offsets by partition, or a time."""
    if start in (EARLIEST, LATEST):
        return {"startingOffsets": start}
    if start.isdigit():
        # A partition without a record since that time is read from its end, as one may arrive at any moment.
        return {"startingTimestamp": start, "startingOffsetsByTimestampStrategy": "latest"}
    try:
        parsed(start)
    except (ValueError, AttributeError, TypeError):
        advice = 'Give earliest, latest, milliseconds since 1970, or offsets such as {"orders": {"0": 5}}.'
        raise InvalidOption(option="start", owner=owner, problem=f"{start!r} does not fit", advice=advice) from None
    return {"startingOffsets": start}


_lock = threading.Lock()
_brokers: dict[str, SparkBroker] = {}


def broker_of(settings: Mapping[str, str]) -> SparkBroker:
    """The cached broker of this log, so that a connection survives from epoch to epoch."""
    place = settings["directory"]
    with _lock:
        known = _brokers.get(place)
        if known is None or known.settings != settings:
            if known is not None:
                known.close()
            known = _brokers[place] = SparkBroker(settings)
        return known


def slice_list(settings: Mapping[str, str]) -> SliceList:
    limit = settings.get("max_records_per_epoch")
    directory = LogDirectory(settings["source"], settings["directory"])
    return SliceList(directory, broker_of(settings), None if limit is None else int(limit))


def of_client(settings: Mapping[str, str]) -> Options:
    """The settings of a log that are meant for Kafka's client."""
    return tuple((name, value) for name, value in settings.items() if name.startswith(PREFIX))
