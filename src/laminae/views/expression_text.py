"""Operator expressions as readable text, and the column names that they mention.

Operators use internal names for keys and results, which would mean nothing to the reader of an error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.schema.identifiers import unquoted
from laminae.views.kernels.group_by.aggregates import Function
from laminae.views.operators import ADDED, GroupBy, Linear, Read
from laminae.views.sql.sql_text import parse_expression, sql_of
from laminae.views.sql.verbatim import is_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laminae.views.operators import Call, Operator


def mentioned(expressions: Iterable[str]) -> frozenset[str]:
    """Every name in these expressions that may be a column, in lower case.

    False positives are possible, false negatives are not.
    """
    nodes = map(parse_expression, expressions)
    names = (name for node in nodes for name in node.find_all(exp.Identifier) if not is_field(name))
    return frozenset(str(name.name).casefold() for name in names)


def words_of(operator: Operator) -> dict[str, str]:
    """The columns of an operator in terms of the query: keys and aggregates by their expressions."""
    if isinstance(operator, Read):
        return {name: unquoted(sql) or sql if name.startswith(ADDED) else name for name, sql in _read(operator)}
    if not isinstance(operator, GroupBy):
        return {name: name for name in operator.columns}
    below = words_of(operator.input.input) if isinstance(operator.input, Linear) else {}
    expressions = operator.input.expressions if isinstance(operator.input, Linear) else ()
    arguments = {expression.name: worded(expression.sql, below) for expression in expressions}
    keys = {name: arguments.get(name, name) for name in operator.keys}
    return keys | {call.name: _call(call, arguments) for call in operator.calls}


def worded(sql: str, words: Mapping[str, str]) -> str:
    """The expression with its columns replaced by the given texts."""
    if all(name == word for name, word in words.items()):
        return sql

    def said(node: exp.Expr) -> exp.Expr:
        word = words.get(node.name) if isinstance(node, exp.Column) and len(node.parts) == 1 else None
        return node if word is None else parse_expression(word)

    return sql_of(parse_expression(sql).transform(said))


def relation_below(operator: Operator) -> str | None:
    """The relation whose rows an operator receives one by one; None after a GROUP BY or a union of several."""
    while isinstance(operator, Linear):
        operator = operator.input
    return operator.relation if isinstance(operator, Read) else None


def _read(operator: Read) -> Iterable[tuple[str, str]]:
    """Pairs of name and SQL. Columns added after the view was written have internal names that no query contains."""
    return zip(operator.columns, operator.expressions or operator.columns, strict=True)


def _call(call: Call, arguments: Mapping[str, str]) -> str:
    if call.argument is None:
        return "COUNT(*)"
    argument = arguments.get(call.argument, call.argument)
    if call.function is Function.COUNT_DISTINCT:
        return f"COUNT(DISTINCT {argument})"
    return f"{call.function.value}({argument})"
