"""Expressions of operators as a person reads them, and the names that they mention.

Operators have names of their own for keys and results; in a reason they would mean nothing to anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from laminae.views.kernels.aggregates import Function
from laminae.views.operators import ADDED, GroupBy, Linear, Read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laminae.views.operators import Call, Operator


def mentioned(expressions: Iterable[str]) -> frozenset[str]:
    """Every name in these expressions that may be a column, in lower case; rather one too many than one too few."""
    nodes = (sqlglot.parse_one(sql, dialect="spark") for sql in expressions)
    names = (name for node in nodes for name in node.find_all(exp.Identifier) if not _is_field(name))
    return frozenset(str(name.name).casefold() for name in names)


def _is_field(name: exp.Identifier) -> bool:
    """Whether it stands behind a dot, and so names what is inside a column."""
    above = name.parent
    if isinstance(above, exp.Dot):
        return above.expression is name
    return isinstance(above, exp.Column) and above.parts[0] is not name


def words_of(operator: Operator) -> dict[str, str]:
    """The columns of an operator in the words of the query: keys and aggregates by their expressions."""
    if isinstance(operator, Read):
        return {name: sql.strip("`") if name.startswith(ADDED) else name for name, sql in _read(operator)}
    if not isinstance(operator, GroupBy):
        return {name: name for name in operator.columns}
    below = words_of(operator.input.input) if isinstance(operator.input, Linear) else {}
    made = operator.input.expressions if isinstance(operator.input, Linear) else ()
    arguments = {each.name: worded(each.sql, below) for each in made}
    keys = {name: arguments.get(name, name) for name in operator.keys}
    return keys | {call.name: _call(call, arguments) for call in operator.calls}


def worded(sql: str, words: Mapping[str, str]) -> str:
    """An expression with other words for its columns."""
    if all(name == word for name, word in words.items()):
        return sql

    def said(node: exp.Expr) -> exp.Expr:
        word = words.get(node.name) if isinstance(node, exp.Column) and len(node.parts) == 1 else None
        return node if word is None else sqlglot.parse_one(word, dialect="spark")

    return str(sqlglot.parse_one(sql, dialect="spark").transform(said).sql(dialect="spark"))


def relation_below(operator: Operator) -> str | None:
    """The relation whose rows an operator is given one by one; None where a GROUP BY or several stand between."""
    while isinstance(operator, Linear):
        operator = operator.input
    return operator.relation if isinstance(operator, Read) else None


def _read(operator: Read) -> Iterable[tuple[str, str]]:
    """Columns that came after the view was written have names that nobody has written."""
    return zip(operator.columns, operator.expressions or operator.columns, strict=True)


def _call(call: Call, arguments: Mapping[str, str]) -> str:
    if call.argument is None:
        return "COUNT(*)"
    argument = arguments.get(call.argument, call.argument)
    if call.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{call.function.value}({argument})"
