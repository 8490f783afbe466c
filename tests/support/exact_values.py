"""Records of many shapes, and what each of them says exactly: the oracle of every decoder.

A decoder gives the exact value or refuses the record. `said` never looks at how a decoder does it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from random import Random

COLUMNS = {
    "b": "BIGINT", "i": "INT", "y": "TINYINT", "x": "DOUBLE", "f": "FLOAT", "m": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 0)", "s": "STRING", "o": "BOOLEAN", "d": "DATE", "t": "TIMESTAMP", "l": "TIMESTAMP_NTZ",
    "r": "BINARY",
}  # fmt: skip
NESTED = {"a": "ARRAY<DATE>", "u": "STRUCT<t: TIMESTAMP>"}
NUMERIC = ("BIGINT", "INT", "TINYINT", "DOUBLE", "FLOAT", "DECIMAL(10, 2)", "DECIMAL(38, 0)")
BITS = {"BIGINT": 64, "INT": 32, "TINYINT": 8}


class Unreadable(Exception):
    """The record says no value of this type."""


@dataclass(frozen=True)
class Case:
    """A record of one column. `is_plain`: every decoder must take it."""

    column: str
    raw: bytes
    is_plain: bool = False


NUMBERS = (
    "0", "1", "-1", "-0", "01", "+1", "1.", ".5", "1.0", "5.0", "1.50", "1e2", "1E+2", "125e-2", "1e-40", "1e400",
    "1e-400",
    "127", "128", "-129", "2147483648", "9223372036854775807", "9223372036854775808", "9007199254740993", "16777217",
    "0.1", "0.12345678901234567890", "123456789012345.25", "1.234", "99999999.99", "100000000", "1.4", "15e-1",
    "1.2300000000000000000000000000000000000001", "12.5000000000000000000000000000001e-1", "NaN", "Infinity",
    "-Infinity",
    "0x10", "1_000", "1d", "\uff11\uff12", "123456789012345678901234567890", "1700000000", "1700000000000",
)  # fmt: skip
DAYS = (
    "2024", "2024-01", "2024-01-02", "2024-1-2", "2024-02-30", "2023-02-29", "0001-01-01", "9999-12-31", "12024-01-02",
    " 2024-01-02 ", "2024-01-02Z", "2024/01/02", "20240102", "today", "epoch", "",
)  # fmt: skip
CLOCKS = (
    "", "T10:00", " 10:00", "T10", "T10:00:00", " 10:00:00", "T10:00:00.1", "T10:00:00.123456", "T10:00:00.1234567",
    "T10:00:00.123456789", "T10:00:00.123456000", "T24:00:00", "T10:00:60", "t10:00:00", "Tgarbage", " x",
)  # fmt: skip
ZONES = ("", "", "Z", "+05:30", "-08:00", "+0530", "+05", " Europe/Berlin", "[Europe/Berlin]", " PST", "z", "+19:00")
TEXTS = (
    '"plain"', '"\u00e9\u65e5\U0001f388"', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\\ud800"',
    r'"\\ud83d\ude00"',
    r'"\ud83d\\\ude00"', r'"\u0000"', '"\x01"', r'"\""', '"a\tb"', r'"\x41"', '"true"', "true", "false", "null",
    "{}", "[]",
    '{"a": 1}', "[1, 2.5]", "[0.12345678901234567890]", '{"a": [1e999]}', '"10.0.0.1"', '"0.12345678901234567890"',
    '"aGk="', '"aGk"', '"_-8="', "'x'", '"unclosed', "[[[[[[1]]]]]]",
)  # fmt: skip
PLAIN = {
    "b": "12", "i": "12", "y": "12", "x": "1.5", "f": "0.5", "m": "1.25", "w": "7", "s": '"ok"', "o": "true",
    "d": '"2024-01-02"', "t": '"2024-01-02T03:04:05.678Z"', "l": '"2024-01-02 03:04:05"', "r": '"aGk="',
    "a": '["2024-01-02",null]', "u": '{"t":"2024-01-02T03:04:05Z"}',
}  # fmt: skip


def moments(random: Random) -> str:
    return random.choice(DAYS) + random.choice(CLOCKS) + random.choice(ZONES)


def json_cases(random: Random, count: int) -> list[Case]:
    """Values of every shape in every column, and documents that are broken around them."""
    made = [Case(name, f'{{"{name}":{value}}}'.encode(), True) for name, value in PLAIN.items()]
    names = [*COLUMNS, *NESTED]
    while len(made) < count:
        name = random.choice(names)
        value = random.choice([random.choice(NUMBERS), json.dumps(moments(random)), random.choice(TEXTS), PLAIN[name]])
        value = random.choice([value, value, value, f'["{moments(random)}"]', f'{{"t":"{moments(random)}"}}'])
        record = f'{{"{name}":{value}}}'.encode()
        made.append(Case(name, _disturbed(random, name, record)))
    return made


def _disturbed(random: Random, name: str, record: bytes) -> bytes:
    other = f'"{name.upper()}":1'.encode()
    ways = {
        0: record.replace(b":", b" : ", 1),
        1: record[:-1] + b',"' + name.encode() + b'":1}',
        2: record[:-1] + b"," + other + b"}",
        3: record + b" x",
        4: b"\xef\xbb\xbf" + record,
        5: record[:-1] + b',"z":"\xff"}',
        6: record[:-1] + b',"z":5}',
        7: record[:-1],
        8: record.replace(b'"', b"\x00", 1),
        9: b" " + record + b"\r",
    }
    return ways.get(random.randrange(30), record)


def said_by_json(case: Case) -> object:
    """What the record says in its column. Python's own parser keeps every digit here."""

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        names = [name.casefold() for name, _ in found]
        if len(set(names)) < len(names):
            raise Unreadable("a key twice, or in two cases")
        return dict(found)

    def refuse(word: str) -> None:
        raise Unreadable(word)

    try:
        text = case.raw.decode()
        text.encode("utf-8")
        # Inside of base64 characters that are none are passed over, whatever they are.
        is_strict = case.column != "r"
        document = json.loads(
            text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=pairs, strict=is_strict
        )
        json.dumps(document, default=str, ensure_ascii=False).encode()
    except (ValueError, UnicodeError, InvalidOperation) as problem:
        raise Unreadable(str(problem)) from None
    if not isinstance(document, dict) or case.column not in document:
        raise Unreadable("no object with this key")
    value, kind = document[case.column], {**COLUMNS, **NESTED}[case.column]
    return None if value is None else _said(value, kind)


def _said(value: object, kind: str) -> object:
    match kind:
        case "ARRAY<DATE>" if isinstance(value, list):
            return [None if item is None else _said(item, "DATE") for item in value]
        case "STRUCT<t: TIMESTAMP>" if isinstance(value, dict):
            return {"t": None if value.get("t") is None else _said(value["t"], "TIMESTAMP")}
        case "BOOLEAN" if isinstance(value, bool):
            return value
        case "STRING":
            return value
        case "BINARY" if isinstance(value, str):
            return said_by_text(value, kind)
        case "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" if isinstance(value, str):
            return said_by_text(value, kind)
        case _ if isinstance(value, int | Decimal) and not isinstance(value, bool) and kind in NUMERIC:
            return said_by_text(str(value), kind)
        case _ if kind.startswith("DECIMAL") and isinstance(value, str):
            return said_by_text(value, kind)
    raise Unreadable(f"{value!r} is no {kind}")


def said_by_text(text: str, kind: str) -> object:
    """What a text says as a value of a type: of a CSV field, and of a text or number of JSON."""
    if kind == "STRING":
        return text
    text = text.strip(" \t\r\n\x00")
    if kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return _moment(text, kind)
    if kind == "BOOLEAN":
        known = {"true": True, "t": True, "yes": True, "y": True, "1": True}
        known |= {"false": False, "f": False, "no": False, "n": False, "0": False}
        if text.lower() not in known:
            raise Unreadable(text)
        return known[text.lower()]
    if kind == "BINARY":
        try:
            # White space inside of it means nothing, and it may go without padding.
            plain = re.sub(r"[\x00-\x20]", "", text)
            return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except binascii.Error:
            raise Unreadable(text) from None
    return _number(text, kind)


def _number(text: str, kind: str) -> object:
    is_float = kind in ("DOUBLE", "FLOAT")
    if is_float and text.lower().strip("+-") in ("nan", "inf", "infinity"):
        return float(text)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Unreadable(text)
    number = Decimal(text)
    if is_float:
        found = float(text)
        limit = 3.4028235677973366e38 if kind == "FLOAT" else float("inf")
        if abs(found) >= limit:
            raise Unreadable(text)
        return struct.unpack("f", struct.pack("f", found))[0] if kind == "FLOAT" else found
    if kind in BITS:
        limit = 2 ** (BITS[kind] - 1)
        if number != number.to_integral_value() or not -limit <= number < limit:
            raise Unreadable(text)
        return int(number)
    precision, scale = map(int, re.findall(r"\d+", kind))
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), f"{text} is finite"
    lost = -scale - exponent
    if abs(number) >= 10 ** (precision - scale) or (lost > 0 and any(digits[-lost:])):
        raise Unreadable(text)
    return number


MOMENT = re.compile(
    r"([+-]?\d{4,6})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(?: ?(\S+))?", re.ASCII
)


def _moment(text: str, kind: str) -> object:
    """Days since 1970 of a DATE, microseconds since 1970 of a timestamp, each without a limit on years."""
    found = MOMENT.fullmatch(text)
    if not found:
        raise Unreadable(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    zone, has_clock = found[8], found[4] is not None
    if not (1 <= month <= 12 and 1 <= day <= _last_day(year, month) and hour < 24 and minute < 60 and second < 60):
        raise Unreadable(text)
    days = _days(year, month, day)
    if kind == "DATE":
        if has_clock or zone:
            raise Unreadable(text)
        return days
    fraction = (found[7] or "").rstrip("0")
    if len(fraction) > 6 or (zone and (kind == "TIMESTAMP_NTZ" or not has_clock)):
        raise Unreadable(text)
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    return (seconds - _offset(zone, seconds)) * 1_000_000 + int((fraction or "0").ljust(6, "0"))


def _offset(zone: str | None, seconds: int) -> int:
    if zone in (None, "Z", "UTC", "GMT"):
        return 0
    found = re.fullmatch(r"([+-])(\d{1,2})(?::?(\d{2}))?", zone)
    if found:
        size = int(found[2]) * 3600 + int(found[3] or 0) * 60
        if size > 18 * 3600:
            raise Unreadable(zone)
        return -size if found[1] == "-" else size
    from datetime import datetime, timedelta

    try:
        local = datetime(1970, 1, 1) + timedelta(seconds=seconds)
        offset = ZoneInfo(zone).utcoffset(local)
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        raise Unreadable(zone) from None
    assert offset is not None, f"{zone} has an offset at every time"
    return int(offset.total_seconds())


def _last_day(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _days(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, of_era = year // 400, year % 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def csv_cases(random: Random, count: int) -> list[Case]:
    """Records of a header `name,n`, for one column each: quoted well, badly or not at all."""
    made = [Case(name, f"{json.loads(value) if value[0] == chr(34) else value},{0}".encode(), True)
            for name, value in PLAIN.items() if name in COLUMNS]  # fmt: skip
    texts = (
        "plain",
        "a b",
        " lead",
        "trail ",
        'a"b',
        "\u00e9",
        "1,5",
        "a\r\nb",
        "a\nb",
        'say "x"',
        "",
        "E5",
        ".e1",
        "true",
    )
    while len(made) < count:
        name = random.choice(list(COLUMNS))
        value = random.choice([random.choice(NUMBERS), moments(random), random.choice(texts), "aGk=", "1", "yes"])
        quoted = '"' + value.replace('"', '""') + '"'
        written = random.choice([value, quoted, quoted, '"' + value, quoted + "x", quoted + " ", value + '"'])
        if "\n" in written and written is not quoted:
            written = quoted
        made.append(Case(name, f"{written},{len(made)}".encode()))
    return made


def said_by_csv(case: Case) -> object:
    """What the first of two fields says, by RFC 4180; an empty field that is not quoted is NULL."""
    found = re.fullmatch(r'(?:"((?:[^"]|"")*)"|((?:[^",][^,]*)?)),(\d+)', case.raw.decode())
    if not found:
        raise Unreadable("not two fields, or a quote that is not closed")
    kind = COLUMNS[case.column]
    if found[1] is None and not found[2]:
        return None
    text = found[2] if found[1] is None else found[1].replace('""', '"')
    if kind != "STRING" and not text.strip():
        return None
    return said_by_text(text, kind)


def is_same(value: object, said: object, kind: str) -> bool:
    """Whether a value that was read is what the record says."""
    if kind == "STRING" and isinstance(value, str) and not isinstance(said, str):
        return _text_says(value, said)
    if isinstance(said, Decimal):
        return isinstance(value, int | float | str | Decimal) and Decimal(value) == said
    if isinstance(said, float) and isinstance(value, float):
        return repr(value) == repr(said) or (value == said == 0)
    return value == said


def _text_says(text: str, said: object) -> bool:
    """Numbers, objects and lists in a STRING column are their JSON text, whose numbers are the same."""
    if isinstance(said, bool | dict | list):
        return bool(json.loads(text, parse_float=Decimal) == said)
    return isinstance(said, int | float | Decimal) and Decimal(text) == Decimal(said)
