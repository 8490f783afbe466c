"""Avro schemas of columns: what they look like, that they come back as the same columns, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.codec.avro.from_columns import avro_of_columns
from laminae.codec.avro.to_columns import columns_of_avro
from laminae.codec.avro.type_table import INSTANT, LOCAL, TIME
from laminae.errors import NoAvroForm
from laminae.schema.avro import check_avro
from laminae.schema.column import ALIASES, DEFAULT, EXTERNAL_ID
from laminae.schema.defaults import encode_default
from laminae.schema.types import VARIANT

LEAVES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    TIME: st.times(),
    INSTANT: st.datetimes(timezones=st.just(UTC)),
    LOCAL: st.datetimes(),
    pa.decimal128(38, 9): st.decimals(-(10**29) + 1, 10**29 - 1, places=9, allow_nan=False),
    pa.decimal128(3, 3): st.decimals(Decimal("-0.999"), Decimal("0.999"), places=3, allow_nan=False),
}
# pyarrow imports pandas for its first scalar, which takes a second and is not the fault of an example.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=4)


@st.composite
def fields(draw: st.DrawFn, name: str, depth: int = 2) -> pa.Field:
    kind = draw(st.sampled_from(["leaf", "leaf", "struct", "list", "map"] if depth else ["leaf"]))
    metadata: dict[bytes, bytes] = {}
    if kind == "leaf":
        arrow = draw(st.sampled_from(list(LEAVES)))
        if draw(st.booleans()):
            metadata[DEFAULT] = encode_default(draw(LEAVES[arrow]), arrow, name).encode()
    elif kind == "struct":
        arrow = pa.struct([draw(fields(inner, depth - 1)) for inner in draw(NAMES)])
    else:
        inner = draw(fields("element" if kind == "list" else "value", depth - 1))
        # Only a field can have a default.
        inner = pa.field(inner.name, inner.type, inner.nullable)
        arrow = pa.list_(inner) if kind == "list" else pa.map_(pa.string(), inner)
    if draw(st.booleans()):
        metadata[ALIASES] = json.dumps([f"old_{name}"]).encode()
    if draw(st.booleans()):
        metadata[EXTERNAL_ID] = str(ord(name[0])).encode()
    return pa.field(name, arrow, draw(st.booleans()), metadata or None)


@st.composite
def schemas(draw: st.DrawFn) -> pa.Schema:
    return pa.schema([draw(fields(name)) for name in draw(NAMES)])


@PATIENT
@given(schemas())
def test_columns_come_back_from_avro_as_they_were(schema: pa.Schema) -> None:
    avro = avro_of_columns(schema, "shop.orders")
    assert columns_of_avro(avro).equals(schema, check_metadata=True)
    assert avro == avro_of_columns(schema, "shop.orders")


@PATIENT
@given(schemas())
def test_another_parser_of_avro_takes_the_schema(schema: pa.Schema) -> None:
    parsed = fastavro.parse_schema(json.loads(avro_of_columns(schema, "shop.orders")))
    assert isinstance(parsed, dict)
    assert parsed["name"] == "shop.orders"
    assert [field["name"] for field in parsed["fields"]] == schema.names


def test_records_are_named_after_their_place() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), False)])
    schema = pa.schema([pa.field("a", inner, False), pa.field("b", pa.list_(pa.field("element", inner, False)), False)])
    assert json.loads(avro_of_columns(schema, "shop.orders")) == {
        "type": "record",
        "name": "shop.orders",
        "fields": [
            {
                "name": "a",
                "type": {"type": "record", "name": "shop.orders.a", "fields": [{"name": "x", "type": "int"}]},
            },
            {
                "name": "b",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "shop.orders.b.element",
                        "fields": [{"name": "x", "type": "int"}],
                    },
                },
            },
        ],
    }


def test_a_column_that_may_be_null_has_a_default_so_that_it_can_be_added() -> None:
    old = pa.schema([pa.field("a", pa.int32(), False)])
    new = old.append(pa.field("b", pa.decimal128(5, 2)))
    avro = [avro_of_columns(schema, "o") for schema in (old, new)]
    assert check_avro(avro[1], [avro[0]], "FULL").is_compatible


def test_the_type_of_a_default_comes_first_in_its_union() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), True, {DEFAULT: b"7"})])
    assert json.loads(avro_of_columns(schema, "o"))["fields"] == [{"name": "a", "type": ["int", "null"], "default": 7}]


def test_narrow_integers_are_written_as_int() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), False), pa.field("b", pa.int16(), False)])
    assert columns_of_avro(avro_of_columns(schema, "o")).types == [pa.int32()] * 2


def test_a_column_without_type_is_null() -> None:
    schema = pa.schema([pa.field("a", pa.null())])
    assert columns_of_avro(avro_of_columns(schema, "o")) == schema


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (pa.field("a b", pa.int32()), "name"),
        (pa.field("a", pa.struct([pa.field("x-y", pa.int32())])), "name"),
        (pa.field("a", pa.duration("us")), "no such type"),
        (pa.field("a", pa.month_day_nano_interval()), "no such type"),
        (pa.field("a", VARIANT), "no such type"),
        (pa.field("a", pa.uint64()), "no such type"),
        (pa.field("a", pa.float64(), True, {DEFAULT: b'"NaN"'}), "NaN"),
        (pa.field("a", pa.list_(pa.float32()), False, {DEFAULT: b'["Infinity"]'}), "infinity"),
        (pa.field("a", pa.map_(pa.int32(), pa.int32())), "keys"),
    ],
)
def test_what_avro_has_no_form_for_is_refused_by_name(field: pa.Field, told: str) -> None:
    with pytest.raises(NoAvroForm, match=told) as caught:
        avro_of_columns(pa.schema([field]), "o")
    assert str(caught.value.params["path"]).startswith(("a", "a b"))


def test_a_record_name_that_avro_does_not_take_is_refused() -> None:
    with pytest.raises(NoAvroForm, match="my-view"):
        avro_of_columns(pa.schema([]), "my-view")


@pytest.mark.parametrize(
    ("arrow", "value", "written"),
    [
        (pa.date32(), date(1969, 12, 31), -1),
        (TIME, time(0, 0, 0, 1), 1),
        (INSTANT, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000),
        (pa.decimal128(5, 2), Decimal("-1.28"), "\u0080"),
        (pa.decimal128(5, 2), Decimal("1.28"), "\u0000\u0080"),
        (pa.binary(), b"\xff", "\u00ff"),
        (pa.float64(), float("-inf"), "-Infinity"),
    ],
)
def test_a_default_is_written_as_avro_wants_it(arrow: pa.DataType, value: object, written: object) -> None:
    field = pa.field("a", arrow, False, {DEFAULT: encode_default(value, arrow, "a").encode()})
    (found,) = json.loads(avro_of_columns(pa.schema([field]), "o"))["fields"]
    assert found["default"] == written


@pytest.mark.parametrize("default", [b'"NaN"', b'"Infinity"', b'"-Infinity"'])
def test_a_default_beyond_numbers_comes_back_where_a_column_is_not_null(default: bytes) -> None:
    schema = pa.schema([pa.field("a", pa.float64(), False, {DEFAULT: default})])
    assert columns_of_avro(avro_of_columns(schema, "o")).equals(schema, check_metadata=True)
