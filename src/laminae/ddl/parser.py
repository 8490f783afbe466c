"""Text to statements: the grammar put together once, on first use, and every fault turned into a positioned error.

A text gives all its statements or one DdlSyntaxError; nothing of an input is kept between calls.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from laminae.ddl.faults import Fault, syntax_error

if TYPE_CHECKING:
    from lark import Lark
    from lark.lexer import TerminalDef

    from laminae.ddl.statements import Statement

# Arrow, SQLite and files cannot hold them, so they are told here and not deep inside one of those.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a text, separated by ';'."""
    try:
        if unstorable := _UNSTORABLE.search(text):
            problem = f"the text holds the character U+{ord(unstorable.group()):04X}"
            raise Fault(unstorable.start(), problem, "remove it; it cannot be stored or sent as UTF-8")
        return _statements(text)
    except Fault as fault:
        # Without the cause: lark's own errors quote the text, secrets included.
        raise syntax_error(text, fault) from None


def _statements(text: str) -> tuple[Statement, ...]:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from laminae.ddl.expectations import unexpected

    try:
        return cast("tuple[Statement, ...]", _lark().parse(text))
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        offset = error.token.end_pos if at_end else error.token.start_pos
        raise unexpected(text, offset or 0, at_end, error.state) from None
    except UnexpectedCharacters as error:
        raise unexpected(text, error.pos_in_stream or 0, False, error.state) from None


@cache
def _lark() -> Lark:
    from lark import Lark

    from laminae.ddl.builder import Builder
    from laminae.ddl.terminals import lark_terminals

    rules = files("laminae.ddl").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        f"{rules}\n{lark_terminals()}\n",
        parser="lalr",
        lexer="contextual",
        start="statements",
        maybe_placeholders=True,
        transformer=Builder(),
        edit_terminals=_end_at_word_boundary,
    )


def _end_at_word_boundary(terminal: TerminalDef) -> None:
    """Keywords win over names and end where the word ends: ADDCOLUMN is not ADD COLUMN."""
    from lark.lexer import PatternRE, PatternStr

    if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isidentifier():
        terminal.pattern = PatternRE(rf"{terminal.pattern.value}\b", ("i",))
        terminal.priority = 1
