"""Translates the operator tree of a view into its rows, read from operator state; also the net change of two tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.catalyst.plans.prepared_frame import map_in_arrow
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.tasks.shard_task import ShardRows
from laminae.spark.views.join import equi_join, join_types
from laminae.spark.views.plan import WINDOW_END, aggregate_in, inputs_read, linear, union
from laminae.trace.spec import WEIGHT
from laminae.views.kernels.group_by.kernel import GroupByKernel
from laminae.views.kernels.join.kernel import JoinKernel
from laminae.views.operators import Distinct, GroupBy, Join, Linear, Named, Read, UnionAll
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.views.error_isolation import ErrorIsolation
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState
    from laminae.views.operators import Operator


def view_table(spark: SparkSession, view: ViewState, tables: Relations, placement: ShardPlacement) -> DataFrame:
    """The rows of a view in this state. `tables` has the relations that reach the view through no stateful operator."""
    return _Tables(spark, view, tables, placement, view.guard()).table(view.plan.root)


def held_rows(
    spark: SparkSession, view: ViewState, tables: Relations, placement: ShardPlacement, after: int, until: int
) -> DataFrame:
    """The rows of windows whose end is after `after` and at or before `until`, with the end in `WINDOW_END`."""
    root, window = view.plan.root, view.plan.window
    if window is None or not isinstance(root, Linear) or window.end not in root.input.columns:
        raise AssertionError(f"the rows of view {view.name} have no window")
    wider = replace(root, expressions=(*root.expressions, Named(WINDOW_END, quoted(window.end))))
    rows = _Tables(spark, view, tables, placement, view.guard()).table(wider)
    end = F.unix_micros(F.col(WINDOW_END).cast("timestamp"))
    return rows.where((end > after) & (end <= until))


def net_change(old: DataFrame, new: DataFrame, key: Sequence[str] | None) -> DataFrame:
    """The inserts and retractions that turn the old table into the new one; for each key the old row comes first."""
    names = [quoted(name) for name in new.columns]
    both = new.withColumn(WEIGHT, F.lit(1)).unionAll(old.select(*names).withColumn(WEIGHT, F.lit(-1)))
    return netted(both, key)


def netted(changes: DataFrame, key: Sequence[str] | None) -> DataFrame:
    """The sum of the changes, without those that cancel out; for each key the old row comes first."""
    names = [quoted(name) for name in changes.columns if name != WEIGHT]
    added = changes.groupBy(*names).agg(F.sum(WEIGHT).cast("bigint").alias(WEIGHT)).where(f"{WEIGHT} <> 0")
    if key is None:
        return added
    keys = [quoted(name) for name in key]
    return added.repartition(*keys).sortWithinPartitions(*keys, WEIGHT) if keys else added.repartition(1).sort(WEIGHT)


@dataclass(frozen=True, slots=True)
class _Tables:
    spark: SparkSession
    view: ViewState
    tables: Relations
    placement: ShardPlacement
    guard: ErrorIsolation | None = None

    def table(self, operator: Operator, wanted: frozenset[str] | None = None) -> DataFrame:
        match operator:
            case Read(relation=relation):
                return self.tables[relation.casefold()].selectExpr(*operator.selected)
            case Linear(input=below):
                return linear(self.table(below, inputs_read(operator, wanted)), operator, self.guard, wanted)
            case UnionAll(inputs=inputs):
                return union([self.table(branch) for branch in inputs], operator.columns)
            case GroupBy() | Distinct():
                return self.kept(operator)
            case Join():
                return self.joined(operator, wanted)

    def kept(self, operator: GroupBy | Distinct) -> DataFrame:
        # The rows are in the state: the input is never read, and may no longer exist.
        assert self.view.inputs is not None  # always set by ViewRunner.state
        below = self.view.inputs.frame(self.spark, operator.input)
        aggregate = aggregate_in(self.view.name, operator, below)
        schema = pa.schema([field.with_nullable(True) for field in aggregate.fields])
        rows = ShardRows(GroupByKernel(aggregate), self.view.operator(operator, self.placement.home), schema)
        shards = self.spark.range(0, self.placement.shards, 1, self.placement.shards)
        return map_in_arrow(shards, rows, spark_schema(schema))

    def joined(self, operator: Join, wanted: frozenset[str] | None) -> DataFrame:
        assert self.view.inputs is not None  # always set by ViewRunner.state
        schemas = [self.view.inputs.schema(self.spark, side) for side in (operator.left, operator.right)]
        join = equi_join(self.view.name, operator, join_types(self.spark, operator, *schemas), wanted)
        schema = pa.schema(join.fields)
        rows = ShardRows(JoinKernel(join), self.view.operator(operator, self.placement.home), schema)
        shards = self.spark.range(0, self.placement.shards, 1, self.placement.shards)
        return map_in_arrow(shards, rows, spark_schema(schema))
