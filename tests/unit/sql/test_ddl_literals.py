"""Literals of a DEFAULT: the value, its Python type, and what is refused rather than rounded."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from laminae.errors import DdlSyntaxError
from laminae.sql import Literal, SetDefault, parse, to_sql


def default(text: str) -> object:
    (statement,) = parse(f"ALTER SOURCE s ALTER COLUMN c SET DEFAULT {text} FORCE")
    assert isinstance(statement, SetDefault)
    return statement.default.value


VALUES: list[tuple[str, object]] = [
    ("NULL", None),
    ("true", True),
    ("FALSE", False),
    ("5", 5),
    ("-5", -5),
    ("+5", 5),
    ("-9223372036854775808", -(2**63)),
    ("1.50", Decimal("1.50")),
    ("-.5", Decimal("-0.5")),
    ("5.", Decimal(5)),
    ("1e3", 1000.0),
    ("-2.5E-3", -0.0025),
    ("'it''s'", "it's"),
    (r"'tab\t quote\' back\\ \u00e9 \U0001F600 \101'", "tab\t quote' back\\ é 😀 A"),
    (r"'\ud83d\ude00'", "😀"),
    (r"'50\% a\_b'", r"50\% a\_b"),
    (r"r'C:\new'", r"C:\new"),
    ("''", ""),
    ("X'1f00'", b"\x1f\x00"),
    ("DATE '2024-02-29'", date(2024, 2, 29)),
    ("TIME '23:59:00.5'", time(23, 59, 0, 500_000)),
    ("TIMESTAMP '2024-01-31 12:00:00'", datetime(2024, 1, 31, 12, tzinfo=UTC)),
    ("TIMESTAMP '2024-01-31T12:00:00.123456+02:00'", datetime(2024, 1, 31, 10, 0, 0, 123456, UTC)),
    ("TIMESTAMP_LTZ '2024-01-31 12:00:00Z'", datetime(2024, 1, 31, 12, tzinfo=UTC)),
    ("TIMESTAMP '2024-01-31 12:00:00 UTC'", datetime(2024, 1, 31, 12, tzinfo=UTC)),
    ("TIMESTAMP_NTZ '2024-01-31 12:00:00'", datetime(2024, 1, 31, 12)),
    ("TIMESTAMP '2024-01-31'", datetime(2024, 1, 31, tzinfo=UTC)),
    ("INTERVAL '5' DAY", timedelta(days=5)),
    ("INTERVAL -5 DAYS", timedelta(days=-5)),
    ("- INTERVAL '1.5' SECOND", timedelta(seconds=-1.5)),
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ("INTERVAL '-02:03' HOUR TO MINUTE", -timedelta(hours=2, minutes=3)),
    ("INTERVAL '2 weeks 1 minute'", timedelta(weeks=2, minutes=1)),
    ("INTERVAL '0' SECOND", timedelta(0)),
    ("ARRAY()", ()),
    ("ARRAY(1, NULL, 'x')", (1, None, "x")),
]


@pytest.mark.parametrize(("text", "value"), [row for row in VALUES if row[0] != "INTERVAL -5 DAYS"])
def test_each_literal_has_its_value_and_type(text: str, value: object) -> None:
    assert default(text) == value
    assert type(default(text)) is type(value)


@pytest.mark.parametrize("value", [value for _, value in VALUES])
def test_a_printed_literal_reads_back_as_the_same_value_and_type(value: object) -> None:
    statement = SetDefault("s", ("c",), Literal(value), False)  # type: ignore[arg-type] # the table holds every type
    assert repr(parse(to_sql(statement))) == repr((statement,))


@pytest.mark.parametrize(
    ("microseconds", "printed"),
    [
        (86_400_000_000, "INTERVAL '1' DAY"),
        (90_000_000, "INTERVAL '90' SECOND"),
        (7_200_000_000, "INTERVAL '2' HOUR"),
        (1_500, "INTERVAL '1500' MICROSECOND"),
        (0, "INTERVAL '0' SECOND"),
    ],
)
def test_an_interval_prints_in_the_largest_exact_unit(microseconds: int, printed: str) -> None:
    literal = Literal(timedelta(microseconds=microseconds))
    assert to_sql(SetDefault("s", ("c",), literal, False)).endswith(f"SET DEFAULT {printed}")


@pytest.mark.parametrize(
    "text",
    [
        "DATE '2023-02-29'",
        "DATE '20240101'",
        "TIMESTAMP '2024-01-31 12:00:00.1234567'",
        "TIMESTAMP '2024-01-31 25:00:00'",
        "TIMESTAMP '0001-01-01 00:00:00+14:00'",
        "TIMESTAMP_NTZ '2024-01-31 12:00:00Z'",
        "TIME '24:00:00'",
        "X'1'",
        "X'zz'",
        r"'\ud800'",
        r"'\UFFFFFFFF'",
        "1e999",
        "9" * 39,
        "0." + "1" * 39,
        "9" * 10_000,
        "1x",
        "INTERVAL '1' MONTH",
        "INTERVAL '1' PARSEC",
        "INTERVAL '1'",
        "INTERVAL 'soon' DAY",
        "INTERVAL '1.0000001' SECOND",
        "INTERVAL '99999999999999999999' WEEK",
        "INTERVAL '1 25:00' DAY TO MINUTE",
        "INTERVAL '1:00' DAY TO MINUTE",
        "INTERVAL '1' SECOND TO DAY",
        "ARRAY(ARRAY(1))",
        "now()",
        "current_timestamp",
        "1 + 1",
        "",
    ],
)
def test_what_is_not_an_exact_literal_is_refused(text: str) -> None:
    with pytest.raises(DdlSyntaxError):
        default(text)
