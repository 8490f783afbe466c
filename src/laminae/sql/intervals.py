"""Day-time intervals: text such as '1 02:03' DAY TO MINUTE to microseconds, and microseconds to text.

Months and years are refused here, since they have no fixed length; as column types they are in `schema.types`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from laminae.sql.syntax_errors import Fault

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
PRINTED = ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
MAX_MICROSECONDS = 2**63 - 1

_RANGE = ("DAY", "HOUR", "MINUTE", "SECOND")
_LIMITS = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
_EXPECTED_UNIT = f"expected one of {', '.join(UNITS)}"
_EXPECTED_VALUE = "expected a form such as '5' SECOND, '5 seconds' or '1 02:03:04' DAY TO SECOND"
# Twenty digits say any int64 number of microseconds; more would only feed the error a longer number.
_NUMBER = re.compile(r"\s*([+-]?)\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*")
_PHRASE = re.compile(r"\s*([+-]?\s*[0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z]+)")


def read_interval(value: str, unit: str | None, last_unit: str | None, offset: int) -> int:
    """Microseconds of INTERVAL value [unit [TO last_unit]]; without a unit the text names its own."""
    if unit is None:
        microseconds = _phrase(value, offset)
    elif last_unit is None:
        microseconds = _scaled(value, _unit(unit, offset), offset)
    else:
        microseconds = _ranged(value, _unit(unit, offset), _unit(last_unit, offset), offset)
    if abs(microseconds) > MAX_MICROSECONDS:
        raise Fault(offset, "the interval is too long", f"expected at most {MAX_MICROSECONDS} microseconds")
    return microseconds


def interval_sql(microseconds: int) -> str:
    """In the largest unit that divides it, so that nobody reads 300000000 microseconds."""
    unit = next(unit for unit in PRINTED if microseconds % UNITS[unit] == 0) if microseconds else "SECOND"
    return f"INTERVAL '{microseconds // UNITS[unit]}' {unit}"


def _unit(word: str, offset: int) -> str:
    name = word.upper()
    singular = name if name in UNITS else name.removesuffix("S")
    if singular not in UNITS:
        raise Fault(offset, f"{word} is not a unit of a day-time interval", _EXPECTED_UNIT)
    return singular


def _scaled(value: str, unit: str, offset: int) -> int:
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise Fault(offset, "the interval is not a number", _EXPECTED_VALUE)
    exact = Fraction(match[2]) * UNITS[unit]
    if exact.denominator != 1:
        raise Fault(offset, "the interval is finer than a microsecond", "expected a whole number of microseconds")
    return -int(exact) if match[1] == "-" else int(exact)


def _phrase(value: str, offset: int) -> int:
    total, at = 0, 0
    while match := _PHRASE.match(value, at):
        total += _scaled(match[1], _unit(match[2], offset), offset)
        at = match.end()
    if at == 0 or value[at:].strip():
        raise Fault(offset, "the interval has no unit", _EXPECTED_VALUE)
    return total


def _ranged(value: str, first: str, last: str, offset: int) -> int:
    if first not in _RANGE or last not in _RANGE or _RANGE.index(first) >= _RANGE.index(last):
        raise Fault(offset, f"{first} TO {last} is not an interval range", "expected DAY TO SECOND or a part of it")
    units = _RANGE[_RANGE.index(first) : _RANGE.index(last) + 1]
    text = value.strip()
    negative = text.startswith("-")
    parts = re.split(r"[ :]", text.lstrip("+-"))
    if len(parts) != len(units):
        raise Fault(offset, f"the interval does not have the {len(units)} parts of {first} TO {last}", _EXPECTED_VALUE)
    total = 0
    for position, (part, unit) in enumerate(zip(parts, units, strict=True)):
        amount = _scaled(part, unit, offset)
        if position and not 0 <= amount < _LIMITS[unit] * UNITS[unit]:
            raise Fault(offset, f"{part} is not a {unit} within an interval", f"expected less than {_LIMITS[unit]}")
        total += amount
    return -total if negative else total
