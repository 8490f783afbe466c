"""What is an Avro schema and what is not; validation_cases.json was confirmed with Apache Avro for Java 1.12.1."""

import json
import pickle
import re
from pathlib import Path

import pytest

from laminae.errors import InvalidAvroSchema
from laminae.schema.avro import (
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroReference,
    AvroUnion,
    find_incompatibilities,
    parse_avro,
)

CASES = json.loads((Path(__file__).parent / "validation_cases.json").read_text(encoding="utf-8"))
INT = AvroPrimitive(AvroKind.INT)


def record(*fields, name="R", **attributes):
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def problem_of(source):
    with pytest.raises(InvalidAvroSchema) as caught:
        parse_avro(source)
    return caught.value.params


@pytest.mark.parametrize("case", [case for case in CASES if not case["path"]], ids=lambda case: case["name"])
def test_schema_that_java_accepts_is_valid_and_reads_what_it_wrote(case):
    schema = parse_avro(json.dumps(case["schema"]))
    assert repr(schema) == repr(parse_avro(case["schema"]))  # as text: a default may be NaN, which equals nothing
    assert find_incompatibilities(schema, schema) == ()


@pytest.mark.parametrize("case", [case for case in CASES if case["path"]], ids=lambda case: case["name"])
def test_schema_that_java_refuses_is_invalid_at_its_path(case):
    assert problem_of(json.dumps(case["schema"]))["path"] == case["path"]


@pytest.mark.parametrize("kind", list(AvroKind))
def test_primitive_is_known_by_bare_name_json_text_and_object(kind):
    sources = (str(kind), f' "{kind}" ', f"  {kind}\n", {"type": str(kind)}, json.dumps({"type": str(kind)}))
    assert {parse_avro(source).root for source in sources} == {AvroPrimitive(kind)}


@pytest.mark.parametrize(
    "text", ["", "Order", "{", '{"type": "int"', "[1,]", "'int'", '{"type": "int"} x', "NaN", "1" * 5000]
)
def test_text_that_is_not_json_is_refused_at_the_root(text):
    params = problem_of(text)
    assert params["path"] == "/"
    assert "neither JSON nor the name of a primitive type" in params["problem"]


@pytest.mark.parametrize("source", [5, None, True, b'"int"', ("null", "int"), {1, 2}, object()], ids=repr)
def test_value_that_is_no_schema_is_refused(source):
    assert problem_of(source)["path"] == "/"


def nested(depth, wrap):
    source = "int"
    for _ in range(depth):
        source = wrap(source)
    return source


WRAPS = {
    "array": lambda inner: {"type": "array", "items": inner},
    "map": lambda inner: {"type": "map", "values": inner},
    "union": lambda inner: [inner],
    "union of array": lambda inner: ["null", {"type": "array", "items": inner}],
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_schema_nested_ten_thousand_deep_is_refused(wrap):
    assert "deep" in problem_of(nested(10_000, wrap))["problem"]


@pytest.mark.parametrize(
    "text", ["[" * 10_000, "[" * 10_000 + "]" * 10_000, '{"type":' * 10_000 + '"int"' + "}" * 10_000]
)
def test_text_nested_ten_thousand_deep_is_refused(text):
    assert "deep" in problem_of(text)["problem"]


def test_default_nested_ten_thousand_deep_is_refused():
    deep = nested(10_000, lambda inner: {"items": [inner]})
    tree = record({"name": "items", "type": {"type": "array", "items": "Tree"}}, name="Tree")
    holder = record({"name": "tree", "type": tree}, {"name": "copy", "type": "Tree", "default": deep})
    assert "deep" in problem_of(holder)["problem"]


def test_schema_nested_a_hundred_deep_is_accepted():
    root = parse_avro(nested(100, WRAPS["array"])).root
    assert isinstance(root, AvroArray)


def test_records_nested_a_hundred_deep_can_be_printed():
    source = "int"
    for level in range(100):
        source = record({"name": "inner", "type": source}, name=f"R{level}")
    assert "R99" in repr(parse_avro(source))


def test_named_types_are_kept_once_and_used_by_full_name():
    fixed = {"type": "fixed", "name": "Hash", "size": 4}
    schema = parse_avro(
        record(
            {"name": "a", "type": fixed}, {"name": "b", "type": "Hash"}, {"name": "c", "type": "x.Hash"}, namespace="x"
        )
    )
    assert schema.names["x.Hash"] == AvroFixed("x.Hash", 4)
    assert isinstance(schema.root, AvroRecord)
    assert {field.type for field in schema.root.fields} == {AvroReference("x.Hash")}
    assert schema.resolve(schema.root.fields[2].type) is schema.names["x.Hash"]


def test_every_kind_of_node_keeps_what_a_codec_needs():
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = parse_avro(
        record(
            {"name": "price", "type": decimal, "unit": "EUR"},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"], "default": "OFF"}},
            {
                "name": "tags",
                "type": {"type": "map", "values": ["null", "string"]},
                "default": {},
                "aliases": ["labels"],
            },
            doc="ignored",
            aliases=["Old"],
            owner="sales",
        )
    )
    price = AvroPrimitive(AvroKind.BYTES, {"logicalType": "decimal", "precision": 9, "scale": 2})
    tags = AvroMap(AvroUnion((AvroPrimitive(AvroKind.NULL), AvroPrimitive(AvroKind.STRING))))
    assert schema.root == AvroRecord(
        "R",
        (
            AvroField("price", price, props={"unit": "EUR"}),
            AvroField("state", AvroReference("State")),
            AvroField("tags", tags, True, {}, ("labels",)),
        ),
        ("Old",),
        props={"owner": "sales"},
    )
    assert schema.names["State"] == AvroEnum("State", ("ON", "OFF"), "OFF")


def test_default_of_null_is_told_from_no_default():
    nullable = ["null", "int"]
    schema = parse_avro(record({"name": "a", "type": nullable}, {"name": "b", "type": nullable, "default": None}))
    assert isinstance(schema.root, AvroRecord)
    assert [field.has_default for field in schema.root.fields] == [False, True]


def test_number_in_text_becomes_the_number_it_stands_for():
    schema = parse_avro(record({"name": "a", "type": "double", "default": "-Infinity"}))
    assert isinstance(schema.root, AvroRecord)
    assert schema.root.fields[0].default == float("-inf")


def test_recursive_schema_is_a_finite_value():
    source = record({"name": "next", "type": ["null", "R"], "default": None})
    schema = parse_avro(source)
    assert pickle.loads(pickle.dumps(schema)) == schema == parse_avro(json.dumps(source))
    assert hash(schema) == hash(parse_avro(source))


def test_aliases_are_part_of_the_value_but_may_differ_in_a_repeated_definition():
    plain, aliased = ({"type": "fixed", "name": "X", "size": 1, **more} for more in ({}, {"aliases": ["Y"]}))
    assert parse_avro(plain) != parse_avro(aliased)
    twice = parse_avro(record({"name": "a", "type": plain}, {"name": "b", "type": aliased}))
    assert twice.names["X"] == AvroFixed("X", 1)


@pytest.mark.parametrize("default", [5, ["A"], {}, True])
def test_enum_default_that_is_no_text_is_refused_though_java_drops_it(default):
    source = {"type": "enum", "name": "E", "symbols": ["A"], "default": default}
    assert problem_of(source)["path"] == "/default"


def test_namespace_that_is_no_text_is_refused_though_java_drops_it():
    assert problem_of(record(namespace=5))["path"] == "/namespace"


def test_error_names_the_path_the_value_and_the_remedy():
    source = record({"name": "a", "type": {"type": "array", "items": record({"name": "b", "type": "Nope"}, name="S")}})
    with pytest.raises(
        InvalidAvroSchema, match=re.escape("/fields/0/type/items/fields/0/type: no type is named 'Nope'")
    ):
        parse_avro(source)


def test_error_about_a_huge_value_stays_short():
    huge = {"name": "a", "type": "int", "default": 10**6000}
    assert "a number" in problem_of(record(huge))["problem"]
    assert len(problem_of({"type": "x" * 10_000})["problem"]) < 200


def test_input_is_not_changed():
    source = record({"name": "a", "type": "double", "default": "1.5"}, aliases=["B"])
    before = json.dumps(source)
    parse_avro(source)
    assert json.dumps(source) == before
