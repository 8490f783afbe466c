"""One row of an option table: the values that an option takes, its default and its meaning; and what a duration is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BOOLEANS = ("true", "false")
DURATION = re.compile(r"\d+(\.\d+)?\s*(microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)
# As many digits as fit into 64 bits.
NUMBER = re.compile(r"\d{1,18}")
POSITIVE = re.compile(r"0{0,9}[1-9]\d{0,17}")
LONGEST_DURATION = timedelta(days=365_250)
NAMES = re.compile(r"[\w.]*(?:\s*,\s*[\w.]+)*")
TEXT = re.compile(r".+", re.DOTALL)
ADDRESS = re.compile(r"https?://[^\s/@]+(/\S*)?|\$\{(env|file):[^}]+\}")
CHARACTER = re.compile(r"[^\s\"\\]|\t|\\t")
EXPECTATIONS = {
    DURATION: "a duration such as '10 minutes', at most 1000 years",
    NUMBER: "a whole number",
    POSITIVE: "a whole number above 0",
    ADDRESS: "an http:// or https:// URL, or a reference to one",
    CHARACTER: "one character, or \\t for a tab",
}


@dataclass(frozen=True, slots=True)
class OptionRow:
    """`values` is the closed list of values, a registry whose names are the values, or a pattern that must match the
    whole value.
    """

    values: tuple[str, ...] | Mapping[str, object] | re.Pattern[str]
    default: str | None
    meaning: str

    @property
    def choices(self) -> tuple[str, ...] | None:
        """The values of a closed list; None if a pattern decides."""
        return None if isinstance(self.values, re.Pattern) else tuple(self.values)

    @property
    def expectation(self) -> str:
        if isinstance(self.values, re.Pattern):
            return EXPECTATIONS.get(self.values, "text")
        return "one of " + ", ".join(self.values)

    def accepts(self, value: str) -> bool:
        if not isinstance(self.values, re.Pattern):
            return value in self.values
        if self.values is DURATION:
            return is_duration(value)
        # A tab is a valid delimiter, and `strip` would remove it.
        return self.values.fullmatch(value if self.values is CHARACTER else value.strip()) is not None


def is_duration(value: str) -> bool:
    """Whether the text is a duration that every part of the system can represent."""
    try:
        return DURATION.fullmatch(value.strip()) is not None and duration(value) <= LONGEST_DURATION
    except OverflowError:
        return False


def duration(text: str) -> timedelta:
    """Parse a value that matches DURATION."""
    number, unit = re.fullmatch(r"([\d.]+)\s*([a-z]+?)s?", text.strip().lower()).groups()  # type: ignore[union-attr]  # it fits
    return timedelta(**{f"{unit}s": float(number)})
