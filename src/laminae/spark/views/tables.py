"""The operator tree of a view as a table: its rows from its state, and what must change to come from one to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.types import spark_schema
from laminae.spark.views.tasks import ShardRows
from laminae.spark.views.tree import WINDOW_END, aggregate_in, linear, read_by, union
from laminae.trace.spec import WEIGHT
from laminae.views.identity import operator_id
from laminae.views.operators import Distinct, GroupBy, Linear, Named, Read, UnionAll
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.views.guard import Guard
    from laminae.spark.views.tree import Place, Relations, ViewState
    from laminae.views.operators import Operator


def view_table(spark: SparkSession, view: ViewState, tables: Relations, place: Place) -> DataFrame:
    """The rows that a view has in this state. Relations are read only where no state stands before them."""
    return _Tables(spark, view, tables, place, view.guard()).table(view.plan.root)


def held_rows(
    spark: SparkSession, view: ViewState, tables: Relations, place: Place, after: int, until: int
) -> DataFrame:
    """The rows of windows that end after one time and at or before another, with the end as `_window_end`."""
    root, window = view.plan.root, view.plan.window
    if window is None or not isinstance(root, Linear) or window.end not in root.input.columns:
        raise AssertionError(f"the rows of view {view.name} have no window")
    wider = replace(root, expressions=(*root.expressions, Named(WINDOW_END, quoted(window.end))))
    found = _Tables(spark, view, tables, place, view.guard()).table(wider)
    end = F.unix_micros(F.col(WINDOW_END).cast("timestamp"))
    return found.where((end > after) & (end <= until))


def net_change(old: DataFrame, new: DataFrame, key: Sequence[str] | None) -> DataFrame:
    """What to add and take away to come from one table to the other; of a key the old row first."""
    names = [quoted(name) for name in new.columns]
    both = new.withColumn(WEIGHT, F.lit(1)).unionAll(old.select(*names).withColumn(WEIGHT, F.lit(-1)))
    added = both.groupBy(*names).agg(F.sum(WEIGHT).cast("bigint").alias(WEIGHT)).where(f"{WEIGHT} <> 0")
    if key is None:
        return added
    keys = [quoted(name) for name in key]
    return added.repartition(*keys).sortWithinPartitions(*keys, WEIGHT) if keys else added.repartition(1).sort(WEIGHT)


@dataclass(frozen=True, slots=True)
class _Tables:
    spark: SparkSession
    view: ViewState
    tables: Relations
    place: Place
    guard: Guard | None = None

    def table(self, operator: Operator, wanted: frozenset[str] | None = None) -> DataFrame:
        match operator:
            case Read(relation=relation):
                return self.tables[relation.casefold()].selectExpr(*operator.selected)
            case Linear(input=below):
                return linear(self.table(below, read_by(operator, wanted)), operator, self.guard, wanted)
            case UnionAll(inputs=inputs):
                return union([self.table(each) for each in inputs], operator.columns)
            case GroupBy() | Distinct():
                return self.kept(operator)

    def kept(self, operator: GroupBy | Distinct) -> DataFrame:
        # Only the types of what is below are needed: the rows are in the state.
        aggregate = aggregate_in(self.view.name, operator, self.table(operator.input))
        name = operator_id(operator)
        rows = ShardRows(aggregate, self.view.owner, name, self.place.home, self.view.manifests.get(name, {}))
        shards = self.spark.range(0, self.place.shards, 1, self.place.shards)
        return shards.mapInArrow(rows, spark_schema(rows.schema()))
