"""The records in an exact range of offsets as a DataFrame, read the way Spark's Kafka stream reads a micro-batch.

So the consumer of a partition and the records it has prefetched survive from epoch to epoch. Spark's batch reader
creates a new consumer for each read, looks the connector up by name, asks the broker for offsets that are already
known, and creates an object for every value of every record.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.spark.catalyst.streaming.kafka_stream import KafkaStream
from laminae.spark.sources.kafka.broker import of_client, topics
from laminae.spark.sources.kafka.jars import KAFKA, require
from laminae.spark.sources.kafka.settings import client_settings
from laminae.spark.sources.kafka.slices import nested

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.catalyst.streaming.kafka_stream import KafkaPartitions
    from laminae.spark.sources.kafka.slices import Place, Span

# Spark asks the consumer for its position after every poll, which returns 500 records by default. A poll returns no
# more than was fetched, and a fetch is limited in bytes, so memory stays bounded.
AT_ONCE = {"kafka.max.poll.records": "5000"}


@dataclass(frozen=True, slots=True)
class _Opened:
    """A Kafka stream of Spark; `options` created it and include resolved secrets."""

    options: dict[str, str] = field(repr=False)
    stream: KafkaStream


class TopicRecords:
    """Reads the records of the log that has these settings; thread-safe (one lock)."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def frame(self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool, has_headers: bool) -> DataFrame:
        """The records of these spans, each of which has some. A lost record fails the job, unless `skips_lost`."""
        return self._planned(spark, spans, skips_lost, has_headers).frame(spark)

    def rows(self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool) -> object:
        """The RDD under such a frame, without headers."""
        return self._planned(spark, spans, skips_lost, has_headers=False).rows(spark)

    def _planned(
        self, spark: SparkSession, spans: Mapping[Place, Span], skips_lost: bool, has_headers: bool
    ) -> KafkaPartitions:
        with self._lock:
            if any(span.is_anew for span in spans.values()):
                # The topic was recreated under the same name: prefetched records belong to the old topic.
                self._opened = None
            opened = self._opened = self._open(spark, skips_lost, has_headers)
            ends = (
                {place: span.start for place, span in spans.items()},
                {place: span.end for place, span in spans.items()},
            )
            return opened.stream.plan(*(json.dumps(nested(offsets)) for offsets in ends))

    def _open(self, spark: SparkSession, skips_lost: bool, has_headers: bool) -> _Opened:
        """The open stream, or a new one if a secret (or another option) has changed or Spark was restarted."""
        owner = self.settings["source"]
        options = {
            **AT_ONCE,
            **client_settings(of_client(self.settings), owner),
            **topics(self.settings, owner),
            "includeHeaders": str(has_headers).lower(),
            "failOnDataLoss": str(not skips_lost).lower(),
        }
        known = self._opened
        if known is not None and known.stream.is_usable and known.options == options:
            return known
        require(spark, f"source {owner}", KAFKA)
        # Its initial offset is never requested, so it writes nothing to this metadata path.
        return _Opened(options, KafkaStream(options, f"{self.settings['directory']}/reading"))


_lock = threading.Lock()
_records: dict[str, TopicRecords] = {}


def records_of(settings: Mapping[str, str]) -> TopicRecords:
    """The cached reader of this log, so that consumers survive from epoch to epoch."""
    place = settings["directory"]
    with _lock:
        known = _records.get(place)
        if known is None or known.settings != settings:
            known = _records[place] = TopicRecords(settings)
        return known
