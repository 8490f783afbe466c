"""Every value of an answer has a Python form, whatever its type, its size and its depth."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminae.api.python_values import pandas_frame, python_rows, python_values, valid_text

FIRST, LAST = date.min.toordinal(), date.max.toordinal()
EPOCH = date(1970, 1, 1).toordinal()
NUMBERS = st.integers(-(2**63), 2**63 - 1)
BEYOND = pa.array([3_000_000, None], pa.date32())
BROKEN = pa.array([b"\xffA", b"ok", None], pa.binary()).view(pa.string())

LEAVES = [
    pa.date32(),
    pa.date64(),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC", "Europe/Berlin")),
    *(pa.duration(unit) for unit in ("s", "ms", "us")),
]


def array_of(kind: pa.DataType, numbers: list[int | None]) -> pa.Array:
    if pa.types.is_date32(kind):
        cut = [None if number is None else (number + 2**31) % 2**32 - 2**31 for number in numbers]
        return pa.array(cut, pa.int32()).view(kind)
    return pa.array(numbers, pa.int64()).view(kind)


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (pa.date32(), 2_932_897, "+10000-01-01"),
        (pa.date32(), -719_529, "-0001-12-31"),
        (pa.date32(), -719_163, "0000-12-31"),
        (pa.timestamp("us"), 2_932_897 * 86_400_000_000 + 1_500_000, "+10000-01-01 00:00:01.5"),
        (pa.timestamp("us", "UTC"), -719_163 * 86_400_000_000, "0000-12-31 00:00:00+00:00"),
        (pa.timestamp("s"), 2**40, "+36812-02-20 00:36:16"),
        (pa.duration("s"), 2**50, f"{2**50} s"),
    ],
)
def test_what_python_cannot_hold_is_the_text_that_spark_writes(kind: pa.DataType, number: int, text: str) -> None:
    assert python_values(array_of(kind, [number, None])) == [text, None]


def test_a_value_beyond_the_calendar_leaves_the_others_as_they_are() -> None:
    column = pa.array([0, 3_000_000], pa.date32())
    assert python_values(column) == [date(1970, 1, 1), "+10183-09-21"]


def test_depth_makes_no_difference() -> None:
    day = "+10183-09-21"
    table = pa.table(
        {
            "l": pa.array([[3_000_000], None], pa.list_(pa.date32())),
            "s": pa.array([{"d": 3_000_000, "n": 1}, None], pa.struct([("d", pa.date32()), ("n", pa.int32())])),
            "m": pa.array([[("k", 3_000_000)], None], pa.map_(pa.string(), pa.date32())),
        }
    )
    assert python_rows(table) == [([day], {"d": day, "n": 1}, [("k", day)]), (None, None, None)]
    assert python_rows(table.slice(1)) == [(None, None, None)]


def test_a_pandas_frame_has_such_values_as_objects_and_the_other_columns_as_ever() -> None:
    frame = pandas_frame(pa.table([BEYOND, pa.array([1, 2]), pa.array([3, 4])], ["d", "n", "n"]))
    assert list(frame.iloc[:, 0]) == ["+10183-09-21", None]
    assert [str(kind) for kind in frame.dtypes] == ["object", "int64", "int64"]


def test_bytes_that_are_no_utf8_are_shown_as_such_wherever_they_stand() -> None:
    nested = pa.StructArray.from_arrays([BROKEN], ["t"], mask=pa.array([False, True, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, None, 3, 3], pa.int32()), BROKEN)
    keys = pa.array([b"\xff", b"b", b"c"], pa.binary()).view(pa.string())
    maps = pa.MapArray.from_arrays(pa.array([0, None, 2, 3], pa.int32()), keys, BROKEN)
    table = valid_text(pa.table({"plain": BROKEN, "nested": nested, "lists": lists, "maps": maps}))
    table.validate(full=True)
    assert table.to_pydict() == {
        "plain": ["�A", "ok", None],
        "nested": [{"t": "�A"}, None, {"t": None}],
        "lists": [["�A", "ok", None], None, []],
        "maps": [[("�", "�A"), ("b", "ok")], None, [("c", None)]],
    }


def test_valid_text_is_not_copied() -> None:
    table = pa.table({"t": ["a", "é"]})
    assert valid_text(table).column(0).chunk(0).buffers()[2].address == table.column(0).chunk(0).buffers()[2].address


@given(st.sampled_from(LEAVES), st.lists(st.one_of(st.none(), NUMBERS), max_size=5))
def test_every_number_of_every_type_of_time_has_a_form(kind: pa.DataType, numbers: list[int | None]) -> None:
    column = array_of(kind, numbers)
    values = python_values(column)
    assert [value is None for value in values] == [number is None for number in numbers]
    assert all(value is None or isinstance(value, str | date | datetime | timedelta) for value in values)
    assert len(pandas_frame(pa.table({"a": column}))) == len(numbers)


@given(st.integers(FIRST, LAST))
def test_days_that_python_has_are_written_as_python_writes_them(ordinal: int) -> None:
    from laminae.api.python_values import _day

    assert _day(ordinal - EPOCH) == date.fromordinal(ordinal).isoformat()


def test_a_time_within_the_calendar_is_a_datetime() -> None:
    assert python_values(array_of(pa.timestamp("us", "UTC"), [0])) == [datetime(1970, 1, 1, tzinfo=UTC)]
