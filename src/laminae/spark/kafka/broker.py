"""What Kafka is asked by the driver: where a topic begins and how far it goes. Spark's own Kafka stream asks it.

So security, patterns of topics and starting offsets are those of Spark's connector. No record passes here.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from laminae.errors import InvalidOption, NotAvailable, SourceUnavailable
from laminae.secrets import masked
from laminae.spark.java import java_class, scala_object
from laminae.spark.kafka.jars import KAFKA, require
from laminae.spark.kafka.settings import PREFIX, client_settings, servers
from laminae.spark.kafka.slices import SliceList, nested, parsed
from laminae.spark.logs.head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from laminae.catalog.model import Options
    from laminae.spark.kafka.slices import Offsets

PACKAGE = "org.apache.spark.sql.kafka010"
EARLIEST, LATEST = "earliest", "latest"
# The driver asks again in a moment: a broker that is away must not hold it for the minutes that Kafka's client waits.
PATIENCE = {
    "kafka.default.api.timeout.ms": "5000",
    "kafka.request.timeout.ms": "5000",
    "fetchoffset.numretries": "1",
    "fetchoffset.retryintervalms": "100",
}


class SparkBroker:
    """`laminae.spark.kafka.slices.Broker` by way of the JVM. Threads take turns. `settings` are those of the log."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self._source = settings["source"]
        self._lock = threading.Lock()
        self._stream: Any = None
        self._gateway: object = None

    def beginning(self) -> Offsets:
        return self._asked(lambda stream: str(stream.initialOffset().json()))

    def ends(self, known: Offsets) -> Offsets:
        text = json.dumps(nested(known))

        def ask(stream: Any) -> str:
            limits = java_class(self._jvm(), "org.apache.spark.sql.connector.read.streaming.ReadLimit")
            return str(stream.latestOffset(stream.deserializeOffset(text), limits.allAvailable()).json())

        return self._asked(ask)

    def starts(self) -> Offsets:
        def ask(stream: Any) -> str:
            found = stream.kafkaOffsetReader().fetchEarliestOffsets()
            texts = scala_object(self._jvm(), f"{PACKAGE}.JsonUtils")
            return str(texts.partitionOffsets(found))

        return self._asked(ask)

    def close(self) -> None:
        with self._lock:
            if self._stream is not None and self._gateway is gateway():
                self._stream.stop()
            self._stream = None

    def _asked(self, ask: Callable[[Any], str]) -> Offsets:
        with self._lock:
            try:
                return parsed(ask(self._opened()))
            except (Py4JJavaError, PySparkException) as problem:
                # Made anew for the next question: what was refused may have been a secret that was changed since.
                self._stream = None
                told = _said_by_kafka(problem)
                if told is None:
                    raise
                raise SourceUnavailable(
                    source=self._source, location=f"Kafka at {servers(of_client(self.settings))}", problem=masked(told)
                ) from None

    def _opened(self) -> Any:
        if self._stream is None or self._gateway is not gateway():
            self._stream, self._gateway = self._made(), gateway()
        return self._stream

    def _made(self) -> Any:
        spark = SparkSession.getActiveSession()
        jvm = self._jvm()
        if spark is not None:
            require(spark, f"source {self._source}", KAFKA)
            # The stream writes down where it begins with the session of its thread, and a thread of py4j has none.
            session: Any = getattr(spark, "_jsparkSession")  # noqa: B009  # it is not part of the typed session
            java_class(jvm, "org.apache.spark.sql.classic.SparkSession").setActiveSession(session)
        scan = opened_scan(jvm, {**PATIENCE, **self._given()})
        # Where it writes down its beginning, which the first slice keeps as well.
        return scan.toMicroBatchStream(f"{self.settings['directory']}/beginning")

    def _given(self) -> dict[str, str]:
        return {
            **client_settings(of_client(self.settings), self._source),
            **topics(self.settings, self._source),
            **beginning(self.settings.get("start", EARLIEST), self._source),
        }

    def _jvm(self) -> Any:
        known = gateway()
        if known is None:
            raise NotAvailable(
                feature=f"Asking Kafka about {self._source}", problem="Spark does not run", advice="Start it first."
            )
        return known.jvm


def topics(settings: Mapping[str, str], owner: str) -> dict[str, str]:
    """The topics of a source as Spark's connector takes them."""
    given = [name for name in ("topic", "topic_pattern") if name in settings]
    if len(given) != 1:
        problem = "there is a topic_pattern, too" if given else "it is missing"
        raise InvalidOption(option="topic", owner=owner, problem=problem, advice="Give topic, or topic_pattern.")
    return {"subscribe" if given[0] == "topic" else "subscribePattern": settings[given[0]]}


def beginning(start: str, owner: str) -> dict[str, str]:
    """Where reading begins, as Spark's connector takes it: a word, offsets by partition, or a moment."""
    if start in (EARLIEST, LATEST):
        return {"startingOffsets": start}
    if start.isdigit():
        # Without a record since then a partition is read from its end, as there may be one at any moment.
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
    """The one that this log has asked before: a connection is kept from epoch to epoch."""
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


def opened_scan(jvm: Any, options: Mapping[str, str]) -> Any:
    """A scan of Spark's Kafka connector, without looking the connector up by its name."""
    given = java_class(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap")(dict(options))
    table = java_class(jvm, f"{PACKAGE}.KafkaSourceProvider")().getTable(given)
    return table.newScanBuilder(given).build()


def of_client(settings: Mapping[str, str]) -> Options:
    """Those settings of a log that are for Kafka's client."""
    return tuple((name, value) for name, value in settings.items() if name.startswith(PREFIX))


def gateway() -> Any:
    """The way into the JVM; another one when Spark was started anew."""
    return SparkContext._gateway


def _said_by_kafka(problem: Exception) -> str | None:
    """What Kafka's client complained of, None when something else did."""
    cause: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    while cause is not None:
        name = str(cause.getClass().getName())
        # A stream that is stopped interrupts the question, which nobody waits for any more.
        if name.startswith("org.apache.kafka.") or name == "java.lang.InterruptedException":
            return f"{name.rpartition('.')[2]}: {cause.getMessage()}"
        cause = cause.getCause()
    return None
