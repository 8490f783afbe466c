"""Which functions a query may call, and which aggregates a view can maintain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import FunctionNotAllowed
from laminae.views.kernels.group_by.aggregates import Function
from laminae.views.sql.function_names import BUILT_IN, MOST_ARGUMENTS, OUTSIDE
from laminae.views.sql.nesting import refuse_deep_nesting
from laminae.views.sql.sql_text import sql_of
from laminae.views.sql.verbatim import Written
from laminae.views.windows import OWN_WINDOWS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

KEPT: dict[type[exp.Expr], Function] = {
    exp.Count: Function.COUNT,
    exp.Sum: Function.SUM,
    exp.Avg: Function.AVG,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
}
KEPT_NAMES = "COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT)"
ALLOWED = "allowed_functions"
"""The setting of a home that lists allowed user-defined functions."""

# Calls that sqlglot's Spark dialect parses into dedicated nodes; they occur in views created with the first reading.
NOT_DETERMINISTIC_NODES: tuple[type[exp.Expr], ...] = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentUser,
)
GENERATOR_NODES: tuple[type[exp.Expr], ...] = (exp.Explode, exp.Posexplode)


def function_name(node: exp.Expr) -> str | None:
    """The name of a call as Spark knows it, in lower case; None for nodes that are not calls."""
    if isinstance(node, Written):
        return None if node.this is None else str(node.this).casefold()
    if isinstance(node, exp.Anonymous):
        return str(node.this.name if isinstance(node.this, exp.Identifier) else node.this).casefold()
    if isinstance(node, exp.Func) and not isinstance(node, exp.And | exp.Or):
        return sql_of(node).partition("(")[0].casefold()
    return None


def allowed_functions(settings: Mapping[str, str]) -> frozenset[str]:
    """The functions that a home allows queries to call in addition to Spark's built-in ones."""
    return frozenset(name.strip().casefold() for name in settings.get(ALLOWED, "").split(",") if name.strip())


def refuse_function(name: str, arguments: int, allowed: Container[str]) -> None:
    """Raise `FunctionNotAllowed` unless it is a Spark built-in that accesses only its query, or is allowed."""
    if (reason := OUTSIDE.get(name)) is not None:
        raise FunctionNotAllowed(function=name, problem=reason, advice="No setting allows it.")
    if arguments > MOST_ARGUMENTS.get(name, arguments):
        raise FunctionNotAllowed(
            function=name, problem="its options can name a file to read", advice="Call it without options."
        )
    if name not in BUILT_IN and name not in allowed:
        raise FunctionNotAllowed(
            function=name,
            problem="it is not a built-in function of Spark",
            advice=f"Check the spelling, or allow a user-defined function: SET {ALLOWED} = '{name}'.",
        )


def refuse_functions(query: exp.Expr, allowed: Container[str]) -> None:
    """Apply `refuse_function` to every call in a query parsed by `parse_query`."""
    with refuse_deep_nesting():
        for node in query.walk(bfs=False):
            name = function_name(node)
            if name is not None and name not in OWN_WINDOWS:
                refuse_function(_unqualified(node, name), len(node.expressions), allowed)


def _unqualified(node: exp.Expr, name: str) -> str:
    """The name including its qualifier: `default.f(x)` is not Spark's built-in function f."""
    above = node.parent
    if not isinstance(above, exp.Dot | exp.Column) or above.expression is not node:
        return name
    return f"{sql_of(above.this)}.{name}".casefold().removeprefix("system.").removeprefix("builtin.")
