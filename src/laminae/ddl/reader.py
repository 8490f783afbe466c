"""The lark parser, put together once: rules from grammar.lark, words from terminals.py, values from builder.py.

Only this module, the lexer and the expectations know lark; importing `laminae.ddl` does not load it (0.1 s).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, cast

from lark import Lark
from lark.exceptions import UnexpectedToken

from laminae.ddl.builder import Builder
from laminae.ddl.expectations import unexpected
from laminae.ddl.lexer import StateLexer, UnexpectedText
from laminae.ddl.terminals import lark_terminals

if TYPE_CHECKING:
    from laminae.ddl.statements import Statement

_RULES = files("laminae.ddl").joinpath("grammar.lark").read_text("utf-8")
_LARK = Lark(
    f"{_RULES}\n{lark_terminals()}\n",
    parser="lalr",
    lexer=StateLexer,
    start="statements",
    maybe_placeholders=True,
    transformer=Builder(),
)


def read(text: str) -> tuple[Statement, ...]:
    try:
        return cast("tuple[Statement, ...]", _LARK.parse(text))
    except UnexpectedText as stop:
        raise unexpected(text, stop.offset, False, stop.state) from None
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        offset = error.token.end_pos if at_end else error.token.start_pos
        raise unexpected(text, offset or 0, at_end, error.state) from None
