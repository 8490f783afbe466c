"""Executable plans with the code that Spark has generated for them, run again over another scan.

Spark generates the source of a stage for every plan, only to find it in its cache of compiled code: 25 ms for the
decoder of a small epoch, 40 ms for the two stages that group a view's rows. The input of a stage is only an RDD, so the
next epoch can reuse the stages, and the scan with other files. Spark's plan nodes must not leave this module and
`plan_template`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext

from laminae.spark.catalyst.jvm import TO_SEQUENCES, java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = logging.getLogger(__name__)
EXECUTION = "org.apache.spark.sql.execution"
STAGE, INPUT, EXCHANGE, PROJECT = "WholeStageCodegen", "InputAdapter", "Exchange", "Project"
SCAN, ROWS = "FileSourceScanExec", "RDDScanExec"
DATA_SIZE, STAGE_TIME = "dataSize", "pipelineTime"
# The bytecode limit of a Java method. Beyond it Spark runs the plan without whole-stage code generation.
LONGEST_METHOD = 65535


@dataclass(frozen=True, slots=True)
class _Stage:
    """A transformation of a partition's rows: a whole-stage-codegen stage, or a single interpreted projection."""

    factory: Any
    tag: Any

    def upon(self, rows: Any) -> Any:
        return rows.mapPartitionsWithEvaluator(self.factory, self.tag)


@dataclass(frozen=True, slots=True)
class _Shuffle:
    """A shuffle. `node` is the exchange that Spark planned; it defines the partitioning."""

    node: Any
    how: tuple[Any, ...]
    shuffled: Any
    read_metrics: Any

    def upon(self, rows: Any) -> Any:
        return self.shuffled(self.node.prepareShuffleDependency(rows, *self.how), self.read_metrics)


@dataclass(frozen=True, slots=True)
class _Scan:
    """A file scan. What does not depend on the files is looked up once: each lookup is a call into the JVM."""

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
        """The scan node over other files; None when one of them is missing.

        Spark's file index silently skips a missing path. `spark.read` checks the paths before it makes an index.
        """
        files = self.to_sequence([self.path(path) for path in paths])
        index = self.index(session, files, self.options, self.none, *self.rest_of_index)
        if index.allFiles().size() != len(paths):
            return None
        return self.node.copy(self.relation.copy(index, *self.rest_of_relation, session), *self.rest_of_node)


@dataclass(frozen=True, slots=True)
class CompiledSteps:
    """The stages and shuffles above an input RDD, from the bottom up."""

    steps: tuple[_Stage | _Shuffle, ...]

    def upon(self, rows: Any) -> Any:
        """Apply the steps to an RDD with the schema that they were compiled for, and return the result RDD."""
        for step in self.steps:
            rows = step.upon(rows)
        return rows


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A file scan and the compiled steps above it."""

    scan: _Scan
    is_columnar: bool
    steps: CompiledSteps

    def rows(self) -> Any:
        """The result RDD over the files that the plan was compiled with."""
        return self._above(self.scan.node)

    def rows_of(self, session: Any, paths: Sequence[str]) -> Any | None:
        """The result RDD over other files of the same kind; None when one of them is missing."""
        scan = self.scan.over(session, paths)
        # The session's settings for reading files may have changed since the code was generated.
        if scan is None or bool(scan.supportsColumnar()) != self.is_columnar:
            return None
        return self._above(scan)

    def _above(self, scan: Any) -> Any:
        return self.steps.upon(scan.executeColumnar() if self.is_columnar else scan.execute())


def compiled(prepared: Any) -> CompiledPlan | CompiledSteps | None:
    """Compile a prepared plan. None if it has several inputs, another kind of leaf, or other steps than the above."""
    chain = _nodes(prepared)
    if chain is None:
        return None
    nodes, leaf = chain
    try:
        steps = [_step(node) for node in reversed(nodes)]
        whole = CompiledSteps(tuple(step for step in steps if step is not None))
        if len(whole.steps) != len(steps):
            return None
        if leaf.getClass().getSimpleName() == ROWS:
            return whole
        return CompiledPlan(_Scan.of(leaf), bool(leaf.supportsColumnar()), whole)
    except Py4JError as problem:
        LOG.info("code of an epoch is generated again in each epoch: %s", problem)
        return None


def rows_below(prepared: Any) -> Any:
    """The RDD at the leaf of a plan for which `compiled` has returned `CompiledSteps`."""
    chain = _nodes(prepared)
    assert chain is not None  # `compiled` has accepted the plan
    return chain[1].rdd()


def _nodes(plan: Any) -> tuple[list[Any], Any] | None:
    """Stages, projections and exchanges from the root down, and the leaf below them: a file scan or an RDD scan."""
    nodes: list[Any] = []
    while plan.children().size():
        if _is_stage(plan):
            below = plan.child()
            while below.nodeName() != INPUT:
                if (inputs := below.children()).size() != 1:
                    # An RDD scan is fused into the stage, whose code reads its rows as it reads another stage's output.
                    return ([*nodes, plan], below) if below.getClass().getSimpleName() == ROWS else None
                below = inputs.head()
        elif plan.nodeName() in (EXCHANGE, PROJECT):
            below = plan
        else:
            return None
        nodes.append(plan)
        plan = below.child()
    is_whole = nodes and _is_stage(nodes[-1]) and plan.getClass().getSimpleName() == SCAN
    return (nodes, plan) if is_whole else None


def _step(node: Any) -> _Stage | _Shuffle | None:
    if node.nodeName() == EXCHANGE:
        return _shuffle(node)
    return _stage(node) if _is_stage(node) else _projection(node)


def _is_stage(node: Any) -> bool:
    return str(node.nodeName()).startswith(STAGE)


def _stage(node: Any) -> _Stage | None:
    jvm: Any = SparkContext._jvm
    generated = node.doCodeGen()
    source, references = generated._2(), generated._1().references()
    generator = scala_object(jvm, "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator")
    if generator.compile(source)._2().maxMethodCodeSize() > LONGEST_METHOD:
        return None
    tags = _class_tags()
    factory = java_class(jvm, f"{EXECUTION}.WholeStageCodegenEvaluatorFactory")(
        node.tryBroadcastCleanedSource(source), node.longMetric(STAGE_TIME), references.toArray(tags.Any())
    )
    return _Stage(factory, _of_rows(tags))


def _projection(node: Any) -> _Stage:
    """A projection with an expression for which Spark generates no code."""
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
