"""Defaults are typed, checked when declared, and survive as JSON text."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from laminae.errors import InvalidDefault
from laminae.schema.defaults import default_scalar, encode_default


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (5, pa.int8(), "5"),
        (True, pa.bool_(), "true"),
        (Decimal("1.5"), pa.float64(), "1.5"),
        (1, pa.float64(), "1.0"),
        (float("inf"), pa.float64(), '"Infinity"'),
        (Decimal("1.50"), pa.decimal128(6, 2), '"1.50"'),
        (3, pa.decimal128(6, 2), '"3"'),
        ("ä'", pa.string(), '"ä\'"'),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        (date(2024, 2, 29), pa.date32(), '"2024-02-29"'),
        ("2024-02-29", pa.date32(), '"2024-02-29"'),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), pa.timestamp("us", "UTC"), '"2024-01-01T12:00:00+00:00"'),
        (
            datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
            pa.timestamp("us", "UTC"),
            '"2024-01-01T10:00:00+00:00"',
        ),
        (datetime(2024, 1, 1, 12), pa.timestamp("us"), '"2024-01-01T12:00:00"'),
        (time(1, 2, 3), pa.time64("us"), '"01:02:03"'),
        (timedelta(days=1), pa.duration("us"), "86400000000"),
        ([1, 2], pa.list_(pa.int32()), "[1,2]"),
        ({"a": 1}, pa.struct([("a", pa.int32()), ("b", pa.string())]), '{"a":1,"b":null}'),
        ({"k": 1}, pa.map_(pa.string(), pa.int32()), '[["k",1]]'),
    ],
)
def test_a_fitting_default_is_kept_as_json_and_read_back(value, kind, text):
    assert encode_default(value, kind, "c") == text
    again = default_scalar(text, kind, "c")
    assert again.type == kind
    assert again.is_valid


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", pa.int32()),
        (300, pa.int8()),
        (-1, pa.uint8()),
        (True, pa.int32()),
        (1e300, pa.float32()),
        (16777217, pa.float32()),
        (9007199254740993, pa.float64()),
        (1, pa.bool_()),
        (1.5, pa.int32()),
        (Decimal("1.234"), pa.decimal128(6, 2)),
        (Decimal("12345.6"), pa.decimal128(6, 2)),
        (Decimal("NaN"), pa.decimal128(6, 2)),
        (1, pa.string()),
        ("x", pa.binary()),
        ("2024-02-30", pa.date32()),
        (datetime(2024, 1, 1), pa.date32()),
        (datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us")),
        (5, pa.timestamp("us")),
        (["x"], pa.list_(pa.int32())),
        ({"z": 1}, pa.struct([("a", pa.int32())])),
        (1, pa.null()),
        (1, pa.month_day_nano_interval()),
    ],
)
def test_a_default_of_another_type_or_out_of_range_is_refused(value, kind):
    with pytest.raises(InvalidDefault) as refused:
        encode_default(value, kind, "c")
    assert refused.value.params["path"] == "c"


def test_no_default_is_null():
    assert default_scalar(None, pa.int32(), "c").as_py() is None


def test_text_that_is_not_json_is_refused():
    with pytest.raises(InvalidDefault):
        default_scalar("{", pa.int32(), "c")
