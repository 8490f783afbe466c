"""SQL literals and Python values: how a string, number, date or interval is read, and how it is written again.

Readers take a token's text and its offset, and raise a Fault there. Nothing is rounded or cut off silently.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from laminae.schema.types import quote_string
from laminae.sql.intervals import interval_sql
from laminae.sql.syntax_errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.sql.statements import Scalar

MAX_DIGITS = 38
MAX_INT64 = 2**63 - 1

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)|''|\"\"", re.DOTALL)
_BEYOND_UNICODE = re.compile(r"(?<!\\)(?:\\\\)*(\\U(?!00(?:0[0-9A-Fa-f]|10))[0-9A-Fa-f]{8})")
# Spark keeps the backslash before % and _ so that a LIKE pattern can be written.
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
_OFFSET = r"\s?(?:Z|UTC|[+-]\d{2}:\d{2})"
_SHAPES = {
    "DATE": (re.compile(_DATE, re.ASCII), "DATE '2024-01-31'"),
    "TIME": (re.compile(_TIME, re.ASCII), "TIME '23:59:00.5'"),
    "TIMESTAMP": (
        re.compile(rf"{_DATE}(?:[ T]{_TIME}(?:{_OFFSET})?)?", re.ASCII),
        "TIMESTAMP '2024-01-31 23:59:00.5+01:00' with at most microseconds",
    ),
    "TIMESTAMP_NTZ": (
        re.compile(rf"{_DATE}(?:[ T]{_TIME})?", re.ASCII),
        "TIMESTAMP_NTZ '2024-01-31 23:59:00.5', without an offset",
    ),
}


def unescaped(raw: str) -> str:
    """What a string means by Spark's rules: backslash escapes, a doubled quote, and r'...' without escapes."""
    if raw[0] in "rR":
        return raw[2:-1]
    body, quote = raw[1:-1], raw[0]
    if "\\" not in body and quote not in body:
        return body

    def meaning(match: re.Match[str]) -> str:
        code = match[1]
        if code is None:
            return quote if match.group() == quote * 2 else match.group()
        if len(code) == 1:
            return _ESCAPED.get(code, code)
        number = int(code, 8) if code[0] in "0123" else int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else match.group()

    return _ESCAPE.sub(meaning, body)


def read_string(raw: str, offset: int) -> str:
    """The value of a string that can be stored; a Fault if it is not valid text."""
    if beyond := _BEYOND_UNICODE.search(raw) if raw[0] == "'" else None:
        raise Fault(offset, f"{beyond[1]} is not a character", "escapes go up to \\U0010FFFF")
    value = unescaped(raw)
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Fault(
            offset, "the string holds half of a surrogate pair", "write both halves, or \\U and 8 digits"
        ) from None


def read_number(raw: str, offset: int) -> int | Decimal | float:
    if "e" in raw or "E" in raw:
        value = float(raw)
        if abs(value) == float("inf"):
            raise Fault(offset, f"{raw[:MAX_DIGITS]} is too large for a DOUBLE", "expected at most 1.797E308")
        return value
    if len(raw) > MAX_DIGITS + ("." in raw):
        raise Fault(offset, f"the number has more than {MAX_DIGITS} digits", "expected at most what DECIMAL(38) holds")
    return Decimal(raw) if "." in raw else int(raw)


def read_count(raw: str, offset: int) -> int:
    if len(raw) > 19 or int(raw) > MAX_INT64:
        raise Fault(offset, f"{raw[:19]}... is too large", f"expected a whole number up to {MAX_INT64}")
    return int(raw)


def read_binary(raw: str, offset: int) -> bytes:
    try:
        return bytes.fromhex(raw[2:-1])
    except ValueError:
        raise Fault(offset, "the binary string is not hexadecimal", "expected pairs of digits, as in X'1F00'") from None


def read_typed(type_name: str, value: str, offset: int) -> date | datetime | time:
    kind = "TIMESTAMP" if type_name == "TIMESTAMP_LTZ" else type_name
    shape, example = _SHAPES[kind]
    text = value.strip()
    try:
        if not shape.fullmatch(text):
            raise ValueError("not of the shape of the example")
        return _TYPED_READERS[kind](text)
    except (ValueError, OverflowError) as error:
        raise Fault(offset, f"{quote_string(value[:40])} is not a {kind}: {error}", f"expected {example}") from None


def _instant(text: str) -> datetime:
    # A TIMESTAMP without an offset is UTC here, whatever the session's zone: a default must not differ between drivers.
    timestamp = datetime.fromisoformat(
        text.replace("UTC", "Z").replace(" Z", "Z").replace(" +", "+").replace(" -", "-")
    )
    return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)


_TYPED_READERS: dict[str, Callable[[str], date | datetime | time]] = {
    "DATE": date.fromisoformat,
    "TIME": time.fromisoformat,
    "TIMESTAMP": _instant,
    "TIMESTAMP_NTZ": datetime.fromisoformat,
}


def scalar_sql(value: Scalar) -> str:
    """The literal that is parsed back to exactly this value and type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Decimal():
            digits = format(value, "f")
            return digits if "." in digits else f"{digits}."
        case float():
            digits = repr(value)
            return digits if "e" in digits else f"{digits}E0"
        case str():
            return quote_string(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case timedelta():
            return interval_sql(value // timedelta(microseconds=1))
