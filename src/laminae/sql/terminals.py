"""The words of the grammar that have a pattern, and how each terminal is called in an error.

One table: the parser takes the patterns, the errors take the readings. Text inside a query is only skipped over here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from laminae.sql.spark_tokens import BACKQUOTED, DOUBLE_QUOTED, RAW, SINGLE_QUOTED, TRIVIA

QUERY_HEADS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")

# Possessive repeats (`*+`) everywhere: a long query or an unterminated comment must not backtrack.
_WORD = r"[^\W\d]\w*+"
_OPTION = r"[^\W\d]\w*+(?:[.\-]\w++)*+"
_STRING = r"(?:[rR]'[^']*+'|'(?:[^'\\]|\\(?s:.)|'')*+')"

# What one step over opaque query text takes: as Spark lexes it, "..." is a string with escapes there.
LEXEME = rf"""(?:{RAW}|\w++|{SINGLE_QUOTED}|{DOUBLE_QUOTED}|{BACKQUOTED}|-(?!-)|/(?!\*)|[^\s\w'"`;/\-])"""

# Words that may follow a column or table called emit; with any other word after it, EMIT starts the last clause.
_AFTER_A_COLUMN = (
    "AND|ANTI|AS|ASC|BETWEEN|CROSS|DESC|DIV|ELSE|EMIT|END|EXCEPT|FROM|FULL|GROUP|HAVING|ILIKE|IN|INNER|INTERSECT|IS|JOIN|"
    "LATERAL|LEFT|LIKE|LIMIT|MINUS|NATURAL|NOT|NULLS|OFFSET|OR|ORDER|QUALIFY|REGEXP|RIGHT|RLIKE|SEMI|TABLESAMPLE|THEN|"
    "UNION|USING|WHEN|WHERE|WINDOW|WITH"
)
# Only a few words, numbers and strings up to the end of the statement: with no parenthesis after it, EMIT stands
# outside all. The bound keeps a text full of the word from being read to its end at each of them.
_EMIT_CLAUSE = (
    rf"(?<!\.)EMIT{TRIVIA}++(?!(?:{_AFTER_A_COLUMN})\b)\w++(?:{TRIVIA}*+(?:\w++|'[^']*+')){{0,8}}+{TRIVIA}*+(?:;|\Z)"
)
# Trailing trivia stays outside, so a query can be wrapped in parentheses without a comment swallowing the last one.
_QUERY = rf"(?i:(?:(?:{'|'.join(QUERY_HEADS)})\b|\()(?:{TRIVIA}*+(?!{_EMIT_CLAUSE}){LEXEME})*+)"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal's pattern, if the grammar file does not spell it, and its reading in a list of what was expected."""

    reading: str
    pattern: str | None = None


TERMINALS: dict[str, Terminal] = {
    "WORD": Terminal("a name", _WORD),
    "QUOTED": Terminal("a name", r"`(?:[^`]|``)*+`|\"(?:[^\"]|\"\")*+\""),
    "TYPE_NAME": Terminal("a type", _WORD),
    "UNIT": Terminal("a unit such as SECOND", _WORD),
    "MODE": Terminal("a compatibility mode", _WORD),
    "OPTION": Terminal("an option name", _OPTION),
    "SETTING": Terminal("a word", _OPTION),
    "STRING": Terminal("a quoted string", _STRING),
    "HEX": Terminal("a binary string", r"[xX]'[^']*+'"),
    "INT": Terminal("a whole number", r"[0-9]++(?![\w.])"),
    "NUMBER": Terminal("a number", r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+\-]?[0-9]++)?(?!\w)"),
    "QUERY": Terminal(f"a query ({', '.join(QUERY_HEADS)} or a parenthesis)", _QUERY),
    "TRIVIA": Terminal("a space or comment", f"{TRIVIA}++"),
    "LPAR": Terminal("'('"),
    "RPAR": Terminal("')'"),
    "LESSTHAN": Terminal("'<'"),
    "MORETHAN": Terminal("'>'"),
    "COMMA": Terminal("','"),
    "DOT": Terminal("'.'"),
    "COLON": Terminal("':'"),
    "EQUAL": Terminal("'='"),
    "MINUS": Terminal("'-'"),
    "PLUS": Terminal("'+'"),
    "SEMICOLON": Terminal("';'"),
    "$END": Terminal("the end of the statement"),
}
"""A keyword is not listed: it reads as itself."""

# Several terminals that together are one idea to a reader.
_LITERAL = "a literal such as 5, 'text', TRUE or DATE '2024-01-31'"
_OPTION_VALUE = frozenset({"STRING", "NUMBER", "TRUE", "FALSE", "MINUS", "PLUS"})
_SCALAR = _OPTION_VALUE | {"NULL", "HEX", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL"}
GROUPS: dict[frozenset[str], str] = {
    _SCALAR | {"ARRAY"}: _LITERAL,
    _SCALAR: _LITERAL,
    _OPTION_VALUE: "a quoted string, a number, TRUE or FALSE",
    frozenset({"TYPE_NAME", "ARRAY", "MAP", "STRUCT", "INTERVAL"}): "a type",
    frozenset({"WORD", "QUOTED", "IF", "PRIMARY", "WATERMARK"}): "a name",
    frozenset({"OPTION", "QUOTED", "STRING"}): "an option name",
    frozenset({"SEMICOLON", "$END"}): "the end of the statement",
}


def takes_literal(terminals: set[str]) -> bool:
    return terminals >= _SCALAR


def lark_terminals() -> str:
    """The patterns as lines of a lark grammar."""
    rows = ((name, row.pattern) for name, row in TERMINALS.items() if row.pattern is not None)
    return "\n".join(f"{name}: /{pattern.replace('/', chr(92) + '/')}/" for name, pattern in rows)


LEXEME_OR_TRIVIA = re.compile(f"{TRIVIA}|{LEXEME}")
