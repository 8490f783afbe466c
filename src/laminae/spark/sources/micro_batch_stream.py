"""A log as a stream of offsets: where each epoch ends, as Spark asks for it. Epochs read the log themselves."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.errors import LaminaeError, SourceUnavailable
from laminae.spark.catalyst.streaming.micro_batch_stream import offset_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.sources.latest_offset import Tail
    from laminae.spark.sources.protocol import OnProblem


def log_stream(spark: SparkSession, offsets: LogOffsets, on_problem: OnProblem | None = None) -> DataFrame:
    """A streaming DataFrame whose micro-batches (epochs) end at these offsets."""
    return offset_stream(spark, ToldOffsets(offsets, on_problem))


class LogOffsets:
    """The end of each epoch: the end of the log, but at most `limit` items after the end of the previous epoch."""

    def __init__(self, tail: Tail, limit: int | None) -> None:
        self._tail = tail
        self._limit = limit
        self._target: int | None = None

    def fix_target(self) -> None:
        """Fix where an available-now run ends. Raises if the source cannot be read: the run must not look complete."""
        self._target = self._tail.items(0)

    def latest(self, seen: int) -> int:
        items = self._items_or_wait(seen) if self._target is None else self._items_up_to(self._target, seen)
        return items if self._limit is None else min(items, seen + self._limit)

    def _items_up_to(self, target: int, seen: int) -> int:
        return target if target >= seen else self._tail.items(seen)

    def _items_or_wait(self, seen: int) -> int:
        try:
            return self._tail.items(seen)
        except SourceUnavailable:
            # An error would end the query. The query waits instead; the driver's own check of the log reports why.
            return seen


@dataclass(frozen=True, slots=True)
class ToldOffsets:
    """`LogOffsets` that also passes the error that ends the stream to `on_problem`: Spark only has its traceback."""

    offsets: LogOffsets
    on_problem: OnProblem | None

    def fix_target(self) -> None:
        with self._telling():
            self.offsets.fix_target()

    def latest(self, seen: int) -> int:
        with self._telling():
            return self.offsets.latest(seen)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except LaminaeError as problem:
            if self.on_problem is not None:
                self.on_problem(problem)
            raise
