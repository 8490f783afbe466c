"""Names as Spark SQL writes and compares them: the one place that puts a name into a text and takes it out again."""

from __future__ import annotations

import re

INTERNAL = "__laminae_"
"""Begins the names of columns that plans have for themselves; no column of a source or view begins so."""
MAX_NAME = 255
_BARE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
# Words that Spark reads as values wherever a column could stand.
_VALUES = frozenset(("null", "true", "false"))


def column_name_problem(name: str) -> str | None:
    """Why nothing can be called so, or None. Asked of names that people write and of those that data brings."""
    if not name.strip():
        return "it is empty"
    if len(name) > MAX_NAME:
        return f"it has {len(name)} characters"
    if any(ord(character) < 32 or 0xD800 <= ord(character) <= 0xDFFF for character in name):
        return "it holds a control character or half a surrogate pair"
    if name.casefold().startswith(INTERNAL):
        return f"names that begin with {INTERNAL} are reserved"
    return None


def quoted(name: str) -> str:
    """The name between backticks: Spark reads no dot, star, space or keyword inside."""
    return f"`{name.replace('`', '``')}`"


def unquoted(sql: str) -> str | None:
    """The name of the column that an expression in Spark's SQL consists of; None for any other expression.

    `a.b` without backticks is the field b of a column a, and no name.
    """
    if _BARE.fullmatch(sql):
        return None if sql.lower() in _VALUES else sql
    match = _QUOTED.fullmatch(sql)
    return None if match is None else match[1].replace("``", "`")


def collation_key(name: str) -> str:
    """Equal for two names that some reader takes for one: Python, Java or Spark, which each fold case their own way.

    Java compares character by character and takes I with and without a dot for one letter; Python takes a sharp s for
    two letters.
    """
    if name.isascii():
        return name.lower()
    return "".join(_java_lower(_java_upper(character)) for character in name).casefold()


def _java_upper(character: str) -> str:
    upper = character.upper()
    return upper if len(upper) == 1 else character


def _java_lower(character: str) -> str:
    return character.lower()[0]
