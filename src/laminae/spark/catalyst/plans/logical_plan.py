"""Logical plans as Spark's parser, analyzer and optimizer make them, with the attributes that laminae uses.

Each attribute is one or a few calls into the JVM, made when it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from laminae.spark.catalyst.jvm import SQL_PARSER, java_class, scala_items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

PLAN_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
TREE_NODE = "org.apache.spark.sql.catalyst.trees.TreeNode"
INVOKE = "java.lang.invoke."


@dataclass(frozen=True, slots=True)
class Origin:
    """The position of a node in the text. `start` and `stop` count UTF-16 code units; None for a node without text."""

    line: int
    column: int
    start: int | None
    stop: int | None

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, both from 1."""
        return self.line, self.column


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call as it is written: the name with its dots, and the number of arguments."""

    name: str
    arguments: int


@dataclass(frozen=True)
class _Node:
    """A node of a parsed tree. `_plan_expressions` is the Java class of expressions that contain a plan."""

    _java: Any
    _plan_expressions: Any

    @cached_property
    def kind(self) -> str:
        """The class of the node without its package."""
        return str(self._java.getClass().getSimpleName())

    @property
    def origin(self) -> Origin:
        origin = self._java.origin()
        start, stop = _defined(origin.startIndex()), _defined(origin.stopIndex())
        line, column = _defined(origin.line()), _defined(origin.startPosition())
        return Origin(1 if line is None else line, 1 if column is None else column + 1, start, stop)

    @property
    def function(self) -> FunctionCall | None:
        """The function that the node calls, None for a node that calls none by name."""
        match self.kind:
            case "UnresolvedGenerator":
                return FunctionCall(str(self._java.name().unquotedString()), int(self._java.children().size()))
            case "UnresolvedFunction":
                name = ".".join(map(str, scala_items(self._java.nameParts())))
                return FunctionCall(name, int(self._java.arguments().size()))
            case "UnresolvedTableValuedFunction":
                name = ".".join(map(str, scala_items(self._java.name())))
                return FunctionCall(name, int(self._java.functionArgs().size()))
        return None


class ExpressionNode(_Node):
    """An expression of a parsed query."""

    @cached_property
    def class_name(self) -> str:
        return str(self._java.getClass().getName())

    @cached_property
    def kind(self) -> str:
        return self.class_name.rpartition(".")[2]

    @property
    def subquery(self) -> PlanNode | None:
        """The plan of a subquery expression."""
        if not self._plan_expressions.isInstance(self._java):
            return None
        return PlanNode(self._java.plan(), self._plan_expressions)

    @property
    def children(self) -> Iterator[ExpressionNode]:
        return (ExpressionNode(child, self._plan_expressions) for child in scala_items(self._java.children()))


class PlanNode(_Node):
    """An operator of a parsed query. An attribute that only some operators have is read for these alone."""

    @property
    def name(self) -> str:
        return str(self._java.nodeName())

    @property
    def children(self) -> Iterator[PlanNode]:
        return (PlanNode(child, self._plan_expressions) for child in scala_items(self._java.children()))

    @property
    def expressions(self) -> Iterator[ExpressionNode]:
        return (ExpressionNode(node, self._plan_expressions) for node in scala_items(self._java.expressions()))

    @property
    def window_definitions(self) -> Iterator[ExpressionNode]:
        """The definitions of a WINDOW clause: they are the values of a map, which `expressions` does not include."""
        if self.kind != "WithWindowDefinition":
            return iter(())
        windows = scala_items(self._java.windowDefinitions().values())
        return (ExpressionNode(window, self._plan_expressions) for window in windows)

    @property
    def common_tables(self) -> Iterator[tuple[str, PlanNode]]:
        """Name and plan of each common table expression of an UnresolvedWith, in order."""
        for common in scala_items(self._java.cteRelations()):
            yield str(common._1()), PlanNode(common._2(), self._plan_expressions)

    @property
    def allows_recursion(self) -> bool:
        """WITH RECURSIVE, of an UnresolvedWith."""
        return bool(self._java.allowRecursion())

    @property
    def relation_name(self) -> tuple[str, ...]:
        """The parts of the name of an UnresolvedRelation."""
        return tuple(str(part) for part in scala_items(self._java.multipartIdentifier()))

    @property
    def is_streaming(self) -> bool:
        return bool(self._java.isStreaming())


def parsed_plan(spark: SparkSession, text: str) -> PlanNode:
    """The unresolved plan of a query. No table, file or class is accessed.

    It uses Spark SQL's own parser, not that of the session, which extensions may have replaced. The parser takes its
    settings from the active session of the thread.
    """
    jvm: Any = spark.sparkContext._jvm
    plan_expressions = java_class(jvm, "java.lang.Class").forName(PLAN_EXPRESSION)
    return PlanNode(java_class(jvm, SQL_PARSER)().parsePlan(text), plan_expressions)


@dataclass(frozen=True, slots=True)
class AnalyzedNode:
    """An operator of an analysed plan: its class without the package, and the classes of all its expressions."""

    kind: str
    expression_classes: tuple[str, ...]


def analyzed_nodes(frame: DataFrame) -> Iterator[AnalyzedNode]:
    """The operators of a query and of its subqueries, but not those of the relations that it reads."""
    classes_of_tree = _classes_of_tree(frame.sparkSession)
    for plan in _plans(frame._jdf.queryExecution().analyzed()):
        # All expressions of a node in two calls into the JVM; one by one, each expression would take ten.
        text = str(plan.expressions().flatMap(classes_of_tree).distinct().mkString("\n"))
        names = (line.removeprefix("class ") for line in text.splitlines())
        yield AnalyzedNode(str(plan.getClass().getSimpleName()), tuple(names))


def optimized_grouping(frame: DataFrame) -> tuple[bool, ...] | None:
    """The grouping expressions of the topmost aggregate of the optimised plan: whether each is constant.

    None if the plan has no aggregate. The plan must be a chain of single-input operators down to the aggregate.
    """
    node: Any = frame._jdf.queryExecution().optimizedPlan()
    while node.nodeName() != "Aggregate":
        if node.children().isEmpty():
            return None
        node = node.children().head()
    return tuple(bool(expression.foldable()) for expression in scala_items(node.groupingExpressions()))


def _plans(plan: Any) -> Iterator[Any]:
    yield plan
    if plan.getClass().getSimpleName() == "View":
        return
    for inside in (plan.children(), plan.subqueries()):
        for inner in scala_items(inside):
            yield from _plans(inner)


def _classes_of_tree(spark: SparkSession) -> Any:
    """The Scala function `tree => tree.map(_.getClass)`, built from method handles, as laminae ships no JVM code."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    loader = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    handles, types = java_class(jvm, f"{INVOKE}MethodHandles"), java_class(jvm, f"{INVOKE}MethodType")
    proxies = java_class(jvm, f"{INVOKE}MethodHandleProxies")
    function, tree = loader.loadClass("scala.Function1"), loader.loadClass(TREE_NODE)
    lookup = handles.publicLookup()
    get_class = lookup.findVirtual(
        loader.loadClass("java.lang.Object"), "getClass", types.methodType(loader.loadClass("java.lang.Class"))
    )
    sequence = loader.loadClass("scala.collection.immutable.Seq")
    map_tree = lookup.findVirtual(tree, "map", types.methodType(sequence, function))
    argument = gateway.new_array(java_class(jvm, "java.lang.Object"), 1)
    argument[0] = proxies.asInterfaceInstance(function, get_class)
    return proxies.asInterfaceInstance(function, handles.insertArguments(map_tree, 1, argument))


def _defined(option: Any) -> int | None:
    return int(option.get()) if option.isDefined() else None
