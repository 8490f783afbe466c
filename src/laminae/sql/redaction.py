"""Option values that an error must not show.

Masking works on broken text too (a quote forgotten, a value without quotes), because that is when errors quote it.
It shows too little rather than too much; what may be stored is decided elsewhere.
"""

from __future__ import annotations

import re
from functools import cached_property

from laminae.secrets import hides_value, secret_spans

MASK = "'***'"

_QUOTED_VALUE = r"""(?:'(?:[^'\\]|\\(?s:.)|'')*+'?|"(?:[^"\\]|\\(?s:.)|"")*+"?)"""
# Spaces and comments between a name and its value; bounded, since it is tried behind every word of the text.
_GAP = r"(?:\s|--[^\n]{0,200}+\n|/\*[^*]{0,200}+\*/)*+"
# Looked for behind every word, also inside strings: a forgotten quote turns names into text and values into words.
_ASSIGNMENT = re.compile(
    rf"""(?P<name>(?<![\w.\-])[\w.\-]++)
         (?=['"`]?{_GAP}(?:(?:=>|==|:|=)?{_GAP}(?P<quoted>{_QUOTED_VALUE})|={_GAP}(?P<bare>[^\s,;)]++)))""",
    re.VERBOSE,
)
_CLEAN_END = re.compile(r"\s*+(?:[,;)]|\Z)")


class Masked:
    """A text with its secret values replaced, and where each place of the original is in it."""

    def __init__(self, text: str) -> None:
        self._original = text

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        named = self._named_spans()
        inside = secret_spans(self._original)
        merged: list[tuple[int, int]] = []
        for start, end in sorted(named + inside):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _named_spans(self) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for match in _ASSIGNMENT.finditer(self._original):
            if not hides_value(match["name"]):
                continue
            start, end = match.span("quoted" if match["quoted"] is not None else "bare")
            if not _CLEAN_END.match(self._original, end):
                # The value had a quote inside: what follows on the line is the rest of it.
                line_end = self._original.find("\n", end)
                end = len(self._original) if line_end < 0 else line_end
            if spans and start < spans[-1][1]:
                start, end = spans[-1][0], max(end, spans.pop()[1])
            spans.append((start, end))
        return spans

    @cached_property
    def text(self) -> str:
        parts, last = [], 0
        for start, end in self.spans:
            parts += [self._original[last:start], MASK]
            last = end
        return "".join([*parts, self._original[last:]])

    def covers(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.spans)

    def offset(self, offset: int) -> int:
        """The place in the masked text; anywhere in a value is its first character."""
        shift = 0
        for start, end in self.spans:
            if offset <= start:
                break
            if offset < end:
                return start + shift
            shift += len(MASK) - (end - start)
        return offset + shift
