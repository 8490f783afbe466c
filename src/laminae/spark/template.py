"""A plan that is analysed and optimised once and then set upon the records of each epoch.

Spark spends 200 ms on the expressions of a ten-column decoder before the first row of an epoch moves (ResolveFunctions,
type coercion, constant folding, and 150 rules more, each over the whole tree). All of that is the same for every epoch:
only the leaf differs. This module takes Catalyst's own nodes apart; nothing of them leaves it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLLECT_METRICS = "CollectMetrics"


class Template:
    """`made` is a plan of steps with one input each, upon `leaf`; both are of the session it will be used in."""

    __slots__ = ("_attributes", "_catalyst", "_jvm", "_steps", "columns")

    columns: tuple[str, ...]
    """The columns of the leaf that the plan reads."""

    def __init__(self, leaf: DataFrame, made: DataFrame) -> None:
        jvm: Any = leaf.sparkSession.sparkContext._jvm
        self._jvm = jvm
        self._catalyst: Any = jvm.org.apache.spark.sql.catalyst
        # From the root down to the step above the leaf.
        self._steps: list[Any] = []
        step: Any = _java(made).queryExecution().optimizedPlan()
        while step.children().size():
            self._steps.append(step)
            step = step.children().head()
        read = {name.name() for name in _each(self._steps[-1].references())}
        self._attributes = {item.name(): item for item in _each(step.output()) if item.name() in read}
        self.columns = tuple(self._attributes)

    def upon(self, records: DataFrame) -> Grafted:
        """The plan with `records` for its leaf. They have the template's columns, in the types of its leaf."""
        spark = records.sparkSession
        plan: Any = self._renamed(_java(records).queryExecution().analyzed())
        observed: Observed | None = None
        for step in reversed(self._steps):
            if step.nodeName() == COLLECT_METRICS:
                observed = self._observed(spark, step)
                plan = step.copy(observed.name, step.metrics(), plan, step.dataframeId())
            else:
                plan = step.withNewChildren(self._sequence(plan))
        # It was, as the template: to be looked through again would cost what a template saves.
        plan.setAnalyzed()
        made = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
        return Grafted(ClassicDataFrame(made, spark), observed)

    def _renamed(self, records: Any) -> object:
        """The records under the identities that the template's expressions refer to."""
        given = {item.name(): item for item in _each(records.output())}
        none = getattr(getattr(self._jvm.scala, "None$"), "MODULE$")
        empty = self._sequence()
        names = [
            self._catalyst.expressions.Alias(given[name], name, item.exprId(), empty, none, empty)
            for name, item in self._attributes.items()
        ]
        return self._catalyst.plans.logical.Project(self._sequence(*names), records)

    def _observed(self, spark: SparkSession, step: Any) -> Observed:
        name = uuid.uuid4().hex
        observation = self._jvm.org.apache.spark.sql.Observation(name)
        spark._jsparkSession.observationManager().register(observation, step.dataframeId())
        return Observed(name, observation)

    def _sequence(self, *items: object) -> object:
        return self._jvm.PythonUtils.toSeq(list(items))


@dataclass(frozen=True, slots=True)
class Observed:
    """What `observe` in the template's plan sees in this epoch."""

    name: str
    observation: Any

    def value(self, metric: str) -> object:
        """Waits until the job has ended."""
        return self.observation.getAsJava().get(metric)


@dataclass(frozen=True, slots=True)
class Grafted:
    """A template's plan upon the records of one epoch."""

    frame: DataFrame
    observed: Observed | None


def _java(frame: DataFrame) -> Any:
    return frame._jdf


def _each(items: Any) -> list[Any]:
    found = items.toList()
    return [found.apply(index) for index in range(found.size())]
