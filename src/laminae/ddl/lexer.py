"""The contextual lexer: one pattern for each state of the parser, made when the state is first reached.

lark's own takes 17 matches and counts lines for a statement of 9 words (38 of 100 us, measured); this one steps over
spaces within the match of the next word and leaves lines to the errors, since only they show any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from lark import Token
from lark.lexer import Lexer, PatternStr

from laminae.ddl.terminals import TRIVIA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lark.common import LexerConf
    from lark.lexer import LexerState, TerminalDef
    from lark.parsers.lalr_parser_state import ParserState

    Match = Callable[[str, int], re.Match[str] | None]

_TRIVIA = re.compile(f"{TRIVIA}*+")


class UnexpectedText(Exception):
    def __init__(self, offset: int, state: ParserState[int]) -> None:
        super().__init__(offset)
        self.offset = offset
        self.state = state


class StateLexer(Lexer):
    __future_interface__: ClassVar[int] = 2

    def __init__(self, conf: LexerConf) -> None:
        # Keywords before patterns: a word that is both is the keyword where the state takes that keyword at all.
        self._terminals = sorted(conf.terminals, key=lambda row: not isinstance(row.pattern, PatternStr))
        self._callbacks: dict[str, Callable[[Token], Token]] = conf.callbacks
        self._matches: dict[int, Match] = {}

    def lex(self, lexer_state: LexerState, parser_state: ParserState[int]) -> Iterator[Token]:
        text = lexer_state.text.text
        callbacks, matches, states = self._callbacks, self._matches, parser_state.state_stack
        at = 0
        while True:
            match = (matches.get(states[-1]) or self._match(parser_state))(text, at)
            if match is None:
                raise UnexpectedText(_after_trivia(text, at), parser_state)
            kind = match.lastgroup
            if kind is None:
                return
            at = match.end()
            token = Token(kind, match[kind], match.start(kind), end_pos=at)
            yield callbacks[kind](token) if kind in callbacks else token

    def _match(self, parser_state: ParserState[int]) -> Match:
        state = parser_state.position
        accepted = parser_state.parse_conf.states[state]
        words = "|".join(f"(?P<{row.name}>{_pattern(row)})" for row in self._terminals if row.name in accepted)
        # At the end of the text no group takes part, whether or not the parser can stop there.
        self._matches[state] = re.compile(rf"{TRIVIA}*+(?:{words}|\Z)").match
        return self._matches[state]


def _pattern(terminal: TerminalDef) -> str:
    """A keyword ends where the word ends: ADDCOLUMN is not ADD COLUMN."""
    pattern = terminal.pattern
    if isinstance(pattern, PatternStr) and pattern.value.isidentifier():
        return rf"(?i:{pattern.value}\b)"
    return pattern.to_regexp()


def _after_trivia(text: str, at: int) -> int:
    match = _TRIVIA.match(text, at)
    return match.end() if match else at
