"""Deliver one epoch to a topic with Spark's Kafka connector, in one task, so that messages of a key keep their order.

Delivery is at least once: an attempt that fails may have sent some messages, and the next attempt sends all of them.
The headers let consumers recognise the duplicates.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.definitions.sinks import AVRO, DEBEZIUM_JSON, format_of
from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import SinkUnavailable
from laminae.secrets import masked
from laminae.spark.catalyst.spark_errors import SPARK_ERRORS
from laminae.spark.sinks.identity import identity_of
from laminae.spark.sinks.kafka.avro import avro_rows
from laminae.spark.sinks.kafka.messages import (
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
from laminae.spark.sources.kafka.jars import KAFKA, require
from laminae.spark.sources.kafka.settings import client_settings, servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment

# Unreachable brokers must not block the other sinks for the minutes that the Kafka client waits by default, and the
# client's retries must not reorder messages.
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
    except SPARK_ERRORS as error:
        causes = _CAUSE.findall(str(error))
        words = ": ".join(causes[0]) if causes else str(error).strip().partition("\n")[0]
        location = f"topic {topic} of {servers(sink.options)}"
        # Not chained: Spark's error text is long and contains the client settings.
        raise SinkUnavailable(sink=sink.name, location=location, problem=masked(words)) from None
