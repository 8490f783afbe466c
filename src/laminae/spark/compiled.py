"""Plans that are ready to run, with the code that Spark has generated for them, run again upon another scan.

Spark generates the text of a stage's code for every plan, only to find that it has compiled that text before: 25 ms for
the decoder of a small epoch, 40 ms for the two stages to the groups of a view. Below a stage is an RDD and nothing
more, so the stages of one epoch serve the next, and so does the scan but for its files. Spark's plan nodes do not leave
this module and `template`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext

from laminae.spark.java import TO_SEQUENCES, java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = logging.getLogger(__name__)
EXECUTION = "org.apache.spark.sql.execution"
STAGE, INPUT, EXCHANGE, PROJECT = "WholeStageCodegen", "InputAdapter", "Exchange", "Project"
SCAN, ROWS = "FileSourceScanExec", "RDDScanExec"
DATA_SIZE, STAGE_TIME = "dataSize", "pipelineTime"
# The JVM compiles no longer method, and Spark then runs the plan without code of its own.
LONGEST_METHOD = 65535


@dataclass(frozen=True, slots=True)
class _Stage:
    """What is made of the rows of a partition: steps as one method, or a projection that Spark runs by itself."""

    factory: Any
    tag: Any

    def upon(self, rows: Any) -> Any:
        return rows.mapPartitionsWithEvaluator(self.factory, self.tag)


@dataclass(frozen=True, slots=True)
class _Shuffle:
    """`node` is the exchange that Spark planned, which says how."""

    node: Any
    how: tuple[Any, ...]
    shuffled: Any
    read_metrics: Any

    def upon(self, rows: Any) -> Any:
        return self.shuffled(self.node.prepareShuffleDependency(rows, *self.how), self.read_metrics)


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan of files. What is the same for other files is looked up once: each name is a call into the JVM."""

    node: Any
    relation: Any
    options: Any
    index: Any
    path: Any
    none: Any
    to_sequence: Any
    rest_of_index: tuple[Any, ...]
    rest_of_relation: tuple[Any, ...]
    rest_of_node: tuple[Any, ...]

    @classmethod
    def of(cls, node: Any) -> _Scan:
        jvm: Any = SparkContext._jvm
        index, relation = java_class(jvm, f"{EXECUTION}.datasources.InMemoryFileIndex"), node.relation()
        return cls(
            node=node,
            relation=relation,
            options=relation.options(),
            index=index,
            path=java_class(jvm, "org.apache.hadoop.fs.Path"),
            none=scala_object(jvm, "scala.None"),
            to_sequence=java_class(jvm, TO_SEQUENCES).toSeq,
            rest_of_index=tuple(getattr(index, f"$lessinit$greater$default${place}")() for place in (5, 6, 7)),
            rest_of_relation=tuple(getattr(relation, f"copy$default${place}")() for place in range(2, 7)),
            rest_of_node=tuple(getattr(node, f"copy$default${place}")() for place in range(2, 11)),
        )

    def over(self, session: Any, paths: Sequence[str]) -> Any | None:
        """The node of a scan of other files; None when one of them is not there.

        Spark passes over a path that is gone when it lists them: whoever asks it for a read has looked before.
        """
        files = self.to_sequence([self.path(path) for path in paths])
        index = self.index(session, files, self.options, self.none, *self.rest_of_index)
        if index.allFiles().size() != len(paths):
            return None
        return self.node.copy(self.relation.copy(index, *self.rest_of_relation, session), *self.rest_of_node)


@dataclass(frozen=True, slots=True)
class CompiledSteps:
    """The stages and shuffles above some rows, from these up."""

    steps: tuple[_Stage | _Shuffle, ...]

    def upon(self, rows: Any) -> Any:
        """An RDD of what they make of an RDD of rows like those that they were made upon."""
        for step in self.steps:
            rows = step.upon(rows)
        return rows


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A scan of files, and what is done with its rows."""

    scan: _Scan
    is_columnar: bool
    steps: CompiledSteps

    def rows(self) -> Any:
        """An RDD of what the plan makes of the files that it was made upon."""
        return self._above(self.scan.node)

    def rows_of(self, session: Any, paths: Sequence[str]) -> Any | None:
        """The same of other files, which are like those; None when one of them is not there."""
        scan = self.scan.over(session, paths)
        # How a session reads files may have changed since the code was generated.
        if scan is None or bool(scan.supportsColumnar()) != self.is_columnar:
            return None
        return self._above(scan)

    def _above(self, scan: Any) -> Any:
        return self.steps.upon(scan.executeColumnar() if self.is_columnar else scan.execute())


def compiled(prepared: Any) -> CompiledPlan | CompiledSteps | None:
    """None for a plan of another kind: with several inputs, upon something else, or with other steps than the above."""
    found = _nodes(prepared)
    if found is None:
        return None
    nodes, leaf = found
    try:
        steps = [_step(node) for node in reversed(nodes)]
        whole = CompiledSteps(tuple(step for step in steps if step is not None))
        if len(whole.steps) != len(steps):
            return None
        if leaf.getClass().getSimpleName() == ROWS:
            return whole
        return CompiledPlan(_Scan.of(leaf), bool(leaf.supportsColumnar()), whole)
    except Py4JError as problem:
        LOG.info("Spark's code for an epoch is generated anew for each: %s", problem)
        return None


def rows_below(prepared: Any) -> Any:
    """The RDD at the end of a plan that `compiled` has found to be of that kind."""
    found = _nodes(prepared)
    assert found is not None  # it was taken apart before
    return found[1].rdd()


def _nodes(plan: Any) -> tuple[list[Any], Any] | None:
    """Stages and exchanges from the root down, and the scan below them, or the rows."""
    found: list[Any] = []
    while plan.children().size():
        if _is_stage(plan):
            below = plan.child()
            while below.nodeName() != INPUT:
                if (inputs := below.children()).size() != 1:
                    # The code of a stage takes rows as it takes what comes out of another one.
                    return ([*found, plan], below) if below.getClass().getSimpleName() == ROWS else None
                below = inputs.head()
        elif plan.nodeName() in (EXCHANGE, PROJECT):
            below = plan
        else:
            return None
        found.append(plan)
        plan = below.child()
    is_whole = found and _is_stage(found[-1]) and plan.getClass().getSimpleName() == SCAN
    return (found, plan) if is_whole else None


def _step(node: Any) -> _Stage | _Shuffle | None:
    if node.nodeName() == EXCHANGE:
        return _shuffle(node)
    return _stage(node) if _is_stage(node) else _projection(node)


def _is_stage(node: Any) -> bool:
    return str(node.nodeName()).startswith(STAGE)


def _stage(node: Any) -> _Stage | None:
    jvm: Any = SparkContext._jvm
    made = node.doCodeGen()
    source, references = made._2(), made._1().references()
    generator = scala_object(jvm, "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator")
    if generator.compile(source)._2().maxMethodCodeSize() > LONGEST_METHOD:
        return None
    tags = _class_tags()
    factory = java_class(jvm, f"{EXECUTION}.WholeStageCodegenEvaluatorFactory")(
        node.tryBroadcastCleanedSource(source), node.longMetric(STAGE_TIME), references.toArray(tags.Any())
    )
    return _Stage(factory, _of_rows(tags))


def _projection(node: Any) -> _Stage:
    """One with an expression for which no code is generated."""
    jvm: Any = SparkContext._jvm
    factory = java_class(jvm, f"{EXECUTION}.ProjectEvaluatorFactory")(node.projectList(), node.child().output())
    return _Stage(factory, _of_rows(_class_tags()))


def _class_tags() -> Any:
    jvm: Any = SparkContext._jvm
    return scala_object(jvm, "scala.reflect.ClassTag")


def _of_rows(tags: Any) -> Any:
    jvm: Any = SparkContext._jvm
    return tags.apply(java_class(jvm, "java.lang.Class").forName("org.apache.spark.sql.catalyst.InternalRow"))


def _shuffle(node: Any) -> _Shuffle:
    jvm: Any = SparkContext._jvm
    columns = node.child().output()
    serializer = java_class(jvm, f"{EXECUTION}.UnsafeRowSerializer")(columns.size(), node.longMetric(DATA_SIZE))
    how = (columns, node.outputPartitioning(), serializer, node.metrics())
    return _Shuffle(node, how, java_class(jvm, f"{EXECUTION}.ShuffledRowRDD"), node.readMetrics())
