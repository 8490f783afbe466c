"""A log as a Spark stream: offsets alone, `{"item": n}` with items 0 to n - 1 before it. Its rows are never read.

Spark runs the reader in a Python process of its own, one for each query; it must not depend on the driver's state.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from laminae.errors import SourceUnavailable
from laminae.spark.logs.tails import open_tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.spark.logs.tails import Settings, Tail

FORMAT = "laminae_log"
LIMIT = "max_files_per_epoch"
Offset = dict[str, int]


class LogSource(DataSource):
    """Its options are the settings of a log."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "item BIGINT"

    def streamReader(self, schema: StructType) -> LogReader:  # noqa: N802  # Spark's name
        if "python_streaming_source_runner" in sys.argv[0]:
            # Ctrl-C on a terminal reaches this process too, and would fail the query before its epoch has ended.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        settings = dict(self.options)
        return LogReader(open_tail(settings), int(settings[LIMIT]) if LIMIT in settings else None)


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says how far the log goes, at most `limit` items further than the epoch before."""

    def __init__(self, tail: Tail, limit: int | None) -> None:
        self._tail = tail
        self._limit = limit
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name, as those below
        return {"item": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._limit is None else ReadMaxFiles(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fails when the source cannot be read: a run over what is there must not pass for a complete one."""
        self._target = self._tail.items(0)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        seen = start["item"]
        items = self._items_or_wait(seen) if self._target is None else self._items_up_to(self._target, seen)
        if isinstance(limit, ReadMaxFiles):
            items = min(items, seen + limit.max_files)
        return {"item": items}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter(())

    def stop(self) -> None:
        """End this process at once when Spark has hung up, as it does to stop a query.

        Its runner (4.2.0) would write that as an error to the closed connection: two tracebacks on the terminal.
        """
        if sys.exc_info()[0] is EOFError:
            os._exit(0)

    def _items_up_to(self, target: int, seen: int) -> int:
        return target if target >= seen else self._tail.items(seen)

    def _items_or_wait(self, seen: int) -> int:
        try:
            return self._tail.items(seen)
        except SourceUnavailable:
            # An error would end the query. It waits, and the driver's own look at the log shows the reason.
            return seen


def log_stream(spark: SparkSession, settings: Settings) -> DataFrame:
    spark.dataSource.register(LogSource)
    return spark.readStream.format(FORMAT).options(**settings).load()
