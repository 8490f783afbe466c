"""Decides which queries DuckDB may answer instead of Spark: an allow-list of syntax that means the same in both.

Allowed: literals without escapes, comparisons, GROUP BY, joins and ORDER BY over ASCII text. Spark runs the rest.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from laminae.errors import LaminaeError
from laminae.sql.spark_tokens import Kind
from laminae.views.dependencies import parse_by_sqlglot, parse_query
from laminae.views.sql.sql_text import refuse_changed, tokens_of
from laminae.views.sql.supported_nodes import CLAUSES, not_understood
from laminae.views.sql.verbatim import Written

if TYPE_CHECKING:
    from collections.abc import Mapping

SAME_CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: CLAUSES[exp.Select] | {"order", "limit", "joins"},
    exp.Union: CLAUSES[exp.Union] | {"order", "limit"},
    exp.Join: frozenset(("this", "on", "side", "kind")),
    exp.Order: frozenset(("expressions",)),
    exp.Ordered: frozenset(("this", "desc", "nulls_first")),
    exp.Limit: frozenset(("expression",)),
}
NOT_THE_SAME = (exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.Lambda, exp.Dot)
SAME_FUNCTIONS = frozenset(("upper", "lower", "length", "coalesce"))
SAME_WORDS = frozenset(("IS NULL", "IS NOT NULL", "IN (", "NOT IN (", "LIKE", "NOT LIKE", "BETWEEN", "AND", ",", ")"))


def translatable(query: str) -> exp.Query | None:
    """The query for DuckDB; None if Spark has to run it."""
    try:
        tree = parse_query(query)
        refuse_changed(query, tree)
        if not _has_plain_literals(query) or not all(_is_same(node) for node in tree.walk()):
            return None
        translated = parse_by_sqlglot(query)
    except LaminaeError:
        return None
    return translated if isinstance(translated, exp.Query) else None


def fits(query: exp.Query, relations: Mapping[tuple[str, str], pa.Table]) -> bool:
    """Whether the data is safe too: text is ASCII, and no timestamp is compared, since that depends on a time zone."""
    for table in relations.values():
        for column in table.itercolumns():
            if pa.types.is_string(column.type) and pc.all(pc.string_is_ascii(column)).as_py() is False:
                return False
    times = {field.name for table in relations.values() for field in table.schema if pa.types.is_timestamp(field.type)}
    return all(
        column.name.casefold() not in times or isinstance(column.parent, exp.Select | exp.Alias | exp.Ordered | exp.Is)
        for column in query.find_all(exp.Column)
    )


def _has_plain_literals(query: str) -> bool:
    tokens = tokens_of(query)
    strings = [token for token in tokens if token.kind is Kind.STRING]
    is_plain = all(token.text[0] in "'\"" and "\\" not in token.text for token in strings)
    quotes = all(token.text[0] not in token.text[1:-1] for token in strings)
    numbers = all(token.text.isdecimal() for token in tokens if token.kind is Kind.NUMBER)
    pairs = itertools.pairwise(tokens)
    is_single = not any(one.kind is Kind.STRING and other.kind is Kind.STRING for one, other in pairs)
    return query.isascii() and is_plain and quotes and numbers and is_single


def _is_same(node: exp.Expr) -> bool:
    if isinstance(node, NOT_THE_SAME):
        return False
    if isinstance(node, Written):
        words = [part.this.strip() for part in node.expressions if isinstance(part, exp.Var)]
        return node.this is None and all(word in SAME_WORDS for word in words)
    if isinstance(node, exp.Anonymous):
        return str(node.this).casefold() in SAME_FUNCTIONS
    if isinstance(node, exp.Literal) and not node.is_string:
        return str(node.this).isdecimal()
    if isinstance(node, exp.Join) and (node.args.get("side") or node.args.get("kind") or "").upper() not in SAME_JOINS:
        return False
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Union | exp.Join | None):
        return False
    parts = SAME_CLAUSES.get(type(node))
    if parts is None:
        return not_understood(node) is None
    return all(not value or name in parts for name, value in node.args.items())


SAME_JOINS = frozenset(("", "LEFT", "INNER", "CROSS"))
