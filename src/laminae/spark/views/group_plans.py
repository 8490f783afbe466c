"""Spark plans from the rows of a source to the pre-aggregated groups of a view, made once and reused in every epoch.

Analysing, optimising and planning them again takes longer than running an epoch of some ten thousand rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.plans.plan_template import Template
from laminae.spark.catalyst.plans.prepared_frame import no_rows
from laminae.views.operators import Distinct, GroupBy, Join, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.spark.formats.protocol import Rows
    from laminae.spark.views.plan import ViewState
    from laminae.views.kernels.group_by.aggregates import Aggregate
    from laminae.views.operators import Operator

Summed = tuple["Aggregate", "DataFrame"]
"""The aggregate, and the frame of its pre-aggregated groups."""
# An LRU limit: plans of dropped and replaced views are evicted.
MOST_PLANS = 64


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The aggregate of a GROUP BY or DISTINCT, and its plan template; None if a step of the plan has several inputs."""

    aggregate: Aggregate
    template: Template | None


class Plans:
    """The plans of one pipeline, the owner of its entries in the plan cache: other homes have other settings."""

    __slots__ = ("__weakref__",)

    def plan(self, key: Hashable, make: Callable[[], GroupPlan]) -> GroupPlan:
        return plan_cache().get(self, key, make, most=MOST_PLANS)


@dataclass(frozen=True, slots=True)
class BasedRelation:
    """The rows of a relation in this epoch, as input of cached plans.

    `changes` adds `_weight` to them; `key` identifies what `changes` does and is part of the cache key.
    """

    schema: StructType
    rows: Rows
    changes: Callable[[DataFrame], DataFrame]
    key: Hashable


@dataclass(frozen=True, slots=True)
class Based:
    """Relations of an epoch, by their names in lower case, all of whose readers can use cached plans."""

    plans: Plans
    spark: SparkSession
    relations: Mapping[str, BasedRelation]

    def beside(self, name: str, relation: BasedRelation) -> Based:
        return replace(self, relations={**self.relations, name: relation})

    def grouped(
        self,
        owner: int,
        operator: GroupBy | Distinct,
        shards: int,
        make: Callable[[str, DataFrame], Summed],
    ) -> Summed | None:
        """The result of `make` for the changes of a relation, from a cached plan where possible.

        None when the operator does not read one of `relations` through projections and filters alone.
        """
        name = _read_by_chain(operator.input)
        relation = None if name is None else self.relations.get(name)
        if name is None or relation is None:
            return None

        def plan() -> GroupPlan:
            leaf = no_rows(self.spark, relation.schema)
            aggregate, groups = make(name, relation.changes(leaf))
            return GroupPlan(aggregate, Template(leaf, groups) if Template.can_be(leaf, groups) else None)

        group_plan = self.plans.plan((owner, operator, shards, relation.schema.json(), relation.key), plan)
        if group_plan.template is None:
            return make(name, relation.changes(relation.rows.frame()))
        return group_plan.aggregate, relation.rows.under(group_plan.template)


def is_ready(view: ViewState, relation: str) -> bool:
    """Whether all rows of a relation that a view reads go directly into groups, and none of them can be late."""
    return view.plan.window is None and _reads_into_groups(view.plan.root, relation)


def _reads_into_groups(operator: Operator, relation: str) -> bool:
    match operator:
        case Read(relation=read):
            return read.casefold() != relation
        case Linear(input=below):
            return _reads_into_groups(below, relation)
        case UnionAll(inputs=inputs):
            return all(_reads_into_groups(branch, relation) for branch in inputs)
        case GroupBy(input=below) | Distinct(input=below):
            return _read_by_chain(below) == relation or _reads_into_groups(below, relation)
        case Join(left=left, right=right):
            return _reads_into_groups(left, relation) and _reads_into_groups(right, relation)


def _read_by_chain(operator: Operator) -> str | None:
    """The relation, in lower case, that an operator reads through projections and filters alone, or None."""
    while isinstance(operator, Linear):
        operator = operator.input
    return operator.relation.casefold() if isinstance(operator, Read) else None
