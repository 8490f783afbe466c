"""Plans from the rows of a source to the groups of a view, made once and set upon the rows of every epoch.

To analyse, optimise and plan them anew takes longer than an epoch of some ten thousand rows takes to run.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.spark.quick import no_rows
from laminae.spark.template import Template
from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.spark.contract import Rows
    from laminae.spark.views.tree import ViewState
    from laminae.views.kernels.aggregates import Aggregate
    from laminae.views.operators import Operator

Summed = tuple["Aggregate", "DataFrame"]
"""What is added up, and the groups."""
# Of views that come and go, the last that were used.
MOST_PLANS = 64


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What a GROUP BY or DISTINCT adds up, and the plan that does it; None where it has several inputs."""

    aggregate: Aggregate
    template: Template | None


class Plans:
    """Of one pipeline: they hold on to a session of Spark's."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, GroupPlan] = OrderedDict()

    def plan(self, key: Hashable, make: Callable[[], GroupPlan]) -> GroupPlan:
        found = self._kept.pop(key, None) or make()
        self._kept[key] = found
        while len(self._kept) > MOST_PLANS:
            self._kept.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class Based:
    """The rows of a source in this epoch, for views of which all are ready for kept plans.

    `changes` gives rows their weight; `key` tells what it does from what it did.
    """

    plans: Plans
    spark: SparkSession
    relation: str
    schema: StructType
    rows: Rows
    changes: Callable[[DataFrame], DataFrame]
    key: Hashable

    def grouped(
        self,
        owner: int,
        operator: GroupBy | Distinct,
        shards: int,
        make: Callable[[DataFrame], Summed],
    ) -> Summed | None:
        """What `make` gives for the changes of the relation, None when the operator does not read them directly."""
        if not _is_chain(operator.input, self.relation):
            return None

        def plan() -> GroupPlan:
            leaf = no_rows(self.spark, self.schema)
            aggregate, made = make(self.changes(leaf))
            return GroupPlan(aggregate, Template(leaf, made) if Template.can_be(made) else None)

        kept = self.plans.plan((owner, operator, shards, self.schema.json(), self.key), plan)
        if kept.template is None:
            return make(self.changes(self.rows.frame()))
        return kept.aggregate, self.rows.under(kept.template)


def is_ready(view: ViewState, relation: str) -> bool:
    """Whether all that a view reads of a relation goes straight into groups, and nothing of it can come too late."""
    return view.plan.window is None and _reads_into_groups(view.plan.root, relation)


def _reads_into_groups(operator: Operator, relation: str) -> bool:
    match operator:
        case Read(relation=read):
            return read.casefold() != relation
        case Linear(input=below):
            return _reads_into_groups(below, relation)
        case UnionAll(inputs=inputs):
            return all(_reads_into_groups(each, relation) for each in inputs)
        case GroupBy(input=below) | Distinct(input=below):
            return _is_chain(below, relation) or _reads_into_groups(below, relation)


def _is_chain(operator: Operator, relation: str) -> bool:
    while isinstance(operator, Linear):
        operator = operator.input
    return isinstance(operator, Read) and operator.relation.casefold() == relation
