"""A fault in a text: found at an offset while it is read, told to a person with line, column and the line itself.

Offsets count characters from the start of the text given to `parse`. Only this module writes a DdlSyntaxError.
"""

from __future__ import annotations

import re

from laminae.errors import DdlSyntaxError
from laminae.sql.redaction import MASK, Masked
from laminae.sql.terminals import LEXEME

# A generated statement may be one line of megabytes; a terminal shows about this much around the mark.
SNIPPET_WIDTH = 120
FOUND_WIDTH = 40

_FOUND = re.compile(rf"[^\W\d]\w*(?:[.\-]\w+)*|[0-9][\w.]*|{LEXEME}|\S")


class Fault(Exception):
    def __init__(self, offset: int, problem: str, expected: str) -> None:
        super().__init__(problem)
        self.offset = offset
        self.problem = problem
        self.expected = expected


def syntax_error(text: str, fault: Fault) -> DdlSyntaxError:
    line_start = text.rfind("\n", 0, fault.offset) + 1
    return DdlSyntaxError(
        line=text.count("\n", 0, fault.offset) + 1,
        column=fault.offset - line_start + 1,
        problem=fault.problem,
        snippet=_snippet(text, fault.offset),
        expected=fault.expected,
    )


def found_at(text: str, offset: int) -> str:
    """The word, number, string or sign at an offset, as an error may show it."""
    if Masked(text).covers(offset):
        return MASK
    match = _FOUND.match(text, offset)
    return _visible(match.group() if match else text[offset : offset + 1])


def _visible(found: str) -> str:
    cut = found if len(found) <= FOUND_WIDTH else found[:FOUND_WIDTH] + "..."
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in cut)


def _snippet(text: str, offset: int) -> str:
    masked = Masked(text)
    shown, at = masked.text, masked.offset(offset)
    start = shown.rfind("\n", 0, at) + 1
    end = shown.find("\n", at)
    line = shown[start : len(shown) if end < 0 else end].rstrip("\r")
    cut = max(0, at - start - SNIPPET_WIDTH // 2)
    window = line[cut : cut + SNIPPET_WIDTH]
    before, after = "..." if cut else "", "..." if cut + SNIPPET_WIDTH < len(line) else ""
    # A tab stays a tab under itself, so the mark stands right whatever the tab width is.
    pad = re.sub(r"[^\t]", " ", before + line[cut : at - start])
    clean = "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in window)
    return f"  {before}{clean}{after}\n  {pad}^"
