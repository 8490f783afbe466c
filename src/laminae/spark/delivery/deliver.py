"""Which connector delivers how: one table. A delivery is idempotent for each sink and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.options import SINK_OPTIONS, option
from laminae.errors import NotAvailable
from laminae.spark.delivery.console import deliver_console
from laminae.spark.delivery.files import deliver_files, take_back_files
from laminae.spark.delivery.kafka.deliver import deliver_kafka
from laminae.spark.delivery.postgres import begins_again, deliver_postgres, take_back_postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from laminae.catalog.model import SinkRecord
    from laminae.spark.delivery.segment import Segment


# Loaded late: they build upon modules of this package.
def _to_iceberg(segment: Segment, sink: SinkRecord) -> None:
    from laminae.spark.lake.iceberg_sink import deliver_iceberg

    deliver_iceberg(segment, sink)


def _back_in_iceberg(sink: SinkRecord, after: int) -> None:
    from laminae.spark.lake.iceberg_sink import take_back_iceberg

    take_back_iceberg(sink, after)


def _to_delta(segment: Segment, sink: SinkRecord) -> None:
    from laminae.spark.lake.delta_sink import deliver_delta

    deliver_delta(segment, sink)


def _back_in_delta(sink: SinkRecord, after: int) -> None:
    from laminae.spark.lake.delta_sink import take_back_delta

    take_back_delta(sink, after)


CONNECTORS: dict[str, Callable[[Segment, SinkRecord], None]] = {
    "files": deliver_files,
    "console": deliver_console,
    "postgres": deliver_postgres,
    "iceberg": _to_iceberg,
    "delta": _to_delta,
}
ON_SPARK: dict[str, Callable[[SparkSession, Segment, SinkRecord], None]] = {"kafka": deliver_kafka}
"""Connectors that write through Spark's own."""
# What was printed or sent cannot be taken back.
TAKE_BACK: dict[str, Callable[[SinkRecord, int], None]] = {
    "files": take_back_files,
    "postgres": take_back_postgres,
    "iceberg": _back_in_iceberg,
    "delta": _back_in_delta,
}
# Of these nothing is left when epochs are taken back, so they begin again with a snapshot.
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
                problem=f"sink {sink.name} cannot be delivered with it yet",
                advice=f"Use one of {', '.join((*CONNECTORS, *ON_SPARK))}.",
            )
        CONNECTORS[connector](segment, sink)

    def take_back(self, sink: SinkRecord, after: int) -> None:
        """Undo what was delivered of epochs after this one, where the connector can."""
        connector = option(sink.options, "connector", SINK_OPTIONS)
        if connector in TAKE_BACK:
            TAKE_BACK[connector](sink, after)

    def begins_again(self, sink: SinkRecord) -> bool:
        """Whether a sink that was taken back needs a snapshot of the epoch that it goes on from."""
        connector = option(sink.options, "connector", SINK_OPTIONS)
        return connector in BEGIN_AGAIN and BEGIN_AGAIN[connector](sink)
