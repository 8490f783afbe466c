"""The base class of all sources: numbered items, offsets as `{"item": n}`, one streaming reader."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.spark.catalyst.streaming.micro_batch_stream import offset_text
from laminae.spark.formats.protocol import RAW_COLUMNS, RAW_SCHEMA
from laminae.spark.sources.latest_offset import log_at
from laminae.spark.sources.log_head import log_directory
from laminae.spark.sources.micro_batch_stream import LogOffsets, log_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.errors import LaminaeError
    from laminae.spark.formats.fast_path import Planned
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.formats.protocol import RecordFormat
    from laminae.spark.sources.files.listing import FileEntry
    from laminae.spark.sources.latest_offset import Settings, Tail
    from laminae.spark.sources.protocol import LogRange, OnProblem, Outside, ReopenedFiles

LIMIT = "max_files_per_epoch"
# With more items in one epoch, Spark lists and opens so many files that the next schema change has to wait for it.
DEFAULT_LIMIT = "1000"


class NumberedSource(ABC):
    """`laminae.spark.sources.protocol.Source` with numbered items; each connector implements `read`.

    `tail` tells how many items there are.
    """

    def __init__(self, settings: Settings, tail: Tail) -> None:
        self._settings = settings
        self._directory = log_at(settings)
        self._tail = tail

    def initial(self) -> str:
        return offset_text(0)

    def latest(self) -> str:
        return offset_text(self._tail.items(0))

    def problem(self) -> LaminaeError | None:
        return None

    def item(self, offset: str) -> int:
        try:
            return int(json.loads(offset)["item"])
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{offset!r} is not an offset of this log, which are like {self.initial()}"
            raise self._directory.damaged(self._directory.path, problem) from error

    def at(self, item: int) -> str:
        return offset_text(item)

    def stamps_at_hand(self, span: LogRange) -> set[int]:
        return set()

    def outside(self, span: LogRange) -> Outside | None:
        return None

    def stream(self, spark: SparkSession, on_problem: OnProblem | None = None) -> DataFrame:
        return log_stream(spark, self.offsets(), on_problem)

    def offsets(self) -> LogOffsets:
        """The end offset of each epoch."""
        limit = self._settings.get(LIMIT)
        return LogOffsets(self._tail, None if limit is None else int(limit))

    @abstractmethod
    def read(
        self,
        spark: SparkSession,
        span: LogRange,
        columns: Sequence[str] = RAW_COLUMNS,
        boundaries: Collection[int] | None = None,
    ) -> DataFrame:
        """The raw records of a range, as in `Source.read`."""

    def files(self, span: LogRange) -> Sequence[FileEntry] | None:
        return None

    def file_paths(self, span: LogRange, columns: Sequence[str]) -> Sequence[str] | None:
        return None

    def planned(self, spark: SparkSession, span: LogRange) -> Planned:
        return lambda columns: None

    def broken(self, span: LogRange) -> tuple[tuple[int, str], ...]:
        return ()

    def broken_files(self, span: LogRange) -> Sequence[tuple[FileEntry, Refused]]:
        return ()

    def reopened(self, letters: DataFrame) -> ReopenedFiles | None:
        return None

    def own_format(self) -> RecordFormat | None:
        return None

    def _items(self, span: LogRange) -> range:
        return range(self.item(span.start), self.item(span.end))


def settings_of(source: SourceRecord, home: str, **own: str) -> Settings:
    """The settings of a source's log: those that every connector has, and its own."""
    spec = spec_of(source)
    limit = dict(spec.settings).get(LIMIT, DEFAULT_LIMIT)
    directory = log_directory(source.name, source.id, home)
    return {
        "connector": spec.connector.name,
        "source": source.name,
        "directory": directory.path,
        LIMIT: limit,
        **own,
    }


def no_records(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], RAW_SCHEMA)
