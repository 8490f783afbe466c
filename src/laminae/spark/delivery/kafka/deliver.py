"""One epoch into a topic, through Spark's own connector, in one task: so messages of one key keep their order.

An attempt that breaks off has sent some of them, and the next sends all: their headers say which was which.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

from laminae.engine.options import SINK_OPTIONS, option
from laminae.engine.sinks import AVRO, DEBEZIUM_JSON, format_of
from laminae.errors import SinkUnavailable
from laminae.secrets import masked
from laminae.spark.delivery.identity import identity_of
from laminae.spark.delivery.kafka.avro import avro_rows
from laminae.spark.delivery.kafka.messages import (
    HEADERS,
    KEY,
    SEQUENCE,
    VALUE,
    RowEncoders,
    event_table,
    json_rows,
    row_messages,
    with_headers,
)
from laminae.spark.kafka.jars import KAFKA, require
from laminae.spark.kafka.settings import client_settings, servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment

# Brokers that are away must not keep the other sinks waiting for the minutes that Kafka's client would take; and
# its own retries must not change the order.
CLIENT_DEFAULTS = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.max.block.ms": "10000",
    "kafka.request.timeout.ms": "10000",
    "kafka.delivery.timeout.ms": "30000",
}
JSON_ROWS = RowEncoders(json_rows, json_rows)
_CAUSE = re.compile(r"org\.apache\.kafka[\w.$]*\.(\w+(?:Exception|Error)): ([^\n]+)")


def deliver_kafka(spark: SparkSession, segment: Segment, sink: SinkRecord) -> None:
    require(spark, f"sink {sink.name}", KAFKA)
    settings = {**CLIENT_DEFAULTS, **client_settings(sink.options, sink.name)}
    messages = messages_of(segment, sink)
    if not messages.num_rows:
        return
    topic = option(sink.options, "topic", SINK_OPTIONS) or ""
    with _sending(sink, topic):
        frame = spark.createDataFrame(with_headers(messages, segment.epoch, identity_of(sink)))
        numbered = frame.coalesce(1).sortWithinPartitions(SEQUENCE).select(KEY, VALUE, HEADERS)
        numbered.write.format("kafka").options(**settings).option("topic", topic).save()


def messages_of(segment: Segment, sink: SinkRecord) -> pa.Table:
    kind = format_of(sink.options)
    if kind == DEBEZIUM_JSON:
        return event_table(segment, sink)
    shapes = [(shape, avro_rows(shape, sink) if kind == AVRO else JSON_ROWS) for shape in segment.shapes()]
    return pa.concat_tables([row_messages(shape, sink, encoders) for shape, encoders in shapes])


@contextmanager
def _sending(sink: SinkRecord, topic: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        causes = _CAUSE.findall(str(error))
        words = ": ".join(causes[0]) if causes else str(error).strip().partition("\n")[0]
        location = f"topic {topic} of {servers(sink.options)}"
        # Not chained: Spark's text is long, and holds the settings of the client.
        raise SinkUnavailable(sink=sink.name, location=location, problem=masked(words)) from None
