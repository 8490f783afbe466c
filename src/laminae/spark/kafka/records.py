"""Records of exact offsets as a DataFrame, read as Spark's own Kafka stream reads a batch of its own.

So a consumer of a partition lives from epoch to epoch, with what it has fetched ahead. Spark's batch reader makes a new
one for each read, looks its connector up by name, asks the broker about offsets that are known, and makes an object of
every value of every record. This module takes Spark's own classes; nothing of them leaves it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.java import TO_SEQUENCES, java_class
from laminae.spark.kafka.broker import gateway, of_client, opened_scan, topics
from laminae.spark.kafka.jars import KAFKA, require
from laminae.spark.kafka.settings import client_settings
from laminae.spark.kafka.slices import nested

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.kafka.slices import Place, Span

# Spark asks a consumer for its place with every 500 records, as many as a poll gives unless told. A poll gives no more
# than was fetched, of which there is a limit in bytes.
AT_ONCE = {"kafka.max.poll.records": "5000"}


@dataclass(frozen=True, slots=True)
class _Opened:
    """A stream of Spark's and the columns of its records; `options` are what it was made with, secrets among them."""

    options: dict[str, str] = field(repr=False)
    gateway: object
    schema: Any
    stream: Any


class TopicRecords:
    """Of one log, whose settings these are. Threads take turns."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def frame(self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool, has_headers: bool) -> DataFrame:
        """Every span has records. Lost ones fail the job that reads them, unless they are to be skipped."""
        session: Any = getattr(spark, "_jsparkSession")  # noqa: B009  # it is not part of the typed session
        rows, schema = self._rows(spark, spans, skips_lost, has_headers)
        return ClassicDataFrame(session.internalCreateDataFrame(rows, schema, False), spark)

    def rows(self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool) -> object:
        """The RDD below such a frame without headers."""
        return self._rows(spark, spans, skips_lost, has_headers=False)[0]

    def _rows(
        self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool, has_headers: bool
    ) -> tuple[Any, Any]:
        session: Any = getattr(spark, "_jsparkSession")  # noqa: B009  # it is not part of the typed session
        with self._lock:
            if any(span.is_anew for span in spans.values()):
                # Another topic of this name: what was fetched ahead of the one before is none of its records.
                self._opened = None
            opened = self._opened = self._open(spark, skips_lost, has_headers)
            ends = (
                {place: span.start for place, span in spans.items()},
                {place: span.end for place, span in spans.items()},
            )
            begin, end = (opened.stream.deserializeOffset(json.dumps(nested(offsets))) for offsets in ends)
            partitions, factory = opened.stream.planInputPartitions(begin, end), opened.stream.createReaderFactory()
        jvm: Any = spark.sparkContext._jvm
        option, sequences = java_class(jvm, "scala.Option"), java_class(jvm, TO_SEQUENCES)
        each = sequences.toSeq([option.apply(partition) for partition in partitions])
        no_metrics = sequences.toScalaMap(java_class(jvm, "java.util.HashMap")())
        made = java_class(jvm, "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD")
        return made(session.sparkContext(), each, factory, False, no_metrics), opened.schema

    def _open(self, spark: SparkSession, skips_lost: bool, has_headers: bool) -> _Opened:
        """The one that is open, unless a secret has changed, or Spark was started anew."""
        owner = self.settings["source"]
        options = {
            **AT_ONCE,
            **client_settings(of_client(self.settings), owner),
            **topics(self.settings, owner),
            "includeHeaders": str(has_headers).lower(),
            "failOnDataLoss": str(not skips_lost).lower(),
        }
        known = self._opened
        if known is not None and known.gateway is gateway() and known.options == options:
            return known
        require(spark, f"source {owner}", KAFKA)
        scan = opened_scan(spark.sparkContext._jvm, options)
        # It is never asked where it begins, so it writes nothing there.
        stream = scan.toMicroBatchStream(f"{self.settings['directory']}/reading")
        return _Opened(options, gateway(), scan.readSchema(), stream)


_lock = threading.Lock()
_records: dict[str, TopicRecords] = {}


def records_of(settings: Mapping[str, str]) -> TopicRecords:
    """The one that this log was read with before: consumers are kept from epoch to epoch."""
    place = settings["directory"]
    with _lock:
        known = _records.get(place)
        if known is None or known.settings != settings:
            known = _records[place] = TopicRecords(settings)
        return known
