"""Parse the SQL text of views into trees and print it again without changing its meaning. Needs no Spark.

sqlglot's clause parser runs over Spark's own tokens and precedence, and the tree is printed again at once. If the
printed tokens differ from the original ones, the query was not understood and is refused with the construct's name: no
clause is dropped, and no literal is read by the rules of another dialect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator

from laminae.catalog.model import EXACT_READING
from laminae.errors import QueryFailed, UnsupportedSql
from laminae.secrets import masked
from laminae.sql.literals import unescaped
from laminae.sql.spark_tokens import Kind, UnclosedToken, spark_tokens
from laminae.views.sql.expression_parser import ExpressionParser
from laminae.views.sql.verbatim import RAW, WORD, Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.sql.spark_tokens import SparkToken

_KEYWORDS = {word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word[:1].isalpha()}
_SIGNS = {
    **Spark.Tokenizer.SINGLE_TOKENS,
    **{sign: Spark.Tokenizer.KEYWORDS[sign] for sign in ("->", "=>", "::", "||")},
}
_SIGNS |= {sign: Spark.Tokenizer.KEYWORDS[sign] for sign in ("|>", "<=", ">=", "<>", "!=", "==", "<=>", "/*+")}
_PAIRS = {key for key in _KEYWORDS if key.endswith(" BY") or key == "GROUPING SETS"}
# Alternative spellings of one operator, and keywords that may be omitted.
_SAME = {"==": "=", "!=": "<>", "!": "NOT", "REGEXP": "RLIKE", "SOME": "ANY"}
_OPTIONAL = frozenset(("AS",))
NAME_TAKING = frozenset(("struct", "arrays_zip"))


class _Generator(SparkGenerator):
    """Prints what the parser keeps, without sqlglot's rewrites of whole SELECTs for other engines."""

    TRANSFORMS: ClassVar = {
        **{kind: rewrite for kind, rewrite in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select},
        Written: lambda self, node: "".join(self.sql(part) for part in node.expressions),
    }

    def literal_sql(self, expression: exp.Literal) -> str:
        return str(expression.this) if expression.meta.get(RAW) else super().literal_sql(expression)


class SparkText(Spark):
    """Not registered with sqlglot under a name: use `parse_query` and `sql_of`."""

    Parser = ExpressionParser
    Generator = _Generator


_DIALECT = SparkText()


def sql_of(node: exp.Expr, **options: Any) -> str:
    """Print a tree as Spark SQL. Comments that sqlglot read are kept, because ids of older states depend on them."""
    return str(_DIALECT.generate(node, unsupported_level=ErrorLevel.IGNORE, **options))


def parse_text(query: str) -> exp.Expr:
    """The tree of a query. Call `refuse_changed` to verify that it represents the whole text before relying on it."""
    tokens = tokens_of(query)
    if (hint := next((token for token in tokens if token.kind is Kind.HINT), None)) is not None:
        raise _not_understood(query, hint)
    try:
        trees = ExpressionParser(dialect=_DIALECT).parse(list(_sqlglot_tokens(query, tokens)), query)
    except (SqlglotError, RecursionError) as problem:
        raise QueryFailed(problem=plain_text(problem)) from None
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        raise QueryFailed(problem="it is not a single SELECT")
    return tree


def refuse_changed(query: str, tree: exp.Expr) -> None:
    """Refuse a query whose printed tree differs from the text: nothing may be lost on the way to Spark."""
    first, second = list(_essence(tokens_of(query))), list(_essence(tokens_of(sql_of(tree))))
    for place, (text, token) in enumerate(first):
        if place >= len(second) or second[place][0] != text:
            raise _not_understood(query, token)
    if len(second) > len(first):
        raise _not_understood(query, first[-1][1])


def comparable(node: exp.Expr, reading: int = EXACT_READING) -> str:
    """A normalised text: equal for expressions that differ only in whitespace, quotes and the case of words.

    Names of functions and columns, types and keywords are case-insensitive. Fields, map keys, paths of a VARIANT,
    aliases and string literals are not. A hash of this text identifies the state of a view: for an older reading, the
    result must never change.
    """
    normalized = node.transform(_caseless) if reading == EXACT_READING else node
    return sql_of(normalized, normalize=True, identify=True, normalize_functions="lower", comments=False)


def _caseless(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Literal) and node.is_string and node.meta.get(RAW):
        return exp.Literal.string(string_value(str(node.this)))
    # The field names of a struct type are case-sensitive.
    if isinstance(node, exp.Var) and node.meta.get(WORD) and "<" not in str(node.this):
        return exp.Var(this=str(node.this).lower())
    if isinstance(node, exp.Identifier):
        # The generator keeps the case of quoted names.
        name = str(node.this)
        return exp.Identifier(this=name.lower() if _is_column(node) else name, quoted=True)
    return node


def _is_column(name: exp.Identifier) -> bool:
    """Whether it names a column used only for its value. In `struct(A)` it also names a field, so its case matters."""
    column = name.parent
    if not isinstance(column, exp.Column) or column.parts[0] is not name:
        return False
    above = column.parent
    while above is not None and not takes_names(above):
        above = above.parent
    return above is None


def takes_names(node: exp.Expr) -> bool:
    """Whether the fields of its value are named after its arguments."""
    if isinstance(node, Written):
        return bool(node.expressions[0].name == "(")
    return isinstance(node, exp.Anonymous) and node.name.lower() in NAME_TAKING


def string_value(text: str) -> str:
    """The value of a string literal, or of several adjacent ones."""
    return "".join(unescaped(token.text) for token in spark_tokens(text))


def span_of(literal: exp.Literal) -> str | None:
    """A duration in the form that Spark's `window` takes, from a string or an INTERVAL; None for anything else."""
    text = str(literal.this)
    if literal.is_string:
        return string_value(text) if literal.meta.get(RAW) else text
    words = spark_tokens(text)
    if words[0].word != "INTERVAL" or any(token.word == "TO" for token in words):
        return None
    return " ".join(string_value(w.text) if w.kind is Kind.STRING else w.text.lower() for w in words[1:])


@lru_cache(maxsize=2048)
def _expression(sql: str) -> exp.Expr:
    parser = ExpressionParser(dialect=_DIALECT)
    (node,) = parser._parse(ExpressionParser._parse_expression, list(_sqlglot_tokens(sql, tokens_of(sql))), sql)
    assert node is not None  # operators hold SQL that was printed from a tree
    return node


def parse_expression(sql: str) -> exp.Expr:
    """The tree of an expression of an operator."""
    return _expression(sql).copy()


def tokens_of(text: str) -> tuple[SparkToken, ...]:
    try:
        return spark_tokens(text)
    except UnclosedToken as unclosed:
        problem = f"a string, a quoted name or a comment that begins at character {unclosed.offset + 1} has no end"
        raise QueryFailed(problem=problem) from None


def _sqlglot_tokens(text_of: str, tokens: Sequence[SparkToken]) -> Iterator[Token]:
    line, behind, last = 1, 0, 0
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if breaks := text_of.count("\n", last, token.start):
            line, behind = line + breaks, text_of.rfind("\n", 0, token.start) + 1
        last = token.start
        text, kind, end = token.text, TokenType.VAR, token.end
        match token.kind:
            case Kind.STRING:
                # Spark concatenates adjacent string literals; together they are one literal.
                while place < len(tokens) and tokens[place].kind is Kind.STRING:
                    text, end = f"{text} {tokens[place].text}", tokens[place].end
                    place += 1
                kind = TokenType.STRING
            case Kind.NUMBER:
                kind = TokenType.NUMBER
            case Kind.QUOTED:
                text, kind = text[1:-1].replace("``", "`"), TokenType.IDENTIFIER
            case Kind.SIGN | Kind.HINT:
                kind = _SIGNS.get(text, TokenType.UNKNOWN)
            case Kind.WORD:
                pair = f"{text.upper()} {tokens[place].word}" if place < len(tokens) else ""
                if pair in _PAIRS:
                    text, kind, end = pair, _KEYWORDS[pair], tokens[place].end
                    place += 1
                elif text.upper() != "WINDOW" or place == len(tokens) or tokens[place].text != "(":
                    # Spark's function `window` is not a WINDOW clause.
                    kind = _KEYWORDS.get(text.upper(), TokenType.VAR)
        yield Token(kind, text, line=line, col=end - behind, start=token.start, end=end - 1)


def _not_understood(query: str, token: SparkToken) -> UnsupportedSql:
    behind = query.rfind("\n", 0, token.start) + 1
    return UnsupportedSql(
        line=query.count("\n", 0, token.start) + 1,
        column=token.start - behind + 1,
        construct=f"{token.text[:40]} at this position in a materialized view",
        advice="A view is SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING and UNION; use the rest in a plain SELECT on it.",
    )


def _essence(tokens: Sequence[SparkToken]) -> Iterator[tuple[str, SparkToken]]:
    """The tokens that must be equal before and after: all except optional keywords."""
    for place, token in enumerate(tokens):
        word = _SAME.get(token.word, token.word)
        if word in _OPTIONAL:
            continue
        if word == "DISTINCT" and place and tokens[place - 1].word == "UNION":
            continue
        if token.kind is Kind.WORD or token.kind is Kind.SIGN:
            yield word, token
        else:
            yield token.text, token


def plain_text(problem: Exception) -> str:
    """Remove the terminal escapes that sqlglot uses for underlining, and mask secrets."""
    return masked(str(problem).replace("\x1b[4m", "").replace("\x1b[0m", "")) or type(problem).__name__
