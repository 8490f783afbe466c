"""Which relations and columns a query reads, so that nobody can drop them unnoticed.

Names are resolved against the schemas in force; a column is remembered by id, so a later rename breaks no view.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from laminae.errors import QueryFailed
from laminae.schema.column import columns_of
from laminae.secrets import masked

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from laminae.schema.column import Columns

Reads = tuple[tuple[str, tuple[int, ...]], ...]
WINDOW_FUNCTION = "_wndw_"
CHANGES = "changes"
"""The schema, so to speak, of what CHANGES OF names."""
BEFORE_RELATIONS = ("from", "join", ",")
ALL_COLUMNS = (0,)
"""Stands for every column there is and will be: what `SELECT *` reads. No column has the id 0."""


def parse_query(query: str) -> exp.Query:
    """One SELECT in Spark's dialect, or `QueryFailed` with sqlglot's own words."""
    try:
        trees = sqlglot.parse(_with_window_named(query), dialect="spark")
    except (SqlglotError, RecursionError) as problem:
        raise QueryFailed(problem=_plain(problem)) from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Values):
        tree = exp.select("*").from_(tree)
    if not isinstance(tree, exp.Query):
        raise QueryFailed(problem="it is not a single SELECT")
    for call in tree.find_all(exp.Anonymous):
        if call.this == WINDOW_FUNCTION:
            call.set("this", "window")
    return tree


def _with_window_named(query: str) -> str:
    """The text with another name for Spark's function `window`: sqlglot takes it for a WINDOW clause in GROUP BY.

    And CHANGES OF s as changes.s. What takes the place of a word is as long, so every place in the text stays.
    """
    tokens = Spark.Tokenizer().tokenize(query)
    for before, first, second in zip(tokens, tokens[1:], tokens[2:], strict=False):
        words = [token.text.casefold() for token in (before, first, second)]
        if words[0] in BEFORE_RELATIONS and words[1:] == [CHANGES, "of"]:
            query = f"{query[: second.start]}. {query[second.end + 1 :]}"
    for token, following in itertools.pairwise(tokens):
        is_call = following.token_type is TokenType.L_PAREN and token.token_type is TokenType.WINDOW
        if is_call and token.text.casefold() == "window":
            query = query[: token.start] + WINDOW_FUNCTION + query[token.end + 1 :]
    return query


def relations_of(query: exp.Query) -> tuple[tuple[str, str], ...]:
    """(schema, name) of every table the query reads, common table expressions left out, in order of appearance."""
    own = {cte.alias_or_name.casefold() for cte in query.find_all(exp.CTE)}
    tables = ((table.db, table.name) for table in query.find_all(exp.Table))
    return tuple(dict.fromkeys((db, name) for db, name in tables if name and (db or name.casefold() not in own)))


def reads_of(query: str, schemas: Mapping[str, pa.Schema]) -> Reads:
    """For each relation the ids of the columns the query names; all of them when it says `*`.

    A name that several relations have counts for each: refusing one drop too many is better than one too few.
    """
    tree = parse_query(query)
    starred = any(isinstance(star.parent, exp.Select | exp.Column) for star in tree.find_all(exp.Star))
    # A struct's field is written s.f.g, which sqlglot reads as a qualified column: every part may be the column.
    named = {part.name.casefold() for column in tree.find_all(exp.Column) for part in column.find_all(exp.Identifier)}
    known = {name.casefold(): schema for name, schema in schemas.items()}
    result: list[tuple[str, tuple[int, ...]]] = []
    for _, name in relations_of(tree):
        schema = known.get(name.casefold())
        ids = () if schema is None else ALL_COLUMNS if starred else tuple(_ids(columns_of(schema), named))
        result.append((name, ids))
    return tuple(result)


def _ids(columns: Columns, named: set[str] | None) -> list[int]:
    """Ids of the named columns, and below them of the named fields; of all fields where the column is read whole."""
    found: list[int] = []
    for node in columns:
        if named is None or node.name.casefold() in named or node.name in ("element", "key", "value"):
            found += [] if node.id is None else [node.id]
            inner = _ids(node.children, named)
            found += inner if inner or not node.children else _ids(node.children, None)
    return found


def _plain(problem: Exception) -> str:
    """sqlglot underlines with terminal escapes; an error text must not carry them."""
    return masked(str(problem).replace("\x1b[4m", "").replace("\x1b[0m", "")) or type(problem).__name__
