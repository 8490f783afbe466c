"""Value types that Python lacks, and conversions between Python values and the numbers that Spark stores.

Dates are days, times are micro- or nanoseconds, and so on. A value beyond the range of Python's datetime stays a
number.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = datetime(1970, 1, 1)
EPOCH_DAY = EPOCH.date().toordinal()
MICROSECOND = timedelta(microseconds=1)
NANOS = 1000


class CalendarInterval(NamedTuple):
    """A non-ANSI INTERVAL: three numbers that cannot be converted into each other."""

    months: int
    days: int
    microseconds: int


class VariantValue(NamedTuple):
    """An encoded VARIANT: its value, and the dictionary of its keys."""

    value: bytes
    metadata: bytes


def to_days(value: object) -> object:
    return value.toordinal() - EPOCH_DAY if isinstance(value, date) and not isinstance(value, datetime) else value


def from_days(days: int) -> object:
    try:
        return date.fromordinal(days + EPOCH_DAY)
    except (ValueError, OverflowError):
        return days


def to_micros(value: object) -> object:
    match value:
        case datetime():
            naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return (naive - EPOCH) // MICROSECOND
        case timedelta():
            return value // MICROSECOND
    return value


def from_micros(micros: int) -> object:
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return micros


def from_utc_micros(micros: int) -> object:
    moment = from_micros(micros)
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment


def to_span(micros: int) -> object:
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        return micros


def to_nanos(value: object) -> object:
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) * NANOS
    return value


def from_nanos(nanos: int) -> object:
    if nanos % NANOS:
        return nanos
    micros = nanos // NANOS
    seconds, micro = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micro)


def _same(value: object) -> object:
    return value


# By the first word of the type's name: the conversion to the stored number, and the conversion back.
LOGICAL: dict[str, tuple[Callable[[object], object], Callable[[int], object]]] = {
    "date": (to_days, from_days),
    "timestamp": (to_micros, from_utc_micros),
    "timestamp_ntz": (to_micros, from_micros),
    "time": (to_nanos, from_nanos),
    "interval day": (to_micros, to_span),
    "interval hour": (to_micros, to_span),
    "interval minute": (to_micros, to_span),
    "interval second": (to_micros, to_span),
}


def logical(name: str) -> tuple[Callable[[object], object], Callable[[int], object]]:
    """Both conversions for a leaf type by name; numbers are not converted."""
    plain = name.split("(")[0].split(" to ")[0]
    return LOGICAL.get(plain, (_same, _same))


def scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def unscaled(value: Decimal | int, scale: int) -> int:
    """The unscaled value of a decimal at this scale. Raises `ValueError` for a value with more fractional digits."""
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a number")
    shift = exponent + scale
    number = int("".join(map(str, digits)))
    if shift < 0 and number % 10**-shift:
        raise ValueError(f"{value} has more than {scale} digits behind the point")
    whole: int = number * 10**shift if shift >= 0 else number // 10**-shift
    return -whole if sign else whole
