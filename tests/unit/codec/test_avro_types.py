"""Columns of an Avro schema: every type, nullability, unions, names, ids, defaults, and what is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from laminae.codec.avro.to_columns import columns_of_avro
from laminae.codec.avro.type_table import DURATION, FORMS, INSTANT, LOCAL, TIME
from laminae.errors import InvalidDefault, InvalidSchema, NoColumnForm
from laminae.schema.column import columns_of

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "x", "type": "int"}]}


def logical(kind: str, name: str, **more: object) -> dict[str, object]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, **more: object) -> dict[str, object]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def field_of(kind: object, **more: object) -> pa.Field:
    schema: dict[str, object] = {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind, **more}]}
    return columns_of_avro(schema).field("c")


def default_of(kind: object, default: object) -> object:
    (column,) = columns_of(pa.schema([field_of(kind, default=default)]))
    return None if column.default is None else json.loads(column.default)


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("bytes", pa.binary()),
        ("string", pa.string()),
        (logical("int", "date"), pa.date32()),
        (logical("int", "time-millis"), TIME),
        (logical("long", "time-micros"), TIME),
        (logical("long", "timestamp-millis"), INSTANT),
        (logical("long", "timestamp-micros"), INSTANT),
        (logical("long", "local-timestamp-millis"), LOCAL),
        (logical("long", "local-timestamp-micros"), LOCAL),
        (logical("long", "timestamp-nanos"), pa.int64()),
        (logical("string", "uuid"), pa.string()),
        (logical("bytes", "decimal", precision=10, scale=2), pa.decimal128(10, 2)),
        (logical("bytes", "decimal", precision=38), pa.decimal128(38, 0)),
        (fixed(4, logicalType="decimal", precision=9, scale=3), pa.decimal128(9, 3)),
        (fixed(12, logicalType="duration"), DURATION),
        (fixed(16, logicalType="uuid"), pa.binary()),
        (fixed(3), pa.binary()),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "array", "items": "int"}, pa.list_(pa.field("element", pa.int32(), False))),
        ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.field("element", pa.int32()))),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.field("value", pa.int64(), False))),
        ({"type": "map", "values": ["long", "null"]}, pa.map_(pa.string(), pa.field("value", pa.int64()))),
        (ITEM, pa.struct([pa.field("x", pa.int32(), False)])),
    ],
)
def test_a_type_is_a_column_that_is_null_only_in_a_union_with_null(kind: object, arrow: pa.DataType) -> None:
    assert field_of(kind) == pa.field("c", arrow, False)
    assert field_of(["null", kind]) == field_of([kind, "null"]) == pa.field("c", arrow)


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        (logical("string", "date"), pa.string()),
        (logical("int", "timestamp-millis"), pa.int32()),
        (logical("bytes", "decimal"), pa.binary()),
        (logical("bytes", "decimal", precision=2, scale=3), pa.binary()),
        (logical("bytes", "decimal", precision=0), pa.binary()),
        (logical("bytes", "decimal", precision="9"), pa.binary()),
        (logical("bytes", "big-decimal"), pa.binary()),
        (fixed(4, logicalType="decimal", precision=10), pa.binary()),
        (fixed(0, logicalType="decimal", precision=1), pa.binary()),
        (fixed(11, logicalType="duration"), pa.binary()),
        (logical("long", "mine"), pa.int64()),
        ({"type": "long", "logicalType": 7}, pa.int64()),
    ],
)
def test_a_logical_type_that_does_not_fit_is_ignored(kind: object, arrow: pa.DataType) -> None:
    assert field_of(kind).type == arrow


def test_each_row_of_the_table_is_the_type_of_a_column() -> None:
    sizes = {"duration": 12, "uuid": 16}
    for form in FORMS:
        kind: dict[str, object] = {"type": form.type}
        if form.logical:
            kind["logicalType"] = form.logical
        if form.type == "fixed":
            kind |= {"name": "N", "size": sizes.get(form.logical or "", 5)}
        if form.type == "enum":
            kind |= {"name": "N", "symbols": ["A"]}
        assert field_of(kind).type == form.arrow


@pytest.mark.parametrize(
    ("union", "arrow", "nullable"),
    [
        (["null"], pa.null(), True),
        (["int"], pa.int32(), False),
        (["int", "long"], pa.int64(), False),
        (["long", "null", "int"], pa.int64(), True),
        ([logical("int", "date"), "long"], pa.int64(), False),
        (["float", "double", "null"], pa.float64(), True),
        (["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())]), False),
        (["int", "null", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())]), True),
        (
            ["null", "int", "long", "float"],
            pa.struct([("member0", pa.int32()), ("member1", pa.int64()), ("member2", pa.float32())]),
            True,
        ),
        (["int", "double"], pa.struct([("member0", pa.int32()), ("member1", pa.float64())]), False),
    ],
)
def test_a_union_is_its_one_type_the_wider_number_or_a_struct_of_members(
    union: list[object], arrow: pa.DataType, nullable: bool
) -> None:
    assert field_of(union) == pa.field("c", arrow, nullable)


def test_aliases_and_ids_of_other_systems_are_kept() -> None:
    (column,) = columns_of(pa.schema([field_of("int", **{"aliases": ["b"], "field-id": 4})]))
    assert (column.name, column.aliases, column.external_id, column.id) == ("c", ("b",), "4", None)
    (array,) = columns_of(pa.schema([field_of({"type": "array", "items": "int", "element-id": 5})]))
    assert array.children[0].external_id == "5"
    (pairs,) = columns_of(pa.schema([field_of({"type": "map", "values": "int", "key-id": 6, "value-id": 7})]))
    assert [child.external_id for child in pairs.children] == ["6", "7"]


@pytest.mark.parametrize(
    ("kind", "default", "kept"),
    [
        ("int", 7, 7),
        ("boolean", False, False),
        ("double", 1, 1.0),
        ("float", 16777217, 16777217.0),
        ("double", "NaN", "NaN"),
        ("string", "ä", "ä"),
        ("bytes", "\u00ff\u0000", "/wA="),
        (fixed(2), "ab", "YWI="),
        (logical("bytes", "decimal", precision=4, scale=2), "\u00ff\u0085", "-1.23"),
        (logical("bytes", "decimal", precision=38, scale=38), "\u0001", "1E-38"),
        (logical("int", "date"), -1, "1969-12-31"),
        (logical("int", "time-millis"), 3_600_001, "01:00:00.001000"),
        (logical("long", "time-micros"), 1, "00:00:00.000001"),
        (logical("long", "timestamp-millis"), 1_500, "1970-01-01T00:00:01.500000+00:00"),
        (logical("long", "local-timestamp-micros"), 1, "1970-01-01T00:00:00.000001"),
        (
            fixed(12, logicalType="duration"),
            "\u0001\0\0\0\u0002\0\0\0\u00ff\u00ff\u00ff\u00ff",
            {"months": 1, "days": 2, "millis": 2**32 - 1},
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
        ({"type": "array", "items": logical("int", "date")}, [0], ["1970-01-01"]),
        ({"type": "map", "values": "int"}, {"a": 1}, [["a", 1]]),
        (ITEM, {"x": 1}, {"x": 1}),
        (["int", "null"], 7, 7),
        (["int", "long"], 7, 7),
        ([logical("int", "date"), "long"], 7, 7),
        (["double", "float"], 7, 7.0),
        (["int", "string"], 7, {"member0": 7, "member1": None}),
        (["null", "int", "string"], "a", {"member0": None, "member1": "a"}),
    ],
)
def test_a_default_is_kept_as_a_value_of_the_column(kind: object, default: object, kept: object) -> None:
    assert default_of(kind, default) == kept


def test_a_field_that_a_default_leaves_out_has_its_own() -> None:
    item = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int", "default": 3}]}
    assert default_of(item, {}) == {"x": 3}


def test_a_null_default_is_no_default() -> None:
    assert default_of(["null", "int"], None) is None


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (logical("int", "time-millis"), -1),
        (logical("long", "timestamp-micros"), 2**63 - 1),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        (fixed(2), "abc"),
        ("bytes", "\u0100"),
        (logical("bytes", "decimal", precision=1), "\u0064"),
    ],
)
def test_a_default_that_is_no_value_of_its_column_is_refused(kind: object, default: object) -> None:
    with pytest.raises(InvalidDefault, match="c"):
        field_of(kind, default=default)


def test_a_record_inside_itself_is_refused_by_name() -> None:
    node = {"type": "record", "name": "a.Node", "fields": [{"name": "next", "type": ["null", "a.Node"]}]}
    with pytest.raises(NoColumnForm, match=r"c\.next of the Avro schema.*record a\.Node contains itself"):
        field_of(node)
    with pytest.raises(NoColumnForm, match=r"c\.element\.next"):
        field_of({"type": "array", "items": node})


def test_a_record_may_be_used_twice_side_by_side() -> None:
    fields = [{"name": "a", "type": ITEM}, {"name": "b", "type": "Item"}]
    schema = columns_of_avro({"type": "record", "name": "r", "fields": fields})
    assert schema.field("a").type == schema.field("b").type


@pytest.mark.parametrize("kind", ["string", {"type": "array", "items": "int"}, ["null", "int"]])
def test_a_root_that_is_no_record_is_refused(kind: object) -> None:
    with pytest.raises(NoColumnForm, match="not a record"):
        columns_of_avro(json.dumps(kind))


def test_a_decimal_of_more_digits_than_a_column_has_is_refused() -> None:
    with pytest.raises(NoColumnForm, match="39 digits"):
        field_of(logical("bytes", "decimal", precision=39))


def test_a_union_of_nothing_is_refused() -> None:
    with pytest.raises(NoColumnForm, match="no types"):
        field_of([])


def test_names_that_differ_only_in_case_are_refused() -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]
    with pytest.raises(InvalidSchema, match="only in case"):
        columns_of_avro({"type": "record", "name": "r", "fields": fields})
