"""What a JSON record becomes: its row, or the reason why it has none."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.codec.decoders import Decoder, DecoderTable
from tests.support.build import col, list_of, schema, struct

if TYPE_CHECKING:
    from tests.support.decoding import Decode

WIDE = schema(
    col("id", "bigint", null=False),
    col("name"),
    col("tiny", "tinyint"),
    col("small", "smallint"),
    col("n", "int"),
    col("x", "double"),
    col("f", "float"),
    col("ok", "bool"),
    col("day", "date"),
    col("at", pa.timestamp("us", tz="UTC")),
    col("raw", "binary"),
    col("price", pa.decimal128(6, 2)),
    col("exact", pa.decimal128(38, 18)),
    col("status", default='"new"'),
    col("s", struct(col("a", "int"), col("b", default='"deep"'))),
    col("l", list_of(col("element", struct(col("z", "int"), col("d", pa.decimal128(6, 2)))))),
    col("ns", list_of(col("element", "int"))),
    col("m", pa.map_(pa.string(), pa.field("value", pa.int64()))),
    col("by_number", pa.map_(pa.int32(), pa.field("value", pa.string()))),
)
FLAT = schema(col("id", "bigint", null=False), col("name"), col("n", "int"), col("status", default='"new"'))


def _said(row: dict) -> dict:
    return {name: value for name, value in row.items() if value is not None and value != "new"}


READ = {
    "an object": (b'{"id":1,"name":"x"}', {"id": 1, "name": "x"}),
    "white space everywhere": (b' {\n"id" : 1 ,\t"name" :\r"x" } \n', {"id": 1, "name": "x"}),
    "a carriage return at the end": (b'{"id":1}\r', {"id": 1}),
    "unicode": ('{"id":1,"name":"grün 日本 🎈"}'.encode(), {"id": 1, "name": "grün 日本 🎈"}),
    "escapes": (rb'{"id":1,"name":"a\"b\\c\u00fc\n"}', {"id": 1, "name": 'a"b\\cü\n'}),
    "an escaped key": (rb'{"\u0069d":1}', {"id": 1}),
    "text that looks like JSON": (rb'{"id":1,"name":"{\"id\":2}} , {"}', {"id": 1, "name": '{"id":2}} , {'}),
    "a surrogate pair": (rb'{"id":1,"name":"\uD83D\ude00"}', {"id": 1, "name": "\U0001f600"}),
    "a backslash before what looks like one": (rb'{"id":1,"name":"\\ud800"}', {"id": 1, "name": r"\ud800"}),
    "a number for text": (b'{"id":1,"name":123456789012345.25}', {"id": 1, "name": "1.2345678901234525E14"}),
    "text of many digits": (b'{"id":1,"name":"0.12345678901234567890"}', {"id": 1, "name": "0.12345678901234567890"}),
    "null in other case": (b'{"id":1,"Name":null}', {"id": 1}),
    "the replacement character itself": ('{"id":1,"name":"\ufffd"}'.encode(), {"id": 1, "name": "\ufffd"}),
    "the limits of integers": (
        b'{"id":-9223372036854775808,"tiny":-128,"small":32767,"n":2147483647}',
        {"id": -(2**63), "tiny": -128, "small": 32767, "n": 2**31 - 1},
    ),
    "numbers for floats": (b'{"id":1,"x":5,"f":0.5}', {"id": 1, "x": 5.0, "f": 0.5}),
    "base64 for binary": (b'{"id":1,"raw":"aGk="}', {"id": 1, "raw": bytearray(b"hi")}),
    "a decimal": (b'{"id":1,"price":12.5}', {"id": 1, "price": Decimal("12.50")}),
    "a decimal with zeros behind": (b'{"id":1,"price":1.250000}', {"id": 1, "price": Decimal("1.25")}),
    "a decimal with an exponent": (b'{"id":1,"price":125e-2}', {"id": 1, "price": Decimal("1.25")}),
    "a whole decimal": (b'{"id":1,"price":7,"exact":7e-1}', {"id": 1, "price": Decimal(7), "exact": Decimal("0.7")}),
    "38 digits": (
        b'{"id":1,"exact":12345678901234567890.123456789012345678}',
        {"id": 1, "exact": Decimal("12345678901234567890.123456789012345678")},
    ),
    "a nested default": (b'{"id":1,"s":{"a":1}}', {"id": 1, "s": {"a": 1, "b": "deep"}}),
    "a nested null": (b'{"id":1,"s":{"a":1,"b":null}}', {"id": 1, "s": {"a": 1, "b": None}}),
    "an empty struct": (b'{"id":1,"s":{}}', {"id": 1, "s": {"a": None, "b": "deep"}}),
    "a list of structs": (
        b'{"id":1,"l":[{"z":1},null,{"d":1.5}]}',
        {"id": 1, "l": [{"z": 1, "d": None}, None, {"z": None, "d": Decimal("1.50")}]},
    ),
    "an empty list": (b'{"id":1,"ns":[]}', {"id": 1, "ns": []}),
    "a map": (b'{"id":1,"m":{"a":1,"b":null}}', {"id": 1, "m": {"a": 1, "b": None}}),
    "a map with numbers as keys": (b'{"id":1,"by_number":{"-2":"b"}}', {"id": 1, "by_number": {-2: "b"}}),
    "an unknown null": (b'{"id":1,"u":null}', {"id": 1}),
    "an unknown empty object": (b'{"id":1,"u":{},"s":{"a":1,"b":"x","u":[]}}', {"id": 1, "s": {"a": 1, "b": "x"}}),
}  # fmt: skip

REFUSED = {
    "nothing": (b"", "the message is empty"),
    "no value at all": (None, "the message is empty"),
    "white space": (b" \r\n\t", "the message is empty"),
    "bytes that are not UTF-8": (b'{"id":1,"name":"\xff"}', "the message is not valid UTF-8"),
    "half a surrogate pair": (b'{"id":1,"name":"\xed\xa0\x80"}', "the message is not valid UTF-8"),
    "half an object": (b'{"id":1', "the message is not JSON"),
    "half an object of nulls": (b'{"name":null', "the message is not JSON"),
    "a brace": (b"{", "the message is not JSON"),
    "a comma too many": (b'{"id":1,}', "the message is not JSON"),
    "a bare word": (b"id", "the message is not JSON"),
    "bare NaN": (b'{"id":1,"x":NaN}', "the message is not JSON"),
    "a leading zero": (b'{"id":01}', "the message is not JSON"),
    "a comment": (b'{"id":1/*x*/}', "the message is not JSON"),
    "a raw control character": (b'{"id":1,"name":"\x01"}', "the message is not JSON"),
    "single quotes": (b"{'id':1}", "the message is not JSON: single quotes"),
    "an array": (b'[{"id":1}]', "the message is JSON but not an object"),
    "a number": (b"5", "the message is JSON but not an object"),
    "null": (b"null", "the message is JSON but not an object"),
    "trailing text": (b'{"id":1} x', "text follows the JSON document"),
    "a second document": (b'{"id":1}{"id":2}', "text follows the JSON document"),
    "a second document with spaces": (b'{"id":1} {"id" : 2}', "text follows the JSON document"),
    "an empty second document": (b'{"id":1}{}', "text follows the JSON document"),
    "a brace too many": (b'{"id":1}}', "text follows the JSON document"),
    "a list of documents": (b'{"id":1},{"id":2}', "text follows the JSON document"),
    "text that closes a bracket": (b'{"id":1},0]', "text follows the JSON document"),
    "a key twice": (b'{"id":1,"id":2}', "a key occurs twice in one object"),
    "a key twice, spaced": (b'{"id":1,"id" :1}', "a key occurs twice in one object"),
    "a key twice, first null": (b'{"id":null,"id":1}', "a key occurs twice in one object"),
    "an unknown key twice": (b'{"id":1,"u":null,"u":null}', "a key occurs twice in one object"),
    "a nested key twice": (b'{"id":1,"s":{"a":1,"a":2}}', "a key occurs twice in one object"),
    "a key twice in a list": (b'{"id":1,"l":[{"z":1,"z":1}]}', "a key occurs twice in one object"),
    "a map's key twice": (b'{"id":1,"m":{"k":1,"k":2}}', "a key occurs twice in one object"),
    "text for a number": (b'{"id":"1"}', "id is not a value of type BIGINT"),
    "a fraction for an integer": (b'{"id":1,"n":1.0}', "n is not a value of type INT"),
    "overflow of BIGINT": (b'{"id":9223372036854775808}', "id is not a value of type BIGINT"),
    "overflow of INT": (b'{"id":1,"n":2147483648}', "n is not a value of type INT"),
    "overflow of SMALLINT": (b'{"id":1,"small":32768}', "small is not a value of type SMALLINT"),
    "overflow of TINYINT": (b'{"id":1,"tiny":200}', "tiny is not a value of type TINYINT"),
    "overflow of DOUBLE": (b'{"id":1,"x":1e999}', "x is not a value of type DOUBLE"),
    "overflow of FLOAT": (b'{"id":1,"f":-1e39}', "f is not a value of type FLOAT"),
    "text for a boolean": (b'{"id":1,"ok":"true"}', "ok is not a value of type BOOLEAN"),
    "no such day": (b'{"id":1,"day":"2024-02-30"}', "day is not a value of type DATE: 2024-02-30"),
    "no such time": (b'{"id":1,"at":"yesterday"}', "at is not a value of type TIMESTAMP: yesterday"),
    "a year for a day": (b'{"id":1,"day":"2024"}', "day is not a value of type DATE: 2024"),
    "a day with a time": (b'{"id":1,"day":"2024-01-02T10:00"}', "day is not a value of type DATE: 2024-01-02T10:00"),
    "a time without a day": (b'{"id":1,"at":"10:00"}', "at is not a value of type TIMESTAMP: 10:00"),
    "nanoseconds": (
        b'{"id":1,"at":"2024-01-02T10:00:00.123456789Z"}',
        "at has more digits than this type keeps: TIMESTAMP",
    ),
    "a number for a timestamp": (
        b'{"id":1,"at":1700000000000}',
        "at is a number of unknown unit: set the option timestamp_unit of the source",
    ),
    "half of a surrogate pair": (
        rb'{"id":1,"name":"\ud800"}',
        "the message has half of a surrogate pair, such as \\ud800, which is not a character",
    ),
    "half of a pair behind an escaped backslash": (
        rb'{"id":1,"name":"\\ud83d\ude00"}',
        "the message has half of a surrogate pair, such as \\ud800, which is not a character",
    ),
    "half of a pair in a key": (
        rb'{"id":1,"\udc00":1}',
        "the message has half of a surrogate pair, such as \\ud800, which is not a character",
    ),
    "a number that text would round": (
        b'{"id":1,"name":0.12345678901234567890}',
        "name has more digits than this type keeps: STRING",
    ),
    "a number that text cannot hold": (b'{"id":1,"name":1e999}', "name has more digits than this type keeps: STRING"),
    "a column's name in other case": (b'{"id":1,"Name":"x"}', "Name differs only in case from the column name"),
    "the same beside the column itself": (
        b'{"id":1,"name":"x","NAME":"y"}',
        "NAME differs only in case from the column name",
    ),
    "a field's name in other case": (b'{"id":1,"s":{"A":1}}', "A differs only in case from the column s.a"),
    "not base64": (b'{"id":1,"raw":"*"}', "raw is not a value of type BINARY"),
    "a wrong type beside a default": (b'{"id":1,"status":null,"n":"x"}', "n is not a value of type INT"),
    "a wrong nested type": (b'{"id":1,"s":{"a":"x"}}', "s.a is not a value of type INT"),
    "a list for a struct": (b'{"id":1,"s":[]}', "s is not a value of type STRUCT<A:INT,B:STRING>"),
    "a wrong element": (b'{"id":1,"ns":[1,"x"]}', "ns is not a value of type ARRAY<INT>"),
    "a wrong field of an element": (b'{"id":1,"l":[{"z":1},{"z":"x"}]}', "l.element.z is not a value of type INT"),
    "a wrong map value": (b'{"id":1,"m":{"k":"x"}}', "m is not a value of type MAP<STRING,BIGINT>"),
    "a wrong map key": (b'{"id":1,"by_number":{"x":"a"}}', "by_number is not a value of type MAP<INT,STRING>"),
    "two texts of one map key": (
        b'{"id":1,"by_number":{"1":"a","01":"b"}}',
        "by_number is not a value of type MAP<INT,STRING>",
    ),
    "a digit lost": (b'{"id":1,"price":1.234}', "price has more digits than this type keeps: DECIMAL(6,2)"),
    "a far digit lost": (
        b'{"id":1,"price":1.2300000000000000000000000000000000001}',
        "price has more digits than this type keeps: DECIMAL(6,2)",
    ),
    "a digit lost by an exponent": (
        b'{"id":1,"price":1e-40}',
        "price has more digits than this type keeps: DECIMAL(6,2)",
    ),
    "a digit lost at full precision": (
        b'{"id":1,"exact":0.1234567890123456789}',
        "exact has more digits than this type keeps: DECIMAL(38,18)",
    ),
    "a digit lost in a list": (
        b'{"id":1,"l":[{"d":1.234}]}',
        "l.element.d has more digits than this type keeps: DECIMAL(6,2)",
    ),
    "too large for a decimal": (b'{"id":1,"price":12345.5}', "price is not a value of type DECIMAL(6,2)"),
    "no required value": (b'{"name":"x"}', "id is NULL in a NOT NULL column"),
    "a required null": (b'{"id":null,"name":"x"}', "id is NULL in a NOT NULL column"),
    "an empty object": (b"{}", "id is NULL in a NOT NULL column"),
}  # fmt: skip

UNKNOWN_FIELDS = {
    "a new field": (b'{"id":1,"u":5}', True),
    "a new field, spaced": (b'{"id":1,"u" : 5}', True),
    "a new field of text": (b'{"id":1,"u":"{}"}', True),
    "a new field in place of a default": (b'{"id":1,"status2":"new"}', True),
    "a new nested field": (b'{"id":1,"s":{"a":1,"u":5}}', True),
    "a new field in a list": (b'{"id":1,"l":[{"z":1},{"u":5}]}', True),
    "a nested field with the name of a column": (b'{"id":1,"s":{"a":1,"status":"x"}}', True),
    "keys of a map": (b'{"id":1,"m":{"u":5}}', False),
    "keys inside text": (rb'{"id":1,"name":"\"u\":5"}', False),
    "an object for text": (b'{"id":1,"name":{"u":5}}', False),
    "nothing but null": (b'{"id":1,"u":null}', False),
    "nothing but empty": (b'{"id":1,"u":{},"v":[]}', False),
    "known fields": (b'{"id":1,"status":"new","s":{"a":null}}', False),
}


def test_good_records_are_read(decoded: Decode) -> None:
    found = decoded([value for value, _ in READ.values()], WIDE)
    expected = {name: (row, None, False) for name, (_, row) in READ.items()}
    assert {n: (r and _said(r), e, u) for n, (r, e, u) in zip(READ, found, strict=True)} == expected


def test_bad_records_are_refused_with_a_reason(decoded: Decode) -> None:
    found = decoded([value for value, _ in REFUSED.values()], WIDE)
    assert {n: (r, e) for n, (r, e, _) in zip(REFUSED, found, strict=True)} == {
        name: (None, reason) for name, (_, reason) in REFUSED.items()
    }


def test_unknown_fields_are_found(decoded: Decode) -> None:
    found = decoded([value for value, _ in UNKNOWN_FIELDS.values()], WIDE)
    assert {n: (u, e) for n, (_, e, u) in zip(UNKNOWN_FIELDS, found, strict=True)} == {
        name: (unknown, None) for name, (_, unknown) in UNKNOWN_FIELDS.items()
    }


def test_flat_schemas_are_read_by_the_same_rules(decoded: Decode) -> None:
    flat = {name for table in (READ, REFUSED) for name, (value, _) in table.items() if _is_flat(value)}
    names = [name for name in (*READ, *REFUSED) if name in flat]
    found = decoded([{**READ, **REFUSED}[name][0] for name in names], FLAT)
    expected = [(READ[n][1], None) if n in READ else (None, REFUSED[n][1]) for n in names]
    assert [(r and _said(r), e) for r, e, _ in found] == expected
    assert len(names) > 30


def _is_flat(value: bytes | None) -> bool:
    try:
        known = set(json.loads(value or b"{}")) <= {"id", "name", "n", "status", "u"}
    except (ValueError, TypeError):
        return not any(key in (value or b"") for key in (b'"x"', b'"s"', b'"l"', b'"m"'))
    return known


def test_absent_key_takes_the_default_and_null_stays_null(decoded: Decode) -> None:
    values = [b'{"id":1}', b'{"id":1,"status":null}', b'{"id":1,"status":"new"}', b'{"id":1,"status":"old"}']
    for kind in (FLAT, WIDE):
        assert [row and row["status"] for row, _, _ in decoded(values, kind)] == ["new", None, "new", "old"]


def test_unknown_fields_are_not_looked_for_unless_asked(decoded: Decode) -> None:
    table = DecoderTable((Decoder(1, FLAT, 0),), FLAT)
    assert decoded([b'{"id":1,"u":5}'], table)[0][2] is False
