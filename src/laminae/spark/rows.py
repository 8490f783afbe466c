"""Rows of an epoch as a frame that is there already, `laminae.spark.contract.Rows`, and what its tasks say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import AccumulatorParam, TaskContext

from laminae.spark.planned import PlannedFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.template import Template


@dataclass(frozen=True, slots=True)
class FrameRows:
    """A frame with an Observation in it is not bare: under another plan nobody would hear of what it has seen."""

    made: DataFrame
    is_bare: bool = False
    are_short: bool = False

    def frame(self) -> DataFrame:
        return self.made

    def under(self, template: Template) -> DataFrame:
        return template.over(self.made) if isinstance(self.made, PlannedFrame) else template.upon(self.made).frame


@dataclass(frozen=True, slots=True)
class WatchedRows(FrameRows):
    """Their tasks say themselves how many there are, and whether one needs a closer look."""

    refused: Callable[[], bool] = lambda: False
    only_long: Callable[[], bool] = lambda: False
    count: Callable[[], int] = lambda: 0


class _ByPartition(AccumulatorParam[dict[int, int]]):
    """What the tasks say, by partition: one that runs again says the same, as long as all jobs cut the rows alike."""

    def zero(self, value: dict[int, int]) -> dict[int, int]:
        return {}

    def addInPlace(self, value1: dict[int, int], value2: dict[int, int]) -> dict[int, int]:  # noqa: N802  # Spark's
        return {**value1, **value2}


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What tasks tell the driver of the rows that they make. Each of it stays true when a task runs twice."""

    _odd: Accumulator[int]
    _long: Accumulator[int]
    _counted: Accumulator[dict[int, int]]

    @classmethod
    def of(cls, spark: SparkSession) -> Watch:
        context = spark.sparkContext
        return cls(context.accumulator(0), context.accumulator(0), context.accumulator({}, _ByPartition()))

    def refuse(self, *, is_long: bool = False) -> None:
        """Said by a task that has met a record which needs a closer look, or is only too long."""
        (self._long if is_long else self._odd).add(1)

    def count(self, rows: int) -> None:
        """Said by a task at its end, of all its rows."""
        task = TaskContext.get()
        assert task is not None  # it runs in one
        self._counted.add({task.partitionId(): rows})

    def rows(self, made: DataFrame, is_bare: bool, are_short: bool = False) -> WatchedRows:
        odd, long, counted = self._odd, self._long, self._counted
        return WatchedRows(
            made,
            is_bare,
            are_short,
            refused=lambda: odd.value + long.value > 0,
            only_long=lambda: long.value > 0 and not odd.value,
            count=lambda: sum(counted.value.values()),
        )
