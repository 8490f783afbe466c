"""Spark expressions as SQL text, built in Python and passed to the JVM once.

A pyspark Column makes a call into the JVM for every node: the expressions of a ten-column decoder took 1.5 s to build
with Columns and take 3 ms as text. Names and strings are quoted here, so that no caller concatenates SQL. Operators are
written as function calls: nested parentheses make Spark's parser exponentially slow (12 s for fifty columns).
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.identifiers import quoted
from laminae.spark.catalyst.literals import text_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column


@dataclass(frozen=True, slots=True)
class Expression:
    """One SQL expression. Its text can be used as an operand without parentheses."""

    sql: str

    @property
    def column(self) -> Column:
        return F.expr(self.sql)

    def field(self, name: str) -> Expression:
        return Expression(f"{self.sql}.{quoted(name)}")

    def cast(self, kind: str) -> Expression:
        return Expression(f"CAST({self.sql} AS {kind})")

    def try_cast(self, kind: str) -> Expression:
        return Expression(f"TRY_CAST({self.sql} AS {kind})")

    def is_null(self) -> Expression:
        return call("isnull", self)

    def is_there(self) -> Expression:
        return call("isnotnull", self)

    def is_one_of(self, values: Iterable[str | int]) -> Expression:
        return call("`in`", self, *(literal(value) for value in values))

    def is_between(self, least: int, most: int) -> Expression:
        return self.compared(">=", least) & self.compared("<=", most)

    def compared(self, operator: str, other: Expression | int) -> Expression:
        """`operator` is one of = <> < <= > >= <=>."""
        right = literal(other) if isinstance(other, int) else other
        return ~call("`=`", self, right) if operator == "<>" else call(f"`{operator}`", self, right)

    def __and__(self, other: Expression) -> Expression:
        return call("`and`", self, other)

    def __or__(self, other: Expression) -> Expression:
        return call("`or`", self, other)

    def __add__(self, other: Expression) -> Expression:
        return call("`+`", self, other)

    def __invert__(self) -> Expression:
        return call("`not`", self)


NULL_TEXT = Expression("CAST(NULL AS STRING)")
TRUE, FALSE = Expression("TRUE"), Expression("FALSE")
ZERO, ONE = Expression("0"), Expression("1")

_depth: ContextVar[int] = ContextVar("depth", default=0)


def column(name: str) -> Expression:
    return Expression(quoted(name))


def literal(value: str | int) -> Expression:
    return Expression(text_sql(value) if isinstance(value, str) else str(value))


def call(function: str, *arguments: Expression) -> Expression:
    return Expression(f"{function}({', '.join(argument.sql for argument in arguments)})")


def options_map(options: Mapping[str, str]) -> Expression:
    """The options argument of a function such as `from_json`."""
    return call("map", *(literal(part) for option in options.items() for part in option))


def when(condition: Expression, value: Expression, otherwise: Expression | None = None) -> Expression:
    return cases([(condition, value)], otherwise)


def cases(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression | None = None) -> Expression:
    """The value of the first branch whose condition is true."""
    whens = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in branches)
    return Expression(f"CASE {whens}{'' if otherwise is None else f' ELSE {otherwise.sql}'} END")


def struct(fields: Iterable[tuple[str, Expression]]) -> Expression:
    return call("named_struct", *(part for name, value in fields for part in (literal(name), value)))


def each(function: str, items: Expression, body: Callable[[Expression], Expression]) -> Expression:
    """`transform`, `filter` or `exists` over the elements of an array."""
    return call(function, items, _lambda(1, lambda names: body(names[0])))


def each_two(
    function: str, arguments: Sequence[Expression], body: Callable[[Expression, Expression], Expression]
) -> Expression:
    """A function whose lambda takes two values: `aggregate`, `zip_with`, `transform_keys`, `transform_values`."""
    return call(function, *arguments, _lambda(2, lambda names: body(names[0], names[1])))


def let(value: Expression, body: Callable[[Expression], Expression]) -> Expression:
    """`body` applied to a value that is computed only once."""
    return call("get", each("transform", call("array", value), body), ZERO)


def joined(operator: str, parts: Sequence[Expression], empty: Expression) -> Expression:
    """All parts combined by an operator, as a balanced tree, because Spark traverses expressions recursively."""
    if len(parts) < 2:
        return parts[0] if parts else empty
    half = len(parts) // 2
    return call(f"`{operator}`", joined(operator, parts[:half], empty), joined(operator, parts[half:], empty))


def total(parts: Sequence[Expression]) -> Expression:
    return joined("+", parts, ZERO)


def any_of(tests: Sequence[Expression]) -> Expression:
    """Whether any test is true; NULL counts as false."""
    return call("coalesce", joined("or", tests, FALSE), FALSE)


def first_text(texts: Sequence[Expression]) -> Expression:
    """The first text that is not NULL."""
    return call("coalesce", *texts) if texts else NULL_TEXT


def _lambda(count: int, body: Callable[[list[Expression]], Expression]) -> Expression:
    # Named by nesting depth: an inner lambda must not hide the variable of an outer one.
    depth = _depth.get()
    names = [Expression(f"x{depth + i}") for i in range(count)]
    token = _depth.set(depth + count)
    try:
        inside = body(names)
    finally:
        _depth.reset(token)
    parameters = names[0].sql if count == 1 else f"({', '.join(name.sql for name in names)})"
    return Expression(f"{parameters} -> {inside.sql}")
