"""Lines of JSON read many at once: every row as it stands there, or nothing at all."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminae.codec.json_lines import MOST_DIGITS, line_reader
from tests.support.build import col, list_of, schema, struct

SCHEMA = schema(
    col("id", "bigint", null=False),
    col("name"),
    col("tiny", "tinyint"),
    col("x", "double"),
    col("ok", "bool"),
    col("day", "date"),
    col("at", pa.timestamp("us", tz="UTC")),
    col("status", default='"new"'),
    col("s", struct(col("a", "int"), col("l", list_of(col("element", "double"))))),
)
PLAIN = b'{"id":1,"name":"x","status":"old"}'


def read(text, columns=SCHEMA):
    reader = line_reader(columns)
    assert reader is not None
    found = reader.read(text)
    return None if found is None else found.to_pylist()


def test_plain_lines_are_read_with_every_type():
    text = (
        b'{"id":1,"name":"gr\xc3\xbcn \\u00fc","tiny":-128,"x":0.5,"ok":true,"day":"2024-02-29",'
        b'"at":"2024-01-01T10:00:00.250Z","status":"old","s":{"a":1,"l":[1,2.5,null]}}\n'
        b'{"status":"x","id":2}\n'
    )
    assert read(text) == [
        {
            "id": 1,
            "name": "grün ü",
            "tiny": -128,
            "x": 0.5,
            "ok": True,
            "day": date(2024, 2, 29),
            "at": datetime(2024, 1, 1, 10, 0, 0, 250_000, tzinfo=UTC),
            "status": "old",
            "s": {"a": 1, "l": [1.0, 2.5, None]},
        },
        {**dict.fromkeys(SCHEMA.names), "id": 2, "status": "x"},
    ]


def test_the_last_line_may_lack_its_newline():
    assert read(PLAIN) == read(PLAIN + b"\n")


ODD = {
    "nothing": b"",
    "an empty line": PLAIN + b"\n\n" + PLAIN,
    "an empty line at the end": PLAIN + b"\n\n",
    "white space before": b" " + PLAIN,
    "white space behind": PLAIN + b" \n",
    "a carriage return": PLAIN + b"\r\n" + PLAIN,
    "two documents on a line": PLAIN + PLAIN,
    "two documents on a line and one on two lines": PLAIN + PLAIN + b'\n{"id":1,\n"status":"x"}',
    "a document on two lines": b'{"id":1,"s":{"a":1}\n,"status":"x"}',
    "trailing text": PLAIN + b" x",
    "an array": b"[1]",
    "not JSON": b"{id}",
    "single quotes": b"{'id':1,'status':'x'}",
    "an unknown key": b'{"id":1,"status":"x","more":1}',
    "an unknown nested key": b'{"id":1,"status":"x","s":{"b":1}}',
    "a key twice": b'{"id":1,"id":1,"status":"x"}',
    "a key twice, once null": b'{"id":1,"name":null,"name":"x","status":"x"}',
    "a nested key twice": b'{"id":1,"status":"x","s":{"a":1,"a":2}}',
    "an absent key with a default": b'{"id":1}',
    "an absent key that is required": b'{"status":"x"}',
    "null where none may be": b'{"id":null,"status":"x"}',
    "a fraction for an integer": b'{"id":1.0,"status":"x"}',
    "an integer out of range": b'{"id":1,"tiny":200,"status":"x"}',
    "text for a number": b'{"id":"1","status":"x"}',
    "a number for text": b'{"id":1,"name":1,"status":"x"}',
    "an infinite number": b'{"id":1,"x":1e999,"status":"x"}',
    "an infinite number deep inside": b'{"id":1,"s":{"l":[1e999]},"status":"x"}',
    "a minus zero": b'{"id":1,"x":-0,"status":"x"}',
    "NaN": b'{"id":1,"x":NaN,"status":"x"}',
    "a very long number": b'{"id":1,"x":0.' + b"1" * MOST_DIGITS + b',"status":"x"}',
    "a very long number with a point": b'{"id":1,"x":' + b"1" * 300 + b"." + b"1" * 800 + b',"status":"x"}',
    "bytes that are not UTF-8": b'{"id":1,"name":"\xff","status":"x"}',
    "a lone surrogate": b'{"id":1,"name":"\\ud800","status":"x"}',
    "a control character": b'{"id":1,"name":"a\tb","status":"x"}',
    "a zero byte": PLAIN + b"\0",
    "an instant without a zone": b'{"id":1,"at":"2024-01-01T10:00:00","status":"x"}',
    "an instant of another form": b'{"id":1,"at":"2024-01-01 10:00","status":"x"}',
    "a day that is none": b'{"id":1,"day":"2023-02-29","status":"x"}',
    "a day of another form": b'{"id":1,"day":"2023-2-9","status":"x"}',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_needs_a_closer_look_is_not_read(text):
    assert read(text) is None
    assert read(PLAIN + b"\n" + text + b"\n" + PLAIN + b"\n") is None


@pytest.mark.parametrize(
    "columns",
    [
        schema(),
        schema(col("price", pa.decimal128(6, 2))),
        schema(col("f", "float")),
        schema(col("raw", "binary")),
        schema(col("m", pa.map_(pa.string(), pa.field("value", pa.int64())))),
        schema(col("at", pa.timestamp("us"))),
        schema(col("s", struct(col("a", "int", null=False)))),
        schema(col("s", struct(col("a", default='"x"')))),
    ],
    ids=["no columns", "decimal", "float", "binary", "map", "without a zone", "nested NOT NULL", "nested default"],
)
def test_types_that_arrow_reads_otherwise_have_no_reader(columns):
    assert line_reader(columns) is None


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            "x": st.none() | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: str(x) != "-0.0"),
            "ok": st.none() | st.booleans(),
        }
    ),
    min_size=1,
)


@settings(max_examples=300)
@given(ROWS)
def test_prop_rows_come_back_as_they_were_written(rows):
    columns = schema(col("id", "bigint"), col("name"), col("x", "double"), col("ok", "bool"))
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    assert read(text, columns) == rows
