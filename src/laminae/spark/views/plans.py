"""Plans from the rows of a source to the groups of a view, made once and set upon the rows of every epoch.

To analyse, optimise and plan them anew takes longer than an epoch of some ten thousand rows takes to run.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.spark.quick import no_rows
from laminae.spark.template import Template
from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

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
class BasedRelation:
    """The rows of a relation in this epoch.

    `changes` gives them their weight; `key` tells what it does from what it did.
    """

    schema: StructType
    rows: Rows
    changes: Callable[[DataFrame], DataFrame]
    key: Hashable


@dataclass(frozen=True, slots=True)
class Based:
    """Relations of an epoch, by their names in lower case, all of whose readers are ready for kept plans."""

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
        """What `make` gives for the changes of a relation, None when the operator reads none of these directly."""
        name = _read_by_chain(operator.input)
        found = None if name is None else self.relations.get(name)
        if name is None or found is None:
            return None

        def plan() -> GroupPlan:
            leaf = no_rows(self.spark, found.schema)
            aggregate, made = make(name, found.changes(leaf))
            return GroupPlan(aggregate, Template(leaf, made) if Template.can_be(leaf, made) else None)

        kept = self.plans.plan((owner, operator, shards, found.schema.json(), found.key), plan)
        if kept.template is None:
            return make(name, found.changes(found.rows.frame()))
        return kept.aggregate, found.rows.under(kept.template)


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
            return _read_by_chain(below) == relation or _reads_into_groups(below, relation)


def _read_by_chain(operator: Operator) -> str | None:
    """The relation, in lower case, whose rows go by projections and filters alone into this."""
    while isinstance(operator, Linear):
        operator = operator.input
    return operator.relation.casefold() if isinstance(operator, Read) else None
