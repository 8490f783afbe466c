"""Which relations and columns a query reads, so that they cannot be dropped unnoticed.

Names are resolved against the current schemas; a column is stored by id, so a later rename breaks no view.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from laminae.catalog.model import EXACT_READING
from laminae.errors import QueryFailed
from laminae.schema.column import columns_of
from laminae.sql.spark_tokens import Kind
from laminae.views.sql.grammar import words
from laminae.views.sql.sql_text import parse_text, plain_text, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from laminae.schema.column import Columns
    from laminae.sql.spark_tokens import SparkToken

Reads = tuple[tuple[str, tuple[int, ...]], ...]
WINDOW_FUNCTION = "_wndw_"
CHANGES = "changes"
"""The pseudo-schema of the relations named in CHANGES OF."""
# Keywords that end the relation list of a FROM: a comma after them does not separate relations.
END_OF_FROM = words("SELECT WHERE GROUP HAVING QUALIFY CLUSTER DISTRIBUTE SORT ORDER LIMIT UNION EXCEPT INTERSECT")
# Keywords that may follow a relation called `changes` with the alias `of`.
NO_NAMES = END_OF_FROM | words("FROM JOIN CROSS INNER LEFT RIGHT FULL ON USING")
ALL_COLUMNS = (0,)
"""Stands for all current and future columns: what `SELECT *` reads. No column has the id 0."""


EXACT = EXACT_READING
"""How the text of a view is parsed: as Spark does. Reading 1 is sqlglot's dialect, which the first versions used.

A view keeps the reading it was created with: its state was computed by it, and is identified by the text it printed.
"""


def parse_query(query: str, reading: int = EXACT) -> exp.Query:
    """Parse one SELECT in Spark's dialect; raise `QueryFailed` with the parser's message."""
    text = with_changes_named(query)
    tree = parse_text(text) if reading == EXACT else parse_by_sqlglot(text)
    if not isinstance(tree, exp.Query):
        raise QueryFailed(problem="it is not a single SELECT")
    if any(not select.expressions for select in tree.find_all(exp.Select)):
        raise QueryFailed(problem="a SELECT has no columns")
    return tree


def parse_by_sqlglot(query: str) -> exp.Expr:
    """Parse a query in sqlglot's Spark dialect, which is close to Spark's and translatable, but not the same."""
    try:
        trees = sqlglot.parse(_with_window_named(query), dialect="spark")
    except (SqlglotError, RecursionError) as problem:
        raise QueryFailed(problem=plain_text(problem)) from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Values):
        tree = exp.select("*").from_(tree)
    if not isinstance(tree, exp.Query):
        raise QueryFailed(problem="it is not a single SELECT")
    for call in tree.find_all(exp.Anonymous):
        if call.this == WINDOW_FUNCTION:
            call.set("this", "window")
    for column in tree.find_all(exp.Column):
        # As in Spark, double quotes make a string literal, even where only a name is allowed.
        if isinstance(column.this, exp.Literal):
            raise QueryFailed(problem=f"{column.sql(dialect='spark')}: a name is written as it is or in backticks")
    return tree


def _with_window_named(query: str) -> str:
    """Rename Spark's function `window` in the text: in GROUP BY, sqlglot takes it for a WINDOW clause."""
    for token, following in itertools.pairwise(tokens_of(query)):
        if token.word == "WINDOW" and following.text == "(":
            query = query[: token.start] + WINDOW_FUNCTION + query[token.end :]
    return query


def with_changes_named(query: str) -> str:
    """Rewrite CHANGES OF s as `changes. s`, which has the same length, so that error positions stay correct."""
    for word in _words_of_changes(tokens_of(query)):
        query = f"{query[: word.start]}. {query[word.end :]}"
    return query


def _words_of_changes(tokens: Sequence[SparkToken]) -> Iterator[SparkToken]:
    """Every OF of a CHANGES OF: where a relation is allowed, followed by a name. Columns may be called changes, too."""
    in_from = [False]
    for place, token in enumerate(tokens[:-3]):
        match token.word:
            case "(":
                in_from.append(False)
            case ")" if len(in_from) > 1:
                in_from.pop()
            case "FROM":
                in_from[-1] = True
            case word if word in END_OF_FROM:
                in_from[-1] = False
        if token.word in ("FROM", "JOIN") or (token.word == "," and in_from[-1]):
            first, second, name = tokens[place + 1 : place + 4]
            if (first.word, second.word) == ("CHANGES", "OF") and _may_be_name(name):
                yield second


def _may_be_name(token: SparkToken) -> bool:
    return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.word not in NO_NAMES)


def relations_of(query: exp.Query) -> tuple[tuple[str, str], ...]:
    """(schema, name) of every table the query reads, excluding common table expressions, in order of appearance."""
    return tuple(dict.fromkeys((table.db, table.name) for table in tables_of(query)))


def tables_of(query: exp.Query) -> tuple[exp.Table, ...]:
    """The table references of the query that are not references to its common table expressions."""
    tables = (table for table in query.find_all(exp.Table) if table.name)
    return tuple(table for table in tables if table.db or not _is_common(table))


def _is_common(table: exp.Table) -> bool:
    """Whether an enclosing WITH defines the name. Inside its own definition the name still refers to the relation."""
    name, within = table.name.casefold(), set[int]()
    above: exp.Expr | None = table
    while above is not None:
        within.add(id(above))
        clause = above.args.get("with_") or above.args.get("with")
        if isinstance(clause, exp.With) and name in _visible(clause, within):
            return True
        above = above.parent
    return False


def _visible(clause: exp.With, within: set[int]) -> set[str]:
    """The names of a WITH that are visible to a node with these ancestors: inside the clause, only the earlier ones."""
    inside = next((place for place, common in enumerate(clause.expressions) if id(common) in within), None)
    if inside is not None and clause.recursive:
        inside += 1
    return {common.alias_or_name.casefold() for common in clause.expressions[:inside]}


def reads_of(query: str, schemas: Mapping[str, pa.Schema], reading: int = EXACT) -> Reads:
    """For each relation, the ids of the columns that the query names; `ALL_COLUMNS` when it uses `*`.

    A name that several relations have counts for each: refusing one drop too many is better than one too few.
    """
    tree = parse_query(query, reading)
    starred = any(isinstance(star.parent, exp.Select | exp.Column) for star in tree.find_all(exp.Star))
    # sqlglot reads the struct field s.f.g as a qualified column: every part may be the column.
    named = {part.name.casefold() for column in tree.find_all(exp.Column) for part in column.find_all(exp.Identifier)}
    known = {name.casefold(): schema for name, schema in schemas.items()}
    result: list[tuple[str, tuple[int, ...]]] = []
    for _, name in relations_of(tree):
        schema = known.get(name.casefold())
        ids = () if schema is None else ALL_COLUMNS if starred else tuple(_ids(columns_of(schema), named))
        result.append((name, ids))
    return tuple(result)


def _ids(columns: Columns, named: set[str] | None) -> list[int]:
    """Ids of the named columns and of their named fields; of all fields if the column is read as a whole."""
    ids: list[int] = []
    for node in columns:
        if named is None or node.name.casefold() in named or node.name in ("element", "key", "value"):
            ids += [] if node.id is None else [node.id]
            inner = _ids(node.children, named)
            ids += inner if inner or not node.children else _ids(node.children, None)
    return ids
