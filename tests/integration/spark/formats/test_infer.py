"""The schema that records ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from laminae.spark.formats.inference import infer_schema
from tests.support.build import col, list_of, schema, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Infer = Callable[..., pa.Schema]

KNOWN = schema(col("id", "int", id=1, null=False), col("name", id=2), col("n", "bigint", id=3))


@pytest.fixture
def inferred(spark: SparkSession) -> Infer:
    def run(current: pa.Schema, *values: bytes, ignored: tuple[str, ...] = ()) -> pa.Schema:
        records = spark.createDataFrame([(bytearray(value),) for value in values], "value BINARY")
        return infer_schema(records, current, ignored)

    return run


def _same(found: pa.Schema, expected: pa.Schema) -> bool:
    return bool(found.equals(expected, check_metadata=True))


def test_new_fields_are_appended_nullable_and_without_ids(inferred: Infer) -> None:
    found = inferred(KNOWN, b'{"z":1,"y":1.5,"x":"t","id":1}', b'{"w":true,"v":[1],"u":{"a":1}}')
    new = {
        "u": struct(col("a", "bigint")), "v": list_of(col("element", "bigint")), "w": pa.bool_(),
        "x": pa.string(), "y": pa.float64(), "z": pa.int64(),
    }  # fmt: skip
    assert _same(found, schema(*KNOWN, *(col(name, kind) for name, kind in new.items())))


def test_null_and_empty_values_ask_for_nothing(inferred: Infer) -> None:
    assert _same(inferred(KNOWN, b'{"id":1,"a":null,"b":{},"c":[],"d":[null],"e":{"f":null}}'), KNOWN)


def test_a_field_that_once_has_a_value_is_asked_for(inferred: Infer) -> None:
    assert inferred(KNOWN, b'{"a":null}', b'{"a":5}').field("a").type == pa.int64()


def test_a_small_number_leaves_an_integer_column_alone(inferred: Infer) -> None:
    assert _same(inferred(KNOWN, b'{"id":2147483647,"n":5}'), KNOWN)


def test_a_large_number_widens_an_integer_column_and_keeps_what_it_is(inferred: Infer) -> None:
    found = inferred(KNOWN, b'{"id":1}', b'{"id":1099511627776}')
    assert _same(found, schema(col("id", "bigint", id=1, null=False), *list(KNOWN)[1:]))


def test_a_fraction_asks_for_a_double_even_where_that_is_not_lossless(inferred: Infer) -> None:
    found = inferred(KNOWN, b'{"id":1.5,"n":1.5}')
    assert [found.field(name).type for name in ("id", "n")] == [pa.float64(), pa.float64()]


def test_nested_fields_grow_too(inferred: Infer) -> None:
    current = schema(
        col("s", struct(col("t", "tinyint"), col("keep", "tinyint"))),
        col("l", list_of(col("element", struct(col("i", "int"))))),
        col("ns", list_of(col("element", "smallint"))),
    )
    found = inferred(
        current, b'{"s":{"t":200,"keep":1,"new":1},"l":[{"i":1},{"i":5000000000,"new":"x"}],"ns":[1,70000]}'
    )
    assert _same(
        found,
        schema(
            col("s", struct(col("t", "bigint"), col("keep", "tinyint"), col("new", "bigint"))),
            col("l", list_of(col("element", struct(col("i", "bigint"), col("new"))))),
            col("ns", list_of(col("element", "bigint"))),
        ),
    )


def test_unrelated_types_stay_as_they_are(inferred: Infer) -> None:
    current = schema(
        col("name"), col("day", "date"), col("price", pa.decimal128(6, 2)), col("f", "float"), col("ok", "bool"),
        col("m", pa.map_(pa.string(), pa.int64())), col("s", struct(col("x", "int"))),
    )  # fmt: skip
    assert _same(
        inferred(current, b'{"name":5,"day":"2024-02-29","price":1.234,"f":1.5,"ok":"yes","m":{"a":1},"s":[1]}'),
        current,
    )


def test_an_integer_beyond_bigint_is_a_decimal(inferred: Infer) -> None:
    assert inferred(KNOWN, b'{"big":12345678901234567890}').field("big").type == pa.decimal128(20, 0)


def test_names_are_compared_exactly_and_cannot_differ_in_case_alone(inferred: Infer) -> None:
    found = inferred(KNOWN, b'{"Name":"x","NAME":"y","new":1,"New":2}')
    assert [field.name for field in found][:3] == ["id", "name", "n"]
    assert [field.name.casefold() for field in found][3:] == ["new"]


def test_ignored_names_never_become_columns(inferred: Infer) -> None:
    assert _same(inferred(KNOWN, b'{"former":1,"v":2}', ignored=("former", "v", "id")), KNOWN)


def test_records_that_are_not_one_json_object_ask_for_nothing(inferred: Infer) -> None:
    broken = [b"", b"{", b'[{"a":1}]', b'{"a":1', b"{'a':1}", b"\xff", b'{"a":1} {"b":1}', b'{"a":1,"a":1}']
    assert _same(inferred(KNOWN, *broken), KNOWN)


def test_a_void_column_takes_the_type_of_its_first_value(inferred: Infer) -> None:
    assert inferred(schema(col("a", pa.null())), b'{"a":"x"}').field("a").type == pa.string()
