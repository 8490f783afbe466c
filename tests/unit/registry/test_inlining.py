"""Schemas that use names of others, written as one: every parser of Avro reads it, and it means the same."""

from __future__ import annotations

import json

import fastavro
import pytest

from laminae.errors import InvalidAvroSchema
from laminae.registry.inlining import inlined
from laminae.schema.avro import parse_avro


def record(name: str, **fields: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def one(main: object, *others: object) -> str:
    return inlined(json.dumps(main), map(json.dumps, others))


@pytest.mark.parametrize(
    ("main", "others"),
    [
        (record("b.Order", i="a.Item"), [record("a.Item", x="int")]),
        (record("b.Order", i={"type": "array", "items": ["null", "a.Item"]}), [record("a.Item", x="int")]),
        (record("b.Order", i={"type": "map", "values": "a.Item"}, j="a.Item"), [record("a.Item", x="int")]),
        (
            record("a.Order", i="Item"),
            [record("a.Item", k="Kind"), {"type": "enum", "name": "a.Kind", "symbols": ["X"]}],
        ),
        (record("b.Order", i="a.Inner", j="a.Item"), [record("a.Item", x=record("Inner", y="int"))]),
        (record("Order", i="Item"), [record("Item", x="string")]),
        (record("b.Order", i={"type": "a.Item"}), [record("a.Item", x={"type": "int", "logicalType": "date"})]),
    ],
)
def test_what_references_define_stands_in_the_schema(main: object, others: list[object]) -> None:
    whole = one(main, *others)
    assert "a.Item" in parse_avro(whole).names or "Item" in parse_avro(whole).names
    fastavro.parse_schema(json.loads(whole))


def test_a_definition_stands_at_its_first_use_and_its_name_at_the_others() -> None:
    whole = json.loads(one(record("b.Order", i="a.Item", j="a.Item"), record("a.Item", x="int")))
    assert [type(field["type"]).__name__ for field in whole["fields"]] == ["dict", "str"]


def test_a_definition_keeps_its_own_namespace_inside_another() -> None:
    whole = one(record("b.Order", i="Item"), record("Item", k={"type": "enum", "name": "Kind", "symbols": ["X"]}))
    assert set(parse_avro(whole).names) == {"b.Order", "Item", "Kind"}


def test_a_record_that_refers_to_itself_stays_finite() -> None:
    whole = one(record("b.Order", n="a.Node"), record("a.Node", next=["null", "Node"]))
    assert parse_avro(whole).names.keys() == {"b.Order", "a.Node"}


def test_a_union_at_the_root_takes_its_branches_from_references() -> None:
    whole = one(["a.Item", "b.Other"], record("a.Item", x="int"), record("b.Other", y="int"))
    assert parse_avro(whole).names.keys() == {"a.Item", "b.Other"}


def test_definitions_that_are_not_used_are_left_out() -> None:
    assert parse_avro(one(record("b.Order", i="int"), record("a.Item", x="int"))).names.keys() == {"b.Order"}


def test_defaults_aliases_and_properties_stay() -> None:
    field = {"name": "x", "type": "a.Item", "default": {"x": 1}, "aliases": ["y"], "doc": "d", "field-id": 3}
    whole = json.loads(one({"type": "record", "name": "b.O", "doc": "o", "fields": [field]}, record("a.Item", x="int")))
    assert {**whole["fields"][0], "type": None} == {**field, "type": None}
    assert whole["doc"] == "o"


@pytest.mark.parametrize("text", ["{", "nothing"])
def test_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidAvroSchema, match="not JSON"):
        inlined(text, [])


def test_a_name_that_nobody_defines_is_left_for_the_parser_to_refuse() -> None:
    with pytest.raises(InvalidAvroSchema, match="no type is named"):
        parse_avro(one(record("b.Order", i="a.Gone"), record("a.Item", x="int")))
