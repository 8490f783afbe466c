"""Metrics of a running pipeline for a callback: laminae's counts of each epoch, and Spark's StreamingQueryProgress.

Spark reports 0 input rows for every epoch, because laminae reads the rows with a separate plan. Only laminae's counts
are correct.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


@dataclass(frozen=True, slots=True)
class EpochCommitted:
    """A committed, durable epoch. `seconds` is the duration of its body, from planning to commit."""

    source: str
    epoch: int
    batch_id: int
    version: int
    rows: int
    dead_letters: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SparkProgress:
    """Spark's StreamingQueryProgress of a source's query, as parsed JSON."""

    source: str
    progress: Mapping[str, object]


Metric = EpochCommitted | SparkProgress
OnMetric: TypeAlias = Callable[[Metric], None]


def told(on_metric: OnMetric | None, metric: Metric) -> None:
    """Pass a metric to the callback. A failing callback must not stop the pipeline, so its exception is logged."""
    if on_metric is None:
        return
    try:
        on_metric(metric)
    except Exception:
        logging.getLogger("laminae").exception("the metrics callback failed on %s", metric)


class ProgressListener(StreamingQueryListener):
    """Forwards the progress events of the queries of one pipeline."""

    def __init__(self, on_metric: OnMetric, source_of: Callable[[str], str | None]) -> None:
        self._on_metric = on_metric
        self._source_of = source_of

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's names
        """Nothing is measured yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        source = self._source_of(str(event.progress.runId))
        if source is not None:
            told(self._on_metric, SparkProgress(source, json.loads(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing has happened."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The pipeline itself reports how a query ended."""


def listening(spark: SparkSession, on_metric: OnMetric, source_of: Callable[[str], str | None]) -> ProgressListener:
    listener = ProgressListener(on_metric, source_of)
    spark.streams.addListener(listener)
    return listener
