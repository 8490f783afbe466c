"""Rewrite TUMBLE and HOP, as other engines write them, to Spark's `window`; find the event times of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed
from laminae.views.sql.sql_text import comparable, parse_expression, span_of, sql_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WINDOW = "window"
# Name: indexes of the size and the slide (in the order that `window` takes them) in the argument list; the time has
# index 0.
_WINDOWS = {"tumble": (1,), "hop": (2, 1)}
OWN_WINDOWS = frozenset(f"{name}{end}" for name in _WINDOWS for end in ("", "_start", "_end"))
"""Window functions that laminae adds to Spark's."""
_USES = {"tumble": "TUMBLE(ts, INTERVAL '10' MINUTE)", "hop": "HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"}


_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def as_windows(query: exp.Expr) -> exp.Expr:
    """The query with every TUMBLE and HOP, and their _START and _END, as `window(...)` or one of its bounds."""
    return query.transform(_rewritten)


def _rewritten(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        return node
    kind, _, end = str(node.this).casefold().partition("_")
    if kind not in _WINDOWS or end not in ("", "start", "end"):
        return node
    places = _WINDOWS[kind]
    if len(node.expressions) != 1 + len(places):
        raise QueryFailed(problem=f"{sql_of(node)} is not like {_USES[kind]}")
    spans = [exp.Literal.string(_span(node.expressions[place], kind)) for place in places]
    window = exp.Anonymous(this="window", expressions=[node.expressions[0].copy(), *spans])
    return exp.Dot(this=window, expression=exp.to_identifier(end)) if end else window


def _span(node: exp.Expr, kind: str) -> str:
    if isinstance(node, exp.Literal) and (span := span_of(node)) is not None:
        return span
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.unit is not None:
        return f"{node.this.this} {node.unit.name.lower()}"
    raise QueryFailed(problem=f"{sql_of(node)} is not a length of time as in {_USES[kind]}")


def times_in(expressions: Iterable[str]) -> tuple[str, ...]:
    """The distinct time expressions of the windows in these expressions of an operator."""
    nodes = map(parse_expression, expressions)
    calls = (call for node in nodes for call in node.find_all(exp.Anonymous) if is_window(call))
    return tuple(dict.fromkeys(sql_of(call.expressions[0]) for call in calls))


def with_times(sql: str, columns: Mapping[str, str]) -> str:
    """Replace the time expressions of windows by the columns that hold their computed values."""
    node = parse_expression(sql)
    for call in node.find_all(exp.Anonymous):
        if is_window(call) and (name := columns.get(sql_of(call.expressions[0]))) is not None:
            call.expressions[0].replace(exp.column(name))
    return sql_of(node)


def is_same_window(first: exp.Expr, second: exp.Expr) -> bool:
    """Whether two calls of `window` define the same windows, however their durations are written."""
    return _meaning(first) == _meaning(second)


def _meaning(window: exp.Expr) -> list[tuple[str, object]]:
    time, *spans = window.expressions
    lengths = [_length(span_of(span)) if isinstance(span, exp.Literal) else None for span in spans]
    pairs = zip(spans, lengths, strict=True)
    return [("", comparable(time)), *(("", comparable(span)) if n is None else ("length", n) for span, n in pairs)]


def _length(span: str | None) -> int | None:
    """The duration in microseconds; None if it is not made of numbers and fixed-length units."""
    words = (span or "").casefold().removeprefix("interval ").split()
    numbers, units = words[::2], [_MICROSECONDS.get(unit.removesuffix("s")) for unit in words[1::2]]
    if not words or len(words) % 2 or not all(number.isdecimal() for number in numbers):
        return None
    known = [unit for unit in units if unit is not None]
    return sum(int(n) * unit for n, unit in zip(numbers, known, strict=True)) if len(known) == len(units) else None


def is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() == WINDOW
