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
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from sqlglot import Token

    from laminae.schema.column import Columns

Reads = tuple[tuple[str, tuple[int, ...]], ...]
WINDOW_FUNCTION = "_wndw_"
CHANGES = "changes"
"""The schema, so to speak, of what CHANGES OF names."""
# What ends the relations of a FROM: a comma behind it stands between other things.
END_OF_FROM = frozenset(
    (
        TokenType.SELECT,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
        TokenType.SORT_BY,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
    )
)
# What may follow a relation that is called changes and, for short, of.
NO_NAMES = END_OF_FROM | {
    TokenType.FROM,
    TokenType.JOIN,
    TokenType.CROSS,
    TokenType.INNER,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.ON,
    TokenType.USING,
}
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
    for column in tree.find_all(exp.Column):
        # As in Spark, double quotes make a text, also where only a name can stand.
        if isinstance(column.this, exp.Literal):
            raise QueryFailed(problem=f"{column.sql(dialect='spark')}: a name is written as it is or in backticks")
    return tree


def _with_window_named(query: str) -> str:
    """The text with another name for Spark's function `window`: sqlglot takes it for a WINDOW clause in GROUP BY.

    And CHANGES OF s as changes.s. What takes the place of a word is as long, so every place in the text stays.
    """
    tokens = Spark.Tokenizer().tokenize(query)
    for word in _words_of_changes(tokens):
        query = f"{query[: word.start]}. {query[word.end + 1 :]}"
    for token, following in itertools.pairwise(tokens):
        is_call = following.token_type is TokenType.L_PAREN and token.token_type is TokenType.WINDOW
        if is_call and token.text.casefold() == "window":
            query = query[: token.start] + WINDOW_FUNCTION + query[token.end + 1 :]
    return query


def _words_of_changes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Every OF of a CHANGES OF: where a relation may stand, with a name behind it. Columns may be called so, too."""
    in_from = [False]
    for place, token in enumerate(tokens[:-3]):
        match token.token_type:
            case TokenType.L_PAREN:
                in_from.append(False)
            case TokenType.R_PAREN if len(in_from) > 1:
                in_from.pop()
            case TokenType.FROM:
                in_from[-1] = True
            case kind if kind in END_OF_FROM:
                in_from[-1] = False
        is_before = token.token_type in (TokenType.FROM, TokenType.JOIN)
        if is_before or (token.token_type is TokenType.COMMA and in_from[-1]):
            first, second, name = tokens[place + 1 : place + 4]
            if (_word(first), _word(second)) == (CHANGES, "of") and _may_be_name(name):
                yield second


def _word(token: Token) -> str | None:
    return token.text.casefold() if token.token_type is TokenType.VAR else None


def _may_be_name(token: Token) -> bool:
    is_word = token.token_type is TokenType.IDENTIFIER or token.text.isidentifier()
    return is_word and token.token_type not in NO_NAMES


def relations_of(query: exp.Query) -> tuple[tuple[str, str], ...]:
    """(schema, name) of every table the query reads, common table expressions left out, in order of appearance."""
    return tuple(dict.fromkeys((table.db, table.name) for table in tables_of(query)))


def tables_of(query: exp.Query) -> tuple[exp.Table, ...]:
    """Where the query reads a table that is no common table expression of its own."""
    found = (table for table in query.find_all(exp.Table) if table.name)
    return tuple(table for table in found if table.db or not _is_common(table))


def _is_common(table: exp.Table) -> bool:
    """Whether a WITH around it has the name. What it defines does not see itself: there the name is the relation."""
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
    """The names of a WITH that hold for a node with these ancestors: within the clause, those before it."""
    inside = next((place for place, each in enumerate(clause.expressions) if id(each) in within), None)
    if inside is not None and clause.recursive:
        inside += 1
    return {common.alias_or_name.casefold() for common in clause.expressions[:inside]}


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
