"""Converts text to DATE, TIME and TIMESTAMP, exactly or to NULL; shared by JSON, CSV and Debezium.

Spark's casts and `from_json` read "2024" as 1 January, "10:00" as today, drop fraction digits after the sixth, and drop
what follows a date. A pattern is tested first, so a cast is applied only to text that it reads exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.catalyst.expression import Expression, call, cases, literal, when

if TYPE_CHECKING:
    from collections.abc import Sequence

_DATE = r"[+-]?\d{4,6}-\d{1,2}-\d{1,2}"
_SECONDS = r"\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{0,6}0*)?)?"
_CLOCK, _MINUTES = rf"[ T]{_SECONDS}", r"[ T]\d{1,2}:\d{1,2}"
_ZONE = r" ?(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2})?|[A-Za-z_]+/[A-Za-z_/]+)"
# More than six fraction digits, of which one after the sixth is not 0.
_FINER = r":\d{1,2}\.\d{6}\d*[1-9]"
_NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_SHOWN = 40
UNITS = {"seconds": 1_000_000, "millis": 1000, "micros": 1, "nanos": -1000}
"""Microseconds per unit; a negative number is units per microsecond."""
# The years 1 to 9999, in seconds: numbers outside are more likely to be in another unit.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
# Current timestamps in nanoseconds have 19 digits; TRY_CAST returns NULL for what does not fit in a BIGINT.
_WHOLE = r"-?[0-9]{1,19}"
REASONS = {
    "type": " is not a value of type ",
    "digits": " has more digits than this type keeps: ",
    "unit": " is a number of unknown unit: set the option timestamp_unit of the source",
    "range": " is a number beyond the years 1 to 9999, counted in ",
}


def date_of(text: Expression) -> Expression:
    return when(matches(text, _DATE), text.try_cast("DATE"))


def time_of(text: Expression) -> Expression:
    return when(matches(text, _SECONDS), call("trim", text).try_cast("TIME"))


def wall_clock_of(text: Expression) -> Expression:
    """A TIMESTAMP_NTZ; NULL for text with a time zone."""
    return when(matches(text, f"{_DATE}({_CLOCK})?"), text.try_cast("TIMESTAMP_NTZ"))


def zoned_instant_of(text: Expression) -> Expression:
    """A TIMESTAMP; NULL for text without a time zone."""
    return when(matches(text, f"{_DATE}{_CLOCK}{_ZONE}"), text.try_cast("TIMESTAMP"))


def instant_of(text: Expression) -> Expression:
    """A TIMESTAMP; text without a time zone is in UTC, regardless of the session time zone."""

    def in_utc(clock: str) -> Expression:
        return call("concat", call("trim", text), literal(clock)).try_cast("TIMESTAMP")

    return cases(
        [
            (matches(text, f"{_DATE}{_CLOCK}{_ZONE}"), text.try_cast("TIMESTAMP")),
            (matches(text, f"{_DATE}{_MINUTES}"), in_utc(":00Z")),
            (matches(text, f"{_DATE}{_CLOCK}"), in_utc("Z")),
            (matches(text, _DATE), in_utc("T00:00:00Z")),
        ]
    )


def counted_micros(text: Expression, unit: str) -> Expression:
    """An integer in this unit since 1970, converted to microseconds.

    NULL outside the years 1 to 9999, or if it is not a whole number of microseconds.
    """
    number, times = text.try_cast("BIGINT"), UNITS[unit]
    if times < 0:
        exact = Expression(f"{number.sql} % {-times}").compared("=", 0)
        micros = when(exact, Expression(f"({number.sql} DIV {-times})"))
        return _in_years(number, -1_000_000 * times, micros, text)
    micros = number if times == 1 else Expression(f"({number.sql} * {times})")
    return _in_years(number, 1_000_000 // times, micros, text)


def _in_years(number: Expression, per_second: int, micros: Expression, text: Expression) -> Expression:
    first, last = FIRST_SECOND * per_second, (LAST_SECOND + 1) * per_second - 1
    least, most = max(first, -(2**63) + 1), min(last, 2**63 - 1)
    in_range = number.compared(">=", Expression(f"{least}L")) & number.compared("<=", Expression(f"{most}L"))
    return when(call("rlike", text, literal(f"^{_WHOLE}$")) & in_range, micros)


def reason(text: Expression, name: str, kind: str, unit: str | None, takes_unit: bool) -> Expression:
    """Why this text is not a value of the type `kind`, with the cause if it is known."""
    causes: Sequence[tuple[Expression, Expression]] = [
        (call("rlike", text, literal(_FINER)), literal(f"{name}{REASONS['digits']}{kind}")),
    ]
    if takes_unit:
        cause = REASONS["unit"] if unit is None else f"{REASONS['range']}{unit}"
        causes = [*causes, (matches(text, _NUMBER), literal(f"{name}{cause}"))]
    shown = call("left", text, literal(_SHOWN))
    return cases(causes, call("concat", literal(f"{name}{REASONS['type']}{kind}: "), shown))


def matches(text: Expression, pattern: str) -> Expression:
    return call("rlike", text, literal(rf"^\s*{pattern}\s*$"))
