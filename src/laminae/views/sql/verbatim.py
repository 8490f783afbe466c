"""Tree nodes that keep the text they were written with."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

RAW = "raw"
"""Meta key of a literal: its text is the text in the query, including quotes and suffixes."""
WORD = "word"
"""Meta key of a text node that is case-insensitive."""


class Written(exp.Expression, exp.Condition):
    """An expression as it was written: operands, and between them texts (exp.Var) including their spaces.

    `this` is the function name, for calls with a special syntax.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "expressions": True}


def written(*parts: str | exp.Expr, name: str | None = None) -> Written:
    return Written(this=name, expressions=[exp.Var(this=part) if isinstance(part, str) else part for part in parts])


def word(text: str) -> exp.Var:
    """A data type or a collation, as it was written."""
    node = exp.Var(this=text)
    node.meta[WORD] = True
    return node


def literal(text: str, is_string: bool) -> exp.Literal:
    node = exp.Literal(this=text, is_string=is_string)
    node.meta[RAW] = True
    return node


def column(parts: list[exp.Expr]) -> exp.Expr:
    names = ("this", "table", "db", "catalog")
    column: exp.Expr = exp.Column(**dict(zip(names, reversed(parts[:4]), strict=False)))
    for part in parts[4:]:
        column = exp.Dot(this=column, expression=part)
    return column


def is_field(name: exp.Identifier) -> bool:
    """Whether it follows a dot, and so names a field inside a column."""
    above = name.parent
    if isinstance(above, exp.Dot):
        return above.expression is name
    return isinstance(above, exp.Column) and above.parts[0] is not name


def begins_with_sign(operand: exp.Expr) -> bool:
    return isinstance(operand, Written) and str(operand.expressions[0].this)[:1] in ("-", "+")


def joined(words: list[str]) -> str:
    """Join with one space between two words and none around signs."""
    text = ""
    for word in words:
        is_word = word[:1].isalnum() or word[:1] in ("_", "`", "'", '"')
        is_behind_word = text[-1:].isalnum() or text[-1:] in ("_", "`", "'", '"', ")", ">")
        text += f" {word}" if (is_word and is_behind_word) or text[-1:] in (",", ":") else word
    return text
