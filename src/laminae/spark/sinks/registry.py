"""The table of sink connectors and their delivery functions.

A delivery function is called again for the same sink and epoch after a crash. Connectors that can make this idempotent
do so; Kafka may send messages twice, with headers that identify duplicates, and the console prints them twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import NotAvailable
from laminae.spark.sinks.console import deliver_console
from laminae.spark.sinks.files import deliver_files, take_back_files
from laminae.spark.sinks.kafka.deliver import deliver_kafka
from laminae.spark.sinks.postgres import begins_again, deliver_postgres, take_back_postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.spark.sinks.segment import Segment


# Imported late: these modules import other modules of this package.
def _to_iceberg(segment: Segment, sink: SinkRecord) -> None:
    from laminae.spark.sinks.lakehouse.iceberg import deliver_iceberg

    deliver_iceberg(segment, sink)


def _back_in_iceberg(sink: SinkRecord, after: int) -> None:
    from laminae.spark.sinks.lakehouse.iceberg import take_back_iceberg

    take_back_iceberg(sink, after)


def _to_delta(segment: Segment, sink: SinkRecord) -> None:
    from laminae.spark.sinks.lakehouse.delta import deliver_delta

    deliver_delta(segment, sink)


def _back_in_delta(sink: SinkRecord, after: int) -> None:
    from laminae.spark.sinks.lakehouse.delta import take_back_delta

    take_back_delta(sink, after)


CONNECTORS: dict[str, Callable[[Segment, SinkRecord], None]] = {
    "files": deliver_files,
    "console": deliver_console,
    "postgres": deliver_postgres,
    "iceberg": _to_iceberg,
    "delta": _to_delta,
}
ON_SPARK: dict[str, Callable[[SparkSession, Segment, SinkRecord], None]] = {"kafka": deliver_kafka}
"""Connectors that write through Spark's own connector."""
# Console output and Kafka messages cannot be undone.
TAKE_BACK: dict[str, Callable[[SinkRecord, int], None]] = {
    "files": take_back_files,
    "postgres": take_back_postgres,
    "iceberg": _back_in_iceberg,
    "delta": _back_in_delta,
}
# A rewind empties these sinks, so they start again with a snapshot.
BEGIN_AGAIN: dict[str, Callable[[SinkRecord], bool]] = {"postgres": begins_again}


class Delivery:
    """Hands a committed segment to the sink's connector."""

    def deliver(self, spark: SparkSession, segment: Segment, sink: SinkRecord) -> None:
        connector = option(sink.options, "connector", SINK_OPTIONS)
        if connector in ON_SPARK:
            ON_SPARK[connector](spark, segment, sink)
            return
        if connector not in CONNECTORS:
            raise NotAvailable(
                feature=f"Connector {connector}" if connector else "A sink without a connector",
                problem=f"sink {sink.name} does not support it",
                advice=f"Use one of {', '.join((*CONNECTORS, *ON_SPARK))}.",
            )
        CONNECTORS[connector](segment, sink)

    def take_back(self, sink: SinkRecord, after: int) -> None:
        """Undo the delivery of epochs after this one, if the connector can."""
        connector = option(sink.options, "connector", SINK_OPTIONS)
        if connector in TAKE_BACK:
            TAKE_BACK[connector](sink, after)

    def begins_again(self, sink: SinkRecord) -> bool:
        """Whether a sink needs a snapshot after a rewind, of the epoch that it continues from."""
        connector = option(sink.options, "connector", SINK_OPTIONS)
        return connector in BEGIN_AGAIN and BEGIN_AGAIN[connector](sink)
