"""A plan that is analysed, optimised and planned once, and then run over the records of each epoch.

Spark spends 200 ms on the expressions of a ten-column decoder before it reads the first row of an epoch
(ResolveFunctions, type coercion, constant folding and 150 more rules, each over the whole plan). Only the leaf differs
between epochs.
Spark's plan nodes must not leave this module, `compiled_stages` and `prepared_frame`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

from laminae.spark.catalyst.jvm import TO_SEQUENCES, java_class, scala_object
from laminae.spark.catalyst.plans.compiled_stages import CompiledPlan, CompiledSteps, compiled, rows_below
from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.plans.prepared_frame import MappedNodes, PreparedFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger(__name__)
FILTER, ROWS_OUT = "Filter", "numOutputRows"
AGGREGATE, EXCHANGE = "HashAggregate", "Exchange"
TO_ADD_UP = [AGGREGATE, AGGREGATE, EXCHANGE]
BY_KEYS, TO_ONE = "HashPartitioning", "SinglePartition$"
# Limit of the templates above this one whose combined plans are cached; the cache is cleared when it is reached.
MOST_KEPT = 16


class Template:
    """A reusable physical plan. `made` is a chain of single-input operators over `leaf`; it is valid in every session.

    `by_partition`: the final aggregate of `made` is left out. The result has the groups of each partition, with the
    keys under their names.
    """

    __slots__ = (
        "_attributes",
        "_filters",
        "_java",
        "_kept",
        "_maps",
        "_over_rows",
        "_schema",
        "_steps",
        "_used",
        "columns",
    )

    columns: tuple[str, ...]
    """The columns of the leaf that the plan reads."""

    def __init__(self, leaf: DataFrame, made: DataFrame, *, by_partition: bool = False) -> None:
        jvm = leaf.sparkSession.sparkContext._jvm
        self._java = plan_cache().get(_JavaNames, None, lambda: _JavaNames.of(jvm))
        self._schema = _java(made).schema()
        self._kept: dict[Template | None, _Prepared] = {}
        self._used: dict[Template | None, bool] = {}
        # The compiled steps for `over`; False if the plan cannot be compiled.
        self._over_rows: CompiledSteps | Literal[False] | None = None
        self._maps = MappedNodes()
        # From the root down to the step above the leaf.
        self._steps: list[Any] = []
        step: Any = _java(made).queryExecution().sparkPlan()
        if by_partition:
            step = step.children().head()
        while step.children().size():
            self._steps.append(step)
            step = step.children().head()
        # Where Spark knows that there are no rows, it drops the leaf, and another node would be taken for it.
        assert _is_leaf(step, leaf), "a template without its leaf"
        self._steps = _added_up_first(self._steps)
        self._filters = sum(node.nodeName() == FILTER for node in self._steps)
        # Start with the output: a filter passes on columns that it does not reference itself.
        used = (self._steps[0] if self._steps else step).outputSet()
        for node in self._steps:
            used = getattr(used, "$plus$plus")(node.references())
        self._attributes = {item.name(): item.exprId() for item in _each(step.output()) if used.contains(item)}
        self.columns = tuple(self._attributes)

    @staticmethod
    def can_be(leaf: DataFrame, made: DataFrame) -> bool:
        """Whether each operator of the plan has one input and `leaf` is at the bottom."""
        step: Any = _java(made).queryExecution().sparkPlan()
        while (inputs := step.children()).size() == 1:
            step = inputs.head()
        return bool(inputs.size() == 0) and _is_leaf(step, leaf)

    def upon(self, records: DataFrame, above: Template | None = None, *, keeps: bool = False) -> Grafted:
        """The plan with `records` as its leaf, and the plan of `above` on top of it.

        The records must have the template's columns in the types of its leaf. With `keeps`, the plan is cached for
        `again` and `again_upon` from its second use on: compiling it costs more than it saves the first time.
        """
        session: Any = records.sparkSession._jsparkSession
        # Spark reads shuffle settings from the active session of this thread.
        self._java.sessions.setActiveSession(session)
        plan = self._over(self._java.counting(self._renamed(_java(records).queryExecution().sparkPlan())))
        top, filters = self, 0
        if above is not None:
            plan, top, filters = above._over(above._renamed(plan)), above, above._filters
        ready = self._java.prepared(session, plan)
        counters = _filters(ready, filters + self._filters + 1)[filters:]
        stages = compiled(ready) if keeps and self._used.get(above) else None
        prepared = _Prepared(ready, stages, top, _metric(counters[0]), _metric(counters[-1]))
        if len(self._used) >= MOST_KEPT:
            self._used.clear()
            self._kept.clear()
        # A plan that could not be compiled is not tried again. A use without `keeps` does not change that decision.
        if keeps or above not in self._used:
            self._used[above] = above not in self._used or stages is not None
        if prepared.compiled is not None:
            self._kept[above] = prepared
        if isinstance(prepared.compiled, CompiledPlan):
            return prepared.run(records.sparkSession, prepared.compiled.rows())
        if isinstance(prepared.compiled, CompiledSteps):
            # Do not execute the plan itself: the cached plan would retain the RDDs of that execution.
            return prepared.run(records.sparkSession, prepared.compiled.upon(rows_below(ready)))
        return prepared.run(records.sparkSession, ready.execute())

    def over(self, rows: PreparedFrame) -> PreparedFrame:
        """The plan over rows that are already planned. It has no row counts."""
        spark = rows.sparkSession
        self._java.sessions.setActiveSession(spark._jsparkSession)
        if self._over_rows is None:
            # Compile over an empty RDD, because a cached plan retains its input.
            steps = compiled(self._ready(rows.without_rows()))
            self._over_rows = steps if isinstance(steps, CompiledSteps) else False
        if self._over_rows is False:
            return PreparedFrame.of(spark, self._ready(rows).execute(), self._schema, self._maps)
        return PreparedFrame.of(spark, self._over_rows.upon(rows.planned), self._schema, self._maps)

    def _ready(self, rows: DataFrame) -> Any:
        plan = self._over(self._renamed(_java(rows).queryExecution().sparkPlan()))
        return self._java.prepared(rows.sparkSession._jsparkSession, plan)

    def again(self, spark: SparkSession, files: Sequence[str], above: Template | None = None) -> Grafted | None:
        """The cached plan over other files of the same kind; None if there is no such plan or a file is missing."""
        prepared = self._kept.get(above)
        if prepared is None or not isinstance(prepared.compiled, CompiledPlan):
            return None
        try:
            rows = prepared.compiled.rows_of(spark._jsparkSession, files)
        except Py4JError as problem:
            LOG.info("a cached plan is built again: %s", problem)
            del self._kept[above]
            return None
        return None if rows is None else prepared.run(spark, rows)

    def again_upon(self, spark: SparkSession, rows: Any, above: Template | None = None) -> Grafted | None:
        """The cached plan over another input RDD of the same schema; None if there is no such plan."""
        prepared = self._kept.get(above)
        if prepared is None or not isinstance(prepared.compiled, CompiledSteps):
            return None
        self._java.sessions.setActiveSession(spark._jsparkSession)
        return prepared.run(spark, prepared.compiled.upon(rows))

    def _over(self, plan: Any) -> Any:
        for step in reversed(self._steps):
            plan = step.withNewChildren(self._java.sequence(plan))
        return plan

    def _renamed(self, records: Any) -> Any:
        """The records with the expression ids that the template's expressions refer to."""
        attributes = {item.name(): item for item in _each(records.output())}
        names = [self._java.alias(attributes[name], name, identity) for name, identity in self._attributes.items()]
        return self._java.project(self._java.sequence(*names), records)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan that is ready to run.

    `passed` and `came` are metrics over all its runs: the rows after the template's top filter, and its input rows.
    """

    plan: Any
    compiled: CompiledPlan | CompiledSteps | None
    top: Template
    passed: Any
    came: Any

    def run(self, spark: SparkSession, rows: Any) -> Grafted:
        frame = PreparedFrame.of(spark, rows, self.top._schema, self.top._maps)
        # Keep a reference to the plan: its metrics must live until they have been read.
        return Grafted(frame, self, self.passed.value(), self.came.value())


@dataclass(slots=True)
class Grafted:
    """A template's plan over the records of one epoch. Run it once; read its counts only after its job has ended."""

    frame: DataFrame
    _prepared: _Prepared
    _passed_before: int
    _came_before: int
    _counts: tuple[int, int] | None = None

    def count(self) -> int:
        """The number of rows that passed the filters; a row counts once for each successful task that produced it."""
        return self._counted()[0]

    def has_dropped(self) -> bool:
        """Whether a filter of the template dropped a row.

        Spark adds up the metrics of successful attempts. A partition that ran twice counts twice in both metrics, so
        they are equal if and only if no row was dropped.
        """
        passed, entered = self._counted()
        return entered != passed

    def _counted(self) -> tuple[int, int]:
        if self._counts is None:
            passed, entered = self._prepared.passed.value(), self._prepared.came.value()
            self._counts = int(passed - self._passed_before), int(entered - self._came_before)
        return self._counts


@dataclass(frozen=True, slots=True)
class _JavaNames:
    """Spark classes, looked up once: each lookup is a call into the JVM."""

    alias_class: Any
    project: Any
    filter: Any
    true: Any
    execution: Any
    sessions: Any
    none: Any
    empty: Any
    to_sequence: Any

    @classmethod
    def of(cls, jvm: Any) -> _JavaNames:
        nodes, execution = "org.apache.spark.sql.catalyst.expressions", "org.apache.spark.sql.execution"
        sequences = java_class(jvm, TO_SEQUENCES)
        return cls(
            alias_class=java_class(jvm, f"{nodes}.Alias"),
            project=java_class(jvm, f"{execution}.ProjectExec"),
            filter=java_class(jvm, f"{execution}.FilterExec"),
            true=java_class(jvm, f"{nodes}.Literal").TrueLiteral(),
            execution=scala_object(jvm, f"{execution}.QueryExecution"),
            sessions=scala_object(jvm, "org.apache.spark.sql.classic.SparkSession"),
            none=scala_object(jvm, "scala.None"),
            empty=sequences.toSeq([]),
            to_sequence=sequences.toSeq,
        )

    def alias(self, value: Any, name: str, identity: Any) -> Any:
        return self.alias_class(value, name, identity, self.empty, self.none, self.empty)

    def counting(self, plan: Any) -> Any:
        """A filter that passes every row, used for its metric of output rows."""
        return self.filter(self.true, plan)

    def prepared(self, session: Any, plan: Any) -> Any:
        """The executable plan: with the session's shuffles, code generation and row formats, without AQE."""
        return self.execution.prepareForExecution(self.execution.preparations(session, self.none, False), plan)

    def sequence(self, *items: Any) -> Any:
        return self.to_sequence(list(items))


def _is_leaf(step: Any, leaf: DataFrame) -> bool:
    return bool(step.outputSet().equals(_java(leaf).queryExecution().analyzed().outputSet()))


def _added_up_first(steps: Sequence[Any]) -> list[Any]:
    """Move a partial aggregate below the exchange that feeds it, so that fewer rows are shuffled.

    Spark does this for the exchanges that it inserts, but not for an explicit repartition.
    """
    ordered, names = [*steps], [step.nodeName() for step in steps]
    for place in range(len(names) - 2):
        if names[place : place + 3] == TO_ADD_UP and _can_be_sent(ordered[place + 1], ordered[place + 2]):
            ordered[place + 1], ordered[place + 2] = ordered[place + 2], ordered[place + 1]
    return ordered


def _can_be_sent(sums: Any, exchange: Any) -> bool:
    """Whether the exchange can partition the output of the partial aggregate: it has the partitioning columns."""
    how = exchange.outputPartitioning()
    kind = how.getClass().getSimpleName()
    return kind == TO_ONE or (kind == BY_KEYS and bool(how.references().subsetOf(sums.outputSet())))


def _filters(plan: Any, wanted: int) -> list[Any]:
    """The first `wanted` filters of a chain of single-input operators, from the root down."""
    filters: list[Any] = []
    # Stop at the last one needed: each step is a call into the JVM.
    while True:
        if plan.nodeName() == FILTER:
            filters.append(plan)
            if len(filters) == wanted:
                return filters
        plan = plan.child()


def _metric(node: Any) -> Any:
    return node.metrics().apply(ROWS_OUT)


def _java(frame: DataFrame) -> Any:
    return frame._jdf


def _each(items: Any) -> list[Any]:
    values = items.toList()
    return [values.apply(index) for index in range(values.size())]
