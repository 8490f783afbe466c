"""UnsafeRow in Python: values there and back, batches, bytes that are no rows. Identity with the JVM is elsewhere."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from laminae.errors import InvalidRowBytes, InvalidSchema
from laminae.state.arrow_types import type_of
from laminae.state.codec import CalendarInterval, Migration, VariantValue, row_decoder, row_encoder
from laminae.state.compatibility import resolve
from laminae.state.mapping import Filled, Kept, StructMapping
from laminae.state.types import Array, Field, Leaf, Map, Struct, UserDefined, parse_schema, parse_type, struct, to_json

VALUES = [
    ("boolean", True),
    ("byte", -128),
    ("short", -32768),
    ("integer", -(2**31)),
    ("long", 2**63 - 1),
    ("float", 1.5),
    ("double", -0.1),
    ("decimal(10,2)", Decimal("-12345678.90")),
    ("decimal(38,4)", Decimal("-1234567890123456789012345.6789")),
    ("string", "h\u00e9 \u4f60"),
    ("binary", b"\x00\xff"),
    ("date", date(1969, 7, 20)),
    ("timestamp", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    ("timestamp_ntz", datetime(1900, 1, 2, 3, 4, 5, 6)),
    ("time(6)", time(23, 59, 59, 999999)),
    ("interval day to second", timedelta(days=-3, microseconds=7)),
    ("interval year to month", -14),
    ("interval", CalendarInterval(1, -2, 3)),
    ("variant", VariantValue(b"\x0c\x01", b"\x01\x00\x00")),
    ("void", None),
]


@pytest.mark.parametrize(("name", "value"), VALUES, ids=[name for name, _ in VALUES])
def test_a_value_comes_back_from_its_bytes(name: str, value: object) -> None:
    kind = struct(("v", Leaf(name)), ("n", Leaf(name)), ("a", Array(Leaf(name))))
    row = row_encoder(kind)((value, None, [value, None, value]))
    assert len(row) % 8 == 0
    assert row_decoder(kind)(row) == (value, None, [value, None, value])


def test_times_that_python_cannot_hold_stay_numbers() -> None:
    kind = struct(("d", Leaf("date")), ("t", Leaf("timestamp")), ("i", Leaf("interval day")), ("n", Leaf("time(9)")))
    row = (2**31 - 1, 2**62, 2**62, 1)
    decoded = row_decoder(kind)(row_encoder(kind)(row))
    assert decoded == (2**31 - 1, 2**62, timedelta(microseconds=2**62), 1)


def test_structs_are_dicts_when_names_are_asked_for() -> None:
    kind = struct(("a", Leaf("long")), ("s", struct(("x", Leaf("string")))), ("m", Map(Leaf("string"), Leaf("long"))))
    row = {"a": 1, "s": {"x": "y"}, "m": [("k", None)]}
    assert row_decoder(kind, named=True)(row_encoder(kind)({**row, "m": {"k": None}})) == row


@pytest.mark.parametrize(
    "row",
    [(1,), {"a": 1, "z": 2}, "text", (1, "x"), (None, 1), (2**70, 1)],
    ids=["short", "unknown", "text", "type", "null", "range"],
)
def test_values_that_do_not_fit_are_refused(row: object) -> None:
    with pytest.raises(InvalidRowBytes):
        row_encoder(Struct((Field("a", Leaf("long"), nullable=False), Field("b", Leaf("integer")))))(row)


@pytest.mark.parametrize("row", [b"", b"\0" * 8, b"\0" * 12, b"\0" * 8 + b"\xff" * 16])
def test_bytes_that_are_no_row_are_refused(row: bytes) -> None:
    old = struct(("a", Array(Leaf("long"))), ("s", struct(("x", Leaf("string")))))
    new = struct(*old.fields[::-1])
    with pytest.raises(InvalidRowBytes):
        row_decoder(old)(row)
    mapping = resolve(old, new).mapping
    assert mapping is not None
    with pytest.raises(InvalidRowBytes):
        Migration.of(old, new, mapping).row(row)


def test_a_batch_keeps_null_and_may_be_a_slice() -> None:
    old, new = struct(("a", Leaf("string"))), struct(("b", Leaf("long")), ("a", Leaf("string")))
    rows = [row_encoder(old)((text,)) for text in ("x", "a longer text", "")]
    mapping = resolve(old, new).mapping
    assert mapping is not None
    migration = Migration.of(old, new, mapping)
    expected = [row_encoder(new)((None, text)) for text in ("x", "a longer text", "")]
    assert migration.batch(pa.array([rows[0], None, rows[1]], pa.binary())).to_pylist() == [
        expected[0],
        None,
        expected[1],
    ]
    assert migration.batch(pa.array(rows, pa.binary())[1:]).to_pylist() == expected[1:]
    assert migration.batch(pa.array([], pa.binary())).to_pylist() == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Leaf("long"), 0),
        (Leaf("decimal(38,2)"), Decimal("0.00")),
        (Leaf("string"), "a text"),
        (Leaf("decimal(38,2)"), None),
    ],
    ids=["word", "reserved", "text", "null"],
)
def test_a_new_buffer_starts_with_its_first_value(kind: Leaf, value: object) -> None:
    old, new = struct(("sum", Leaf("long"))), struct(("first", kind), ("sum", Leaf("long")))
    filled = Filled(row_encoder(struct(("v", kind)))((value,)))
    migration = Migration.of(old, new, StructMapping((filled, Kept(0))))
    assert migration.row(row_encoder(old)((7,))) == row_encoder(new)((value, 7))


def test_types_are_read_from_sparks_json_and_written_back() -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "string", "nullable": False, "metadata": {}}]}
    udt = {"type": "udt", "pyClass": "a.Point", "sqlType": inner}
    for read in (
        "interval day to second",
        "decimal(38,2)",
        inner,
        udt,
        {"type": "array", "elementType": inner, "containsNull": False},
    ):
        assert to_json(parse_type(read)) == read
    assert str(parse_type(udt)) == "udt<a.Point>"
    assert isinstance(parse_type(udt), UserDefined)


def test_a_collation_is_part_of_a_type() -> None:
    field = '{"name":"s","type":"string","nullable":true,"metadata":{"__COLLATIONS":{"s":"icu.UNICODE_CI"}}}'
    collated = parse_schema(f'{{"type":"struct","fields":[{field}]}}')
    assert not resolve(struct(("s", Leaf("string"))), collated).is_compatible
    assert parse_type(to_json(collated)) == collated


@pytest.mark.parametrize(
    "read",
    [
        "no JSON",
        '"long"',
        '{"type":"struct","fields":[{"name":"a","type":"surprise","nullable":true}]}',
        '{"type":"struct","fields":[1]}',
    ],
)
def test_schemas_that_are_not_known_are_refused(read: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_schema(read)


def test_arrow_types_are_the_spark_types_that_streams_use() -> None:
    from laminae.spark.catalyst.types import spark_type

    kinds = [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.large_string(),
        pa.date64(),
        pa.time64("us"),
        pa.timestamp("ms", "UTC"),
    ]
    nested = [pa.list_(pa.int32()), pa.map_(pa.string(), pa.decimal128(38, 3)), pa.struct([("a", pa.duration("us"))])]
    for kind in (*kinds, *nested, pa.dictionary(pa.int32(), pa.string()), pa.null()):
        assert to_json(type_of(kind)) == spark_type(kind).jsonValue()
    with pytest.raises(InvalidSchema):
        type_of(pa.decimal256(60, 2))
