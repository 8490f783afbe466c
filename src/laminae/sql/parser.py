"""Text to statements: every fault in a text becomes one positioned error.

A text gives all its statements or one DdlSyntaxError; nothing of an input is kept between calls.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from laminae.sql.syntax_errors import Fault, syntax_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.sql.statements import Statement

# Arrow, SQLite and files cannot hold them, so they are told here and not deep inside one of those.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a text, separated by ';'."""
    try:
        if unstorable := _UNSTORABLE.search(text):
            problem = f"the text holds the character U+{ord(unstorable.group()):04X}"
            raise Fault(unstorable.start(), problem, "remove it; it cannot be stored or sent as UTF-8")
        return _reader()(text)
    except Fault as fault:
        # Without the cause: lark's own errors quote the text, secrets included.
        raise syntax_error(text, fault) from None


@cache
def _reader() -> Callable[[str], tuple[Statement, ...]]:
    from laminae.sql.reader import read

    return read
