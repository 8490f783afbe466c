"""The lark parser, put together once: rules from grammar.lark, words from terminals.py, values from builder.py.

Only this module and the expected tokens know lark; importing `laminae.sql` does not load it (0.1 s).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, cast

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternRE, PatternStr

from laminae.sql.expected_tokens import unexpected
from laminae.sql.source_builder import Builder
from laminae.sql.terminals import lark_terminals

if TYPE_CHECKING:
    from lark.lexer import TerminalDef

    from laminae.sql.statements import Statement


def _edit_keyword(terminal: TerminalDef) -> TerminalDef:
    """A keyword ends where the word ends: ADDCOLUMN is not ADD COLUMN. A word that is a keyword and a name is the
    keyword where the parser's state takes that keyword at all.
    """
    pattern = terminal.pattern
    if isinstance(pattern, PatternStr) and pattern.value.isidentifier():
        terminal.pattern, terminal.priority = PatternRE(rf"{pattern.value}\b", ("i",)), 1
    return terminal


_RULES = files("laminae.sql").joinpath("grammar.lark").read_text("utf-8")
_LARK = Lark(
    f"{_RULES}\n{lark_terminals()}\n",
    parser="lalr",
    lexer="contextual",
    edit_terminals=_edit_keyword,
    start="statements",
    maybe_placeholders=True,
    transformer=Builder(),
)


def read(text: str) -> tuple[Statement, ...]:
    try:
        return cast("tuple[Statement, ...]", _LARK.parse(text))
    except UnexpectedCharacters as error:
        raise unexpected(text, error.pos_in_stream or 0, False, error.state) from None
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        offset = error.token.end_pos if at_end else error.token.start_pos
        raise unexpected(text, offset or 0, at_end, error.state) from None
