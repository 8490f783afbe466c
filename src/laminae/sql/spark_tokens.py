"""The tokens of a Spark SQL text, cut where Spark's own lexer cuts them. Text in, text out: nothing is unescaped.

Whoever takes a query apart (for a view, for the relations that it reads) works on these tokens, so that a literal
reaches Spark as it was written. `tests/integration/spark/test_spark_tokens.py` compares them with Spark's SqlBaseLexer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

# Spark nests comments without a limit; text that is nested deeper than this is refused and not misread.
DEEPEST_COMMENT = 6


def _comment() -> str:
    """Possessive, so that an unclosed comment fails in one pass."""
    plain = r"[^*/]|\*(?!/)|/(?!\*)"
    pattern = rf"/\*(?:{plain})*+\*/"
    for _ in range(DEEPEST_COMMENT - 1):
        pattern = rf"/\*(?:{plain}|{pattern})*+\*/"
    return pattern


# A backslash at the end of a line goes on with the comment on the next one.
LINE_COMMENT = r"--(?:\\\n|[^\r\n])*+"
COMMENT = _comment()
TRIVIA = rf"(?:\s++|{LINE_COMMENT}|{COMMENT})"
_HIDDEN = rf"(?:\s++|{LINE_COMMENT}|(?!/\*\+){COMMENT})"
SINGLE_QUOTED = r"'(?:[^'\\]|\\(?s:.)|'')*+'"
DOUBLE_QUOTED = r'"(?:[^"\\]|\\(?s:.)|"")*+"'
RAW = r"""[rR](?:'[^']*+'|"[^"]*+")"""
BACKQUOTED = r"`(?:[^`]|``)*+`"
_DIGITS = r"(?:[0-9]++\.[0-9]*+|\.[0-9]++)"
_EXPONENT = r"[eE][+-]?[0-9]++"
_NUMBER = rf"(?:{_DIGITS}(?:{_EXPONENT})?(?:BD|[fFdD]|bd|Bd|bD)?(?!\w)|[0-9]++{_EXPONENT}(?:BD|bd|Bd|bD|[fFdD])?(?!\w)"
_NUMBER += r"|[0-9]++(?:BD|bd|Bd|bD|[lLsSyYfFdD])?(?!\w))"


class Kind(Enum):
    STRING = "STRING"
    NUMBER = "NUMBER"
    WORD = "WORD"
    QUOTED = "QUOTED"
    HINT = "HINT"
    SIGN = "SIGN"


@dataclass(frozen=True, slots=True)
class SparkToken:
    """`text` is what stands at `start` (inclusive) to `end` (exclusive)."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """In upper case where it may be a keyword, the sign where it is one, else nothing."""
        return self.text.upper() if self.kind in (Kind.WORD, Kind.SIGN) else ""


class UnclosedToken(ValueError):
    """A string, a quoted name or a comment without an end."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


_SIGNS = ("<=>", "->", "=>", "::", "||", "|>", "<=", ">=", "<>", "!=", "==")
_TOKEN = re.compile(
    "|".join(
        (
            rf"(?P<HINT>/\*\+)|(?P<TRIVIA>{_HIDDEN}++)",
            rf"(?P<STRING>{RAW}|{SINGLE_QUOTED}|{DOUBLE_QUOTED})",
            rf"(?P<QUOTED>{BACKQUOTED})",
            rf"(?P<NUMBER>{_NUMBER})",
            r"(?P<WORD>\w++)",
            rf"(?P<SIGN>{'|'.join(map(re.escape, _SIGNS))}|(?!/\*)[^'\"`])",
        )
    )
)


def spark_tokens(text: str) -> tuple[SparkToken, ...]:
    """Every token of a text but spaces and comments; a hint is `/*+`, its words and `*`, `/`."""
    tokens: list[SparkToken] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise UnclosedToken(at)
        if match.lastgroup != "TRIVIA":
            tokens.append(SparkToken(Kind[match.lastgroup], match.group(), at))
        at = match.end()
    return tuple(tokens)
