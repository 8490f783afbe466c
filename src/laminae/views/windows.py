"""TUMBLE and HOP as other engines write them, in the words of Spark's `window`, and the times that windows are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from laminae.errors import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WINDOW = "window"
# Name: the size and then the slide, by their places among the arguments behind the time.
_WINDOWS = {"tumble": (1,), "hop": (2, 1)}
_USES = {"tumble": "TUMBLE(ts, INTERVAL '10' MINUTE)", "hop": "HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"}


def as_windows(query: exp.Expr) -> exp.Expr:
    """The query with every TUMBLE, HOP, and their _START and _END, as `window(...)` or an end of it."""
    return query.transform(_rewritten)


def _rewritten(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        return node
    kind, _, end = str(node.this).casefold().partition("_")
    if kind not in _WINDOWS or end not in ("", "start", "end"):
        return node
    places = _WINDOWS[kind]
    if len(node.expressions) != 1 + len(places):
        raise QueryFailed(problem=f"{node.sql(dialect='spark')} is not like {_USES[kind]}")
    spans = [exp.Literal.string(_span(node.expressions[place], kind)) for place in places]
    window = exp.Anonymous(this="window", expressions=[node.expressions[0].copy(), *spans])
    return exp.Dot(this=window, expression=exp.to_identifier(end)) if end else window


def _span(node: exp.Expr, kind: str) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.unit is not None:
        return f"{node.this.this} {node.unit.name.lower()}"
    raise QueryFailed(problem=f"{node.sql(dialect='spark')} is not a length of time as in {_USES[kind]}")


def times_in(expressions: Iterable[str]) -> tuple[str, ...]:
    """What the windows in these expressions of an operator are of, each once."""
    nodes = (sqlglot.parse_one(sql, dialect="spark") for sql in expressions)
    calls = (call for node in nodes for call in node.find_all(exp.Anonymous) if is_window(call))
    return tuple(dict.fromkeys(call.expressions[0].sql(dialect="spark") for call in calls))


def with_times(sql: str, columns: Mapping[str, str]) -> str:
    """An expression with these columns in its windows where they hold the time that was computed there."""
    node = sqlglot.parse_one(sql, dialect="spark")
    for call in node.find_all(exp.Anonymous):
        if is_window(call) and (name := columns.get(call.expressions[0].sql(dialect="spark"))) is not None:
            call.expressions[0].replace(exp.column(name))
    return str(node.sql(dialect="spark"))


def is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() == WINDOW
