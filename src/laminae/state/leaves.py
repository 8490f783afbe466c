"""How each leaf type of Spark SQL lies in an UnsafeRow: a word of its own, or bytes behind the row. One table.

A word holds the value in its low bytes. A reserved leaf keeps two words behind the row even when it is NULL, because
Spark updates it in place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

LONG_DIGITS = 18
"""Decimals up to so many digits are a number in one word."""


class Form(Enum):
    """What the bytes of a leaf are."""

    NOTHING = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    SMALL_DECIMAL = auto()
    LARGE_DECIMAL = auto()
    CALENDAR_INTERVAL = auto()
    TEXT = auto()
    BINARY = auto()
    VARIANT = auto()


@dataclass(frozen=True, slots=True)
class Layout:
    """`width` is the bytes of an array element that lies in the array itself; None: the bytes lie behind."""

    form: Form
    width: int | None = None
    scale: int = 0

    @property
    def is_word(self) -> bool:
        return self.width is not None

    @property
    def null_size(self) -> int | None:
        """Bytes that the slot of a reserved leaf names for NULL; None for a leaf that reserves nothing."""
        return RESERVED_NULLS.get(self.form)


# Spark's writer clears the size of a decimal that is NULL, and leaves that of an interval.
RESERVED_NULLS = {Form.LARGE_DECIMAL: 0, Form.CALENDAR_INTERVAL: 16}

LEAVES: tuple[tuple[str, Layout], ...] = (
    (r"void", Layout(Form.NOTHING, 8)),
    (r"boolean", Layout(Form.BOOLEAN, 1)),
    (r"byte", Layout(Form.INTEGER, 1)),
    (r"short", Layout(Form.INTEGER, 2)),
    (r"integer|date", Layout(Form.INTEGER, 4)),
    (r"long|timestamp|timestamp_ntz|time\(\d+\)", Layout(Form.INTEGER, 8)),
    (r"interval (year|month)( to month)?", Layout(Form.INTEGER, 4)),
    (r"interval (day|hour|minute|second)( to (hour|minute|second))?", Layout(Form.INTEGER, 8)),
    (r"float", Layout(Form.FLOAT, 4)),
    (r"double", Layout(Form.FLOAT, 8)),
    (r"interval|calendar_interval", Layout(Form.CALENDAR_INTERVAL)),
    (r"string|(char|varchar)\(\d+\)|string collate \S+", Layout(Form.TEXT)),
    (r"binary|geometry(\(.*\))?|geography(\(.*\))?", Layout(Form.BINARY)),
    (r"variant", Layout(Form.VARIANT)),
)
DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


@lru_cache(maxsize=512)
def layout_of(name: str) -> Layout | None:
    """The layout of a leaf by Spark's JSON name; None for a name that is not in the table."""
    if decimal := DECIMAL.fullmatch(name):
        precision, scale = map(int, decimal.groups())
        small = precision <= LONG_DIGITS
        return Layout(Form.SMALL_DECIMAL, 8, scale) if small else Layout(Form.LARGE_DECIMAL, None, scale)
    return next((layout for pattern, layout in LEAVES if re.fullmatch(pattern, name)), None)


def is_leaf_name(name: str) -> bool:
    return layout_of(name) is not None
