"""A SELECT as parsed by Spark's own parser: which relations it names, at which positions, and which functions it calls.

The query text is never regenerated from the plan. Nothing is resolved here, so no table, file or class is accessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.errors import QueryFailed, UnsupportedSql
from laminae.secrets import masked
from laminae.spark.catalyst.plans.logical_plan import parsed_plan
from laminae.spark.catalyst.spark_errors import RAISED_BY_SPARK
from laminae.spark.query.nodes import EXPRESSIONS, PLANS
from laminae.spark.query.resolved import not_allowed
from laminae.views.functions import refuse_function
from laminae.views.sql.function_names import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from laminae.spark.catalyst.plans.logical_plan import ExpressionNode, FunctionCall, PlanNode

NO_ACTIONS = "A SELECT reads sources, views and laminar_catalog; it cannot execute commands or write."


@dataclass(frozen=True, slots=True)
class RelationName:
    """A relation that is not defined in the query itself; `start` and `end` delimit its name in the text."""

    parts: tuple[str, ...]
    start: int
    end: int
    has_alias: bool


@dataclass(slots=True)
class ParsedQuery:
    text: str
    relations: list[RelationName] = field(default_factory=list)
    functions: set[tuple[str, int]] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    """Names of common table expressions, in lower case."""

    @property
    def is_built_in(self) -> bool:
        """Whether it calls only Spark's built-in functions."""
        return all(name in BUILT_IN for name, _ in self.functions)

    def refuse_functions(self, allowed: Collection[str]) -> None:
        for name, arguments in sorted(self.functions):
            refuse_function(name, arguments, allowed)


def parse_on_spark(spark: SparkSession, text: str) -> ParsedQuery:
    """The parsed query, or `QueryFailed` with Spark's error message.

    The session must be the active one: its settings disable variable substitution in the text
    (`spark.sql.variable.substitute`).
    """
    parsed = ParsedQuery(text)
    try:
        _Walk(parsed).plan(parsed_plan(spark, text), frozenset(), False)
    except RAISED_BY_SPARK as problem:
        raise QueryFailed(problem=reason(problem)) from None
    return parsed


def reason(problem: Exception) -> str:
    """The first non-empty line of Spark's error, with secrets masked."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return masked(lines[0]) if lines else type(problem).__name__


@dataclass(slots=True)
class _Walk:
    parsed: ParsedQuery

    def plan(self, node: PlanNode, scope: frozenset[str], has_alias: bool) -> None:
        kind = node.kind
        if kind not in PLANS:
            line, column = node.origin.position
            raise UnsupportedSql(line=line, column=column, construct=f"{node.name} in a SELECT", advice=NO_ACTIONS)
        if kind == "UnresolvedRelation":
            self._relation(node, scope, has_alias)
        self._function(node.function)
        if kind == "UnresolvedWith":
            scope = self._common(node, scope)
        for expression in (*node.window_definitions, *node.expressions):
            self._expression(expression, scope)
        for child in node.children:
            self.plan(child, scope, kind == "SubqueryAlias")

    def _common(self, node: PlanNode, scope: frozenset[str]) -> frozenset[str]:
        """A common table expression can refer to earlier ones, and to itself if it is recursive."""
        allows_recursion = node.allows_recursion
        for written, definition in node.common_tables:
            name = written.casefold()
            self.plan(definition, scope | {name} if allows_recursion else scope, False)
            scope |= {name}
            self.parsed.defined.add(name)
        return scope

    def _relation(self, node: PlanNode, scope: frozenset[str], has_alias: bool) -> None:
        parts = node.relation_name
        if len(parts) == 1 and parts[0].casefold() in scope:
            return
        origin = node.origin
        if node.is_streaming or origin.start is None or origin.stop is None:
            raise QueryFailed(problem=f"{'.'.join(parts)} cannot be read here")
        # Java counts UTF-16 code units, Python counts characters.
        text = self.parsed.text
        first, last = _character_index(text, origin.start), _character_index(text, origin.stop + 1)
        self.parsed.relations.append(RelationName(parts, first, last, has_alias))

    def _expression(self, node: ExpressionNode, scope: frozenset[str]) -> None:
        name = node.class_name
        kind = name.rpartition(".")[2]
        if kind == "ExpressionWithUnresolvedIdentifier":
            # Only the analyzer could determine which function or column it names.
            line, column = node.origin.position
            advice = "Write the name itself."
            raise UnsupportedSql(line=line, column=column, construct="IDENTIFIER in a SELECT", advice=advice)
        if name not in EXPRESSIONS:
            raise not_allowed(kind, *node.origin.position)
        self._function(node.function)
        subquery = node.subquery
        if subquery is not None:
            self.plan(subquery, scope, False)
        for child in node.children:
            self._expression(child, scope)

    def _function(self, function: FunctionCall | None) -> None:
        if function is not None:
            plain = function.name.casefold().removeprefix("system.").removeprefix("builtin.")
            self.parsed.functions.add((plain, function.arguments))


def _character_index(text: str, units: int) -> int:
    """The index of the character that has this many UTF-16 code units before it."""
    if text.isascii():
        return units
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass"))
