"""A plan that is analysed, optimised and planned once and then set upon the records of each epoch.

Spark spends 200 ms on the expressions of a ten-column decoder before the first row of an epoch moves (ResolveFunctions,
type coercion, constant folding, and 150 rules more, each over the whole tree). All of that is the same for every epoch:
only the leaf differs. This module, `compiled` and `planned` take Spark's own plan nodes apart; nothing leaves them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

from laminae.spark.compiled import CompiledPlan, CompiledSteps, compiled, rows_below
from laminae.spark.java import TO_SEQUENCES, java_class, scala_object
from laminae.spark.planned import MappedNodes, PlannedFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger(__name__)
FILTER, ROWS_OUT = "Filter", "numOutputRows"
AGGREGATE, EXCHANGE = "HashAggregate", "Exchange"
TO_ADD_UP = [AGGREGATE, AGGREGATE, EXCHANGE]
BY_KEYS, TO_ONE = "HashPartitioning", "SinglePartition$"
# Of the templates that are set upon one, the last few.
MOST_KEPT = 16


class Template:
    """`made` is a plan of steps with one input each, upon `leaf`. It serves every session.

    `by_partition`: what `made` adds up at last is left as each partition has it, under the names of its keys.
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
        self._java = _JavaNames.of(leaf.sparkSession.sparkContext._jvm)
        self._schema = _java(made).schema()
        self._kept: dict[Template | None, _Prepared] = {}
        self._used: dict[Template | None, bool] = {}
        # Of rows that are planned already; False where that cannot be kept.
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
        # Where Spark knows that there are no rows, what is left of a plan reads nothing, and would be read as the leaf.
        assert _is_leaf(step, leaf), "a template without its leaf"
        self._steps = _added_up_first(self._steps)
        self._filters = sum(each.nodeName() == FILTER for each in self._steps)
        # A filter passes on what it does not look at itself.
        used = (self._steps[0] if self._steps else step).outputSet()
        for each in self._steps:
            used = getattr(used, "$plus$plus")(each.references())
        self._attributes = {item.name(): item.exprId() for item in _each(step.output()) if used.contains(item)}
        self.columns = tuple(self._attributes)

    @staticmethod
    def can_be(leaf: DataFrame, made: DataFrame) -> bool:
        """Whether each step of the plan has one input, and the last of them is the leaf."""
        step: Any = _java(made).queryExecution().sparkPlan()
        while (inputs := step.children()).size() == 1:
            step = inputs.head()
        return bool(inputs.size() == 0) and _is_leaf(step, leaf)

    def upon(self, records: DataFrame, above: Template | None = None, *, keeps: bool = False) -> Grafted:
        """The plan with `records` for its leaf, and that of `above` upon it.

        The records have the template's columns, in the types of its leaf. With `keeps` the plan is there for `again`
        from its second use on: to take it apart costs more than it saves the first time.
        """
        session: Any = records.sparkSession._jsparkSession
        # What a shuffle looks like is asked of the session that is active in this thread.
        self._java.sessions.setActiveSession(session)
        plan = self._over(self._java.counting(self._renamed(_java(records).queryExecution().sparkPlan())))
        top, filters = self, 0
        if above is not None:
            plan, top, filters = above._over(above._renamed(plan)), above, above._filters
        ready = self._java.prepared(session, plan)
        counters = _filters(ready, filters + self._filters + 1)[filters:]
        stages = compiled(ready) if keeps and self._used.get(above) else None
        made = _Prepared(ready, stages, top, _metric(counters[0]), _metric(counters[-1]))
        if len(self._used) >= MOST_KEPT:
            self._used.clear()
            self._kept.clear()
        # One that cannot be kept is not taken apart again; one that need not be says nothing of the next.
        if keeps or above not in self._used:
            self._used[above] = above not in self._used or stages is not None
        if made.compiled is not None:
            self._kept[above] = made
        if isinstance(made.compiled, CompiledPlan):
            return made.run(records.sparkSession, made.compiled.rows())
        if isinstance(made.compiled, CompiledSteps):
            # The plan itself is not run: what it had run would be held as long as it is kept.
            return made.run(records.sparkSession, made.compiled.upon(rows_below(ready)))
        return made.run(records.sparkSession, ready.execute())

    def over(self, rows: PlannedFrame) -> PlannedFrame:
        """The plan upon rows that are planned already; nothing of it is counted."""
        spark = rows.sparkSession
        self._java.sessions.setActiveSession(spark._jsparkSession)
        if self._over_rows is None:
            # Upon no rows: a plan that is kept holds on to what is below it.
            found = compiled(self._ready(rows.without_rows()))
            self._over_rows = found if isinstance(found, CompiledSteps) else False
        if self._over_rows is False:
            return PlannedFrame.of(spark, self._ready(rows).execute(), self._schema, self._maps)
        return PlannedFrame.of(spark, self._over_rows.upon(rows.planned), self._schema, self._maps)

    def _ready(self, rows: DataFrame) -> Any:
        plan = self._over(self._renamed(_java(rows).queryExecution().sparkPlan()))
        return self._java.prepared(rows.sparkSession._jsparkSession, plan)

    def again(self, spark: SparkSession, files: Sequence[str], above: Template | None = None) -> Grafted | None:
        """The plan that was kept, upon files like those it was made upon; None without one, or when a file is gone."""
        kept = self._kept.get(above)
        if kept is None or not isinstance(kept.compiled, CompiledPlan):
            return None
        try:
            rows = kept.compiled.rows_of(spark._jsparkSession, files)
        except Py4JError as problem:
            LOG.info("a kept plan is made anew: %s", problem)
            del self._kept[above]
            return None
        return None if rows is None else kept.run(spark, rows)

    def again_upon(self, spark: SparkSession, rows: Any, above: Template | None = None) -> Grafted | None:
        """The plan that was kept, upon an RDD like the one below the records it was made upon; None without one."""
        kept = self._kept.get(above)
        if kept is None or not isinstance(kept.compiled, CompiledSteps):
            return None
        self._java.sessions.setActiveSession(spark._jsparkSession)
        return kept.run(spark, kept.compiled.upon(rows))

    def _over(self, plan: Any) -> Any:
        for step in reversed(self._steps):
            plan = step.withNewChildren(self._java.sequence(plan))
        return plan

    def _renamed(self, records: Any) -> Any:
        """The records under the identities that the template's expressions refer to."""
        given = {item.name(): item for item in _each(records.output())}
        names = [self._java.alias(given[name], name, identity) for name, identity in self._attributes.items()]
        return self._java.project(self._java.sequence(*names), records)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan that is ready to run; what went through its first filter and through the last, of all its runs."""

    plan: Any
    compiled: CompiledPlan | CompiledSteps | None
    top: Template
    passed: Any
    came: Any

    def run(self, spark: SparkSession, rows: Any) -> Grafted:
        frame = PlannedFrame.of(spark, rows, self.top._schema, self.top._maps)
        # The plan, and with it its metrics, must live as long as somebody counts.
        return Grafted(frame, self, self.passed.value(), self.came.value())


@dataclass(slots=True)
class Grafted:
    """A template's plan upon the records of one epoch, to be run once, and counted only when its job has ended."""

    frame: DataFrame
    _prepared: _Prepared
    _passed_before: int
    _came_before: int
    _counts: tuple[int, int] | None = None

    def count(self) -> int:
        """How many rows passed, each as often as a task that succeeded made it."""
        return self._counted()[0]

    def has_dropped(self) -> bool:
        """Whether a filter of the template kept a row back.

        Spark adds up the counts of attempts that succeeded. A partition that ran twice counts twice in both, so they
        are equal if and only if no row was kept back.
        """
        passed, came = self._counted()
        return came != passed

    def _counted(self) -> tuple[int, int]:
        if self._counts is None:
            passed, came = self._prepared.passed.value(), self._prepared.came.value()
            self._counts = int(passed - self._passed_before), int(came - self._came_before)
        return self._counts


@dataclass(frozen=True, slots=True)
class _JavaNames:
    """Classes of Spark's, looked up once: each part of a dotted name is a call into the JVM."""

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
    @lru_cache(maxsize=1)
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
        """A filter that lets everything through, for the sake of its count."""
        return self.filter(self.true, plan)

    def prepared(self, session: Any, plan: Any) -> Any:
        """Ready to run: with shuffles as the session has them, code generation and row formats; nothing adaptive."""
        return self.execution.prepareForExecution(self.execution.preparations(session, self.none, False), plan)

    def sequence(self, *items: Any) -> Any:
        return self.to_sequence(list(items))


def _is_leaf(step: Any, leaf: DataFrame) -> bool:
    return bool(step.outputSet().equals(_java(leaf).queryExecution().analyzed().outputSet()))


def _added_up_first(steps: Sequence[Any]) -> list[Any]:
    """Rows that are sent to where they are added up are added up before as well, so that fewer are sent.

    Spark does this by itself where it shuffles of its own accord, and not where it is told to.
    """
    made, names = [*steps], [each.nodeName() for each in steps]
    for place in range(len(names) - 2):
        if names[place : place + 3] == TO_ADD_UP and _can_be_sent(made[place + 1], made[place + 2]):
            made[place + 1], made[place + 2] = made[place + 2], made[place + 1]
    return made


def _can_be_sent(sums: Any, exchange: Any) -> bool:
    """Whether what decides where a row goes is there of its sums."""
    how = exchange.outputPartitioning()
    kind = how.getClass().getSimpleName()
    return kind == TO_ONE or (kind == BY_KEYS and bool(how.references().subsetOf(sums.outputSet())))


def _filters(plan: Any, wanted: int) -> list[Any]:
    """The first filters of a plan of steps with one input each, from the root down."""
    found: list[Any] = []
    # Each question is a call into the JVM.
    while True:
        if plan.nodeName() == FILTER:
            found.append(plan)
            if len(found) == wanted:
                return found
        plan = plan.child()


def _metric(node: Any) -> Any:
    return node.metrics().apply(ROWS_OUT)


def _java(frame: DataFrame) -> Any:
    return frame._jdf


def _each(items: Any) -> list[Any]:
    found = items.toList()
    return [found.apply(index) for index in range(found.size())]
