"""`formats.protocol.Rows` over an existing DataFrame, and accumulators in which its tasks report on their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import AccumulatorParam, TaskContext

from laminae.spark.catalyst.plans.prepared_frame import PreparedFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.catalyst.plans.plan_template import Template


@dataclass(frozen=True, slots=True)
class FrameRows:
    """Rows of a DataFrame. A frame with an Observation is not bare: inside another plan its metrics would be lost."""

    made: DataFrame
    is_bare: bool = False
    are_short: bool = False

    def frame(self) -> DataFrame:
        return self.made

    def under(self, template: Template) -> DataFrame:
        return template.over(self.made) if isinstance(self.made, PreparedFrame) else template.upon(self.made).frame


@dataclass(frozen=True, slots=True)
class WatchedRows(FrameRows):
    """Rows whose tasks report how many there are, and whether a record needs the full decoder."""

    refused: Callable[[], bool] = lambda: False
    only_long: Callable[[], bool] = lambda: False
    count: Callable[[], int] = lambda: 0


class _ByPartition(AccumulatorParam[dict[int, int]]):
    """Row counts by partition. A task that runs again reports the same, if all jobs partition the rows alike."""

    def zero(self, value: dict[int, int]) -> dict[int, int]:
        return {}

    def addInPlace(self, value1: dict[int, int], value2: dict[int, int]) -> dict[int, int]:  # noqa: N802  # Spark's
        return {**value1, **value2}


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """Accumulators by which tasks report on their rows to the driver. All stay correct when a task runs twice."""

    _odd: Accumulator[int]
    _long: Accumulator[int]
    _counted: Accumulator[dict[int, int]]

    @classmethod
    def of(cls, spark: SparkSession) -> Watch:
        context = spark.sparkContext
        return cls(context.accumulator(0), context.accumulator(0), context.accumulator({}, _ByPartition()))

    def refuse(self, *, is_long: bool = False) -> None:
        """Called by a task that found a record which needs the full decoder, or which is only too long."""
        (self._long if is_long else self._odd).add(1)

    def count(self, rows: int) -> None:
        """Called by a task at its end with the number of all its rows."""
        task = TaskContext.get()
        assert task is not None  # only tasks call it
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
