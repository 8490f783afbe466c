"""Whether a PostgreSQL column type can hold all values of another type, and the wider type that can hold both.

Types are named as PostgreSQL's `format_type` names them. No database access here.
"""

from __future__ import annotations

import re
from enum import Enum

_ALIASES = {
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
    "time": "time without time zone",
}
_NUMERIC = re.compile(r"numeric(?:\((\d+)(?:,\s*(-?\d+))?\))?")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_FLOATS = ("real", "double precision")
# The types that a float type represents exactly: its mantissa has 24 or 53 bits.
_EXACT_IN = {"real": ("smallint",), "double precision": ("smallint", "integer", "real")}
_TEXTS = re.compile(r"text|character varying|character(?: varying)?\(\d+\)|bpchar")
_ANYTHING = ("text", "character varying")


class Room(Enum):
    """UNKNOWN: a type of another family, where only PostgreSQL can decide, value by value."""

    ENOUGH = "enough"
    TOO_LITTLE = "too little"
    UNKNOWN = "unknown"


def canonical(name: str) -> str:
    """The name that `format_type` gives to a type."""
    plain = re.sub(r",\s+", ",", name)
    numeric = _NUMERIC.fullmatch(plain)
    if numeric is not None and numeric[1] is not None:
        return f"numeric({numeric[1]},{numeric[2] or 0})"
    return _ALIASES.get(plain, plain)


def room(present: str, wanted: str) -> Room:
    """Whether a column of type `present` holds every value of type `wanted` without loss."""
    if present == wanted or present in _ANYTHING:
        return Room.ENOUGH
    if _TEXTS.fullmatch(present):
        return Room.TOO_LITTLE if wanted == "text" else Room.UNKNOWN
    if present in _FLOATS:
        if wanted in _EXACT_IN[present]:
            return Room.ENOUGH
        return Room.TOO_LITTLE if wanted in _FLOATS else Room.UNKNOWN
    digits, needed = _digits(present), _digits(wanted)
    if digits is not None and needed is not None:
        is_enough = digits == _UNLIMITED or (digits[0] >= needed[0] and digits[1] >= needed[1])
        return Room.ENOUGH if is_enough else Room.TOO_LITTLE
    if present in _DIGITS and wanted in _FLOATS:
        return Room.TOO_LITTLE
    return Room.UNKNOWN


def widened(present: str, wanted: str) -> str:
    """The type that holds the values of both, where `room` returns TOO_LITTLE."""
    digits, needed = _digits(present), _digits(wanted)
    if digits is None or needed is None or present in _DIGITS or digits == _UNLIMITED:
        return wanted
    if needed == _UNLIMITED:
        return wanted
    whole, scale = max(digits[0], needed[0]), max(digits[1], needed[1])
    return f"numeric({whole + scale},{scale})"


_UNLIMITED = (-1, -1)


def _digits(name: str) -> tuple[int, int] | None:
    """Digits before and after the decimal point of an exact numeric type; `_UNLIMITED` for plain `numeric`."""
    if name in _DIGITS:
        return _DIGITS[name], 0
    numeric = _NUMERIC.fullmatch(name)
    if numeric is None:
        return None
    if numeric[1] is None:
        return _UNLIMITED
    scale = int(numeric[2] or 0)
    return int(numeric[1]) - scale, scale
