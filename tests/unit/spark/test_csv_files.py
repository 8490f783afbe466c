"""The shape of a CSV file and what its records ask for, without Spark."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminae.spark.formats.csv import shape as csv_shape
from laminae.spark.formats.csv.inference import grown_by_records
from laminae.spark.formats.csv.shape import Shape, header_names, records_in, shape
from laminae.spark.formats.parquet.footers import Refused

CURRENT = pa.schema([("id", pa.int32()), ("n", pa.int64()), ("name", pa.string())])


def shape_of(tmp_path, content, delimiter=","):
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    return shape(str(file), len(content), file.stat().st_mtime_ns, delimiter)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=2, max_size=3), max_size=5))
def test_quoted_records_are_found_whatever_they_hold(rows):
    written = [",".join(map(quoted, row)).encode() for row in rows]
    assert records_in(b"\n".join(written), ",") == written
    assert records_in(b"\r\n".join(written) + b"\r\n", ",") == written


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n", Shape(b"a,b", False)),
        (b"\xef\xbb\xbfa,b\r\n1,2", Shape(b"a,b", False)),
        (b"\n\r\na,b", Shape(b"a,b", False)),
        (b'a,b\n"x, ""y""",2\n', Shape(b"a,b", False)),
        (b'a,b\n"x\ny",2\n', Shape(b"a,b", True)),
        (b'"a\nb",c\n1,2\n', Shape(b'"a\nb",c', True)),
        (b"", None),
        (b"\n\n", None),
    ],
)
def test_header_and_records_over_lines_are_seen(tmp_path, content, expected):
    assert shape_of(tmp_path, content) == expected


def test_a_line_is_looked_at_whole_whatever_the_size_of_a_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_shape, "CHUNK", 3)
    assert shape_of(tmp_path, b'a,b\n"xxxxxxxx",2\n' * 3) == Shape(b"a,b", False)
    assert shape_of(tmp_path, b'a,b\n1,"xxxxxxxx\ny"\n' * 3) == Shape(b"a,b", True)


def test_what_is_too_long_or_gone_is_refused(tmp_path, monkeypatch):
    assert isinstance(shape(str(tmp_path / "gone"), 0, 0, ","), Refused)
    monkeypatch.setattr(csv_shape, "LONGEST_WHOLE", 10)
    found = shape_of(tmp_path, b'a,b\n"x\ny",2\n')
    assert isinstance(found, Refused)
    assert "spans lines" in found.reason
    monkeypatch.setattr(csv_shape, "LONGEST_HEADER", 5)
    assert "header" in getattr(shape_of(tmp_path, b"abcdefgh\n1\n"), "reason", "")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"a, b ,c", ("a", "b", "c")),
        (b'"a,b","c""d"', ("a,b", 'c"d')),
        ("é,ü".encode(), ("é", "ü")),
        (b"a,,c", "no name for column 2"),
        (b"a,b,A", "beside a, which differs only in case"),
        (b"a,a", "has a twice"),
        ("id,\u0131d".encode(), "beside id, which differs only in case"),
        (b"a, spaced ", ("a", " spaced ")),
        (b"\xff,a", "not valid UTF-8"),
        (b"a\rb", "carriage return"),
        (b"x" * 200_000, "cannot be read"),
    ],
)
def test_header_names_columns_or_says_why_not(header, expected):
    found = header_names(header, ",", {" spaced "})
    assert expected in found.reason if isinstance(found, Refused) else found == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"1", b"-2", b""], pa.int64()),
        ([b"1", b"1.5", b".5", b"1e3"], pa.float64()),
        ([b"true", b"False"], pa.bool_()),
        ([b"1.", b"+2", b"1.5e-3"], pa.float64()),
        ([b"E5"], pa.string()),
        ([b".e1"], pa.string()),
        ([b"1e"], pa.string()),
        ([b"."], pa.string()),
        ([b"0x10"], pa.string()),
        ([b"1_000"], pa.string()),
        (["\uff11\uff12".encode()], pa.string()),
        ([b"infinity"], pa.string()),
        ([b"007"], pa.string()),
        ([b"9223372036854775808"], pa.string()),
        ([b"9" * 5000], pa.string()),
        ([b"1", b"x"], pa.string()),
        ([b"2024-01-01"], pa.string()),
        ([b"", b" "], None),
        ([b"\xff", b"1,2"], None),
    ],
)
def test_type_of_a_new_column_follows_from_all_its_values(values, expected):
    found = grown_by_records(CURRENT, b"id,new", [b"1," + value for value in values], ",", ())
    assert (found.field("new").type if "new" in found.names else None) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"5", pa.int32()),
        (b"3000000000", pa.int64()),
        (b"1.5", pa.float64()),
        (b"x", pa.int32()),
        (b"9" * 30, pa.int32()),
    ],
)
def test_integers_widen_only_as_a_value_asks(value, expected):
    assert grown_by_records(CURRENT, b"id", [value], ",", ()).field("id").type == expected
    wide = pa.float64() if expected == pa.float64() else pa.int64()
    assert grown_by_records(CURRENT, b"n", [value], ",", ()).field("n").type == wide


def test_former_names_and_other_case_are_no_new_columns():
    found = grown_by_records(CURRENT, b"amount,NAME,old", [b"1.5,x,y"], ",", [("amount", "id"), ("old", "name")])
    assert found.names == CURRENT.names
    assert found.field("id").type == pa.float64()


def test_the_pattern_is_the_same_for_any_delimiter():
    assert records_in(b'a|"b\n|"\nc|d', "|") == [b'a|"b\n|"', b"c|d"]
    assert records_in(b'a^"b\n^"\nc^d', "^") == [b'a^"b\n^"', b"c^d"]
    assert re.compile(csv_shape.record_pattern("]").replace(r"\z", r"\Z")).match("a]b\n")[1] == "a]b"
