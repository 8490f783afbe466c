"""The output types of operators, derived from the whole query, since an epoch has changes of only some relations.

Empty DataFrames replace the relations. Nothing here runs a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from laminae.engine.views.resolution import view_plan
from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.plans.prepared_frame import no_rows
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.views.plan import aggregate_in, linear, union
from laminae.views.operators import Distinct, GroupBy, Join, Linear, Read, UnionAll, reads_in

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.views.operators import Operator

DECIDE_TYPES = ("spark.sql.ansi.enabled", "spark.sql.timestampType", "spark.sql.decimalOperations.allowPrecisionLoss")
"""Settings that determine the type of an expression, or the common type of, say, STRING and INT."""
MOST_SCHEMAS = 256


@dataclass(frozen=True, slots=True)
class InputTypes:
    """The current definitions of all relations in a home."""

    sources: Sequence[SourceRecord]
    views: Sequence[ViewRecord]

    def schema(self, spark: SparkSession, operator: Operator) -> StructType:
        """The columns of an operator with the types that Spark derives when all relations below it are present."""
        settings = tuple(spark.conf.get(name) for name in DECIDE_TYPES)
        key = (operator, *(self._identity(read.relation) for read in reads_in(operator)), settings)
        # Analysing a UNION takes about 20 ms, and every epoch with changes of only one side needs its schema.
        return plan_cache().get(InputTypes, key, lambda: self.frame(spark, operator).schema, most=MOST_SCHEMAS)

    def frame(self, spark: SparkSession, operator: Operator) -> DataFrame:
        """The operator over empty relations, without state and without `_weight`."""
        match operator:
            case Read(relation=relation):
                return self.relation(spark, relation).selectExpr(*operator.selected)
            case Linear(input=below):
                return linear(self.frame(spark, below), operator)
            case UnionAll(inputs=inputs):
                return union([self.frame(spark, branch) for branch in inputs], operator.columns)
            case GroupBy(input=below) | Distinct(input=below):
                aggregate = aggregate_in("", operator, self.frame(spark, below))
                return no_rows(spark, spark_schema(pa.schema(aggregate.fields)))

            case Join(left=left, right=right):
                sides = (
                    [self.frame(spark, left)]
                    if operator.kind.selects_left
                    else [self.frame(spark, side) for side in (left, right)]
                )
                return reduce(DataFrame.crossJoin, sides)

    def relation(self, spark: SparkSession, name: str) -> DataFrame:
        source = self._source(name)
        if source is not None:
            return no_rows(spark, spark_schema(source.schema))
        return self.frame(spark, self._root(name))

    def _identity(self, name: str) -> tuple[Hashable, ...]:
        source = self._source(name)
        if source is not None:
            return ("source", spark_schema(source.schema).json())
        root = self._root(name)
        return ("view", root, *(self._identity(read.relation) for read in reads_in(root)))

    def _source(self, name: str) -> SourceRecord | None:
        return next((one for one in self.sources if one.name.casefold() == name.casefold()), None)

    def _root(self, name: str) -> Operator:
        view = next(one for one in self.views if one.name.casefold() == name.casefold())
        return view_plan(view.name, view.query, self.sources, self.views, view.written, view.reading).root
