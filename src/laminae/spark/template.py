"""A plan that is analysed, optimised and planned once and then set upon the records of each epoch.

Spark spends 200 ms on the expressions of a ten-column decoder before the first row of an epoch moves (ResolveFunctions,
type coercion, constant folding, and 150 rules more, each over the whole tree). All of that is the same for every epoch:
only the leaf differs. This module takes Spark's own plan nodes apart; nothing of them leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILTER, ROWS_OUT = "Filter", "numOutputRows"


class Template:
    """`made` is a plan of steps with one input each, upon `leaf`, with one filter. It serves every session."""

    __slots__ = ("_attributes", "_java", "_schema", "_steps", "columns")

    columns: tuple[str, ...]
    """The columns of the leaf that the plan reads."""

    def __init__(self, leaf: DataFrame, made: DataFrame) -> None:
        self._java = _JavaNames.of(leaf.sparkSession)
        self._schema = _java(made).schema()
        # From the root down to the step above the leaf.
        self._steps: list[Any] = []
        step: Any = _java(made).queryExecution().sparkPlan()
        while step.children().size():
            self._steps.append(step)
            step = step.children().head()
        read = {name.name() for name in _each(self._steps[-1].references())}
        attributes = {item.name(): item for item in _each(step.output()) if item.name() in read}
        self._attributes = {name: item.exprId() for name, item in attributes.items()}
        self.columns = tuple(self._attributes)

    def upon(self, records: DataFrame) -> Grafted:
        """The plan with `records` for its leaf. They have the template's columns, in the types of its leaf."""
        java, spark = self._java, records.sparkSession
        session: Any = spark._jsparkSession
        plan = java.counting(self._renamed(_java(records).queryExecution().sparkPlan()))
        for step in reversed(self._steps):
            plan = step.withNewChildren(java.sequence(plan))
        prepared = java.prepared(session, plan)
        frame = session.internalCreateDataFrame(prepared.execute(), self._schema, False)
        first, *_, last = _filters(prepared)
        return Grafted(ClassicDataFrame(frame, spark), last, first)

    def _renamed(self, records: Any) -> Any:
        """The records under the identities that the template's expressions refer to."""
        given = {item.name(): item for item in _each(records.output())}
        names = [self._java.alias(given[name], name, identity) for name, identity in self._attributes.items()]
        return self._java.project(self._java.sequence(*names), records)


@dataclass(frozen=True, slots=True)
class Grafted:
    """A template's plan upon the records of one epoch. The nodes count the rows that go through them."""

    frame: DataFrame
    came: Any
    passed: Any

    def count(self) -> int:
        """How many rows passed, each as often as a task that succeeded made it. Only when the job has ended."""
        return _count(self.passed)

    def has_dropped(self) -> bool:
        """Whether the filter kept a row back. Only when the job has ended.

        Spark adds up the counts of attempts that succeeded. A partition that ran twice counts twice in both, so they
        are equal if and only if no row was kept back.
        """
        return bool(_count(self.came) != _count(self.passed))


@dataclass(frozen=True, slots=True)
class _JavaNames:
    """Classes of Spark's, looked up once: each part of a dotted name is a call into the JVM."""

    alias_class: Any
    project: Any
    filter: Any
    true: Any
    execution: Any
    none: Any
    empty: Any
    to_sequence: Any

    @classmethod
    def of(cls, spark: SparkSession) -> _JavaNames:
        jvm: Any = spark.sparkContext._jvm
        nodes, execution = jvm.org.apache.spark.sql.catalyst.expressions, jvm.org.apache.spark.sql.execution
        return cls(
            alias_class=nodes.Alias,
            project=execution.ProjectExec,
            filter=execution.FilterExec,
            true=nodes.Literal.TrueLiteral(),
            execution=getattr(getattr(execution, "QueryExecution$"), "MODULE$"),
            none=getattr(getattr(jvm.scala, "None$"), "MODULE$"),
            empty=jvm.PythonUtils.toSeq([]),
            to_sequence=jvm.PythonUtils.toSeq,
        )

    def alias(self, value: Any, name: str, identity: Any) -> Any:
        return self.alias_class(value, name, identity, self.empty, self.none, self.empty)

    def counting(self, plan: Any) -> Any:
        """A filter that lets everything through, for the sake of its count."""
        return self.filter(self.true, plan)

    def prepared(self, session: Any, plan: Any) -> Any:
        """Ready to run: code generation and row formats. There is no shuffle in it, so nothing for adaptive plans."""
        return self.execution.prepareForExecution(self.execution.preparations(session, self.none, False), plan)

    def sequence(self, *items: Any) -> Any:
        return self.to_sequence(list(items))


def _filters(plan: Any) -> list[Any]:
    """The filters of a plan of steps with one input each, from the root down."""
    found = [plan] if plan.nodeName() == FILTER else []
    return [*found, *_filters(plan.children().head())] if plan.children().size() else found


def _count(node: Any) -> int:
    return int(node.metrics().apply(ROWS_OUT).value())


def _java(frame: DataFrame) -> Any:
    return frame._jdf


def _each(items: Any) -> list[Any]:
    found = items.toList()
    return [found.apply(index) for index in range(found.size())]
