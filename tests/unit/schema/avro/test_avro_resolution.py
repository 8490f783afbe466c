"""Which schema reads which; resolution_cases.json was confirmed with Apache Avro for Java 1.12.1."""

import json
from pathlib import Path

import pytest

from laminae.schema.avro import KINDS, IncompatibilityKind, find_incompatibilities, parse_avro

CASES = json.loads((Path(__file__).parent / "resolution_cases.json").read_text(encoding="utf-8"))


def record(*fields, name="R", **attributes):
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def field(name, kind, **attributes):
    return {"name": name, "type": kind, **attributes}


def causes(reader, writer):
    return find_incompatibilities(parse_avro(reader), parse_avro(writer))


def found(reader, writer):
    return [(str(cause.kind), cause.path, cause.field_path) for cause in causes(reader, writer)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_answer_is_that_of_java(case):
    answer = sorted([str(cause.kind), cause.path] for cause in causes(case["reader"], case["writer"]))
    assert answer == case["causes"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_writer_of_the_cases_reads_itself(case):
    assert causes(case["writer"], case["writer"]) == ()


def test_every_kind_is_met_in_the_cases_and_has_its_row():
    assert {kind for case in CASES for kind, _ in case["causes"]} == set(IncompatibilityKind) == set(KINDS)


def test_cause_names_the_field_for_a_person():
    def order(zip_type):
        line = record(field("zip", zip_type), name="Line")
        lines = record(field("lines", {"type": "array", "items": line}), name="Address")
        return record(field("id", "long"), field("address", lines))

    path = "/fields/1/type/fields/0/type/items/fields/0/type"
    assert found(order("int"), order("string")) == [("TYPE_MISMATCH", path, "address.lines.element.zip")]


def test_cause_in_a_map_is_at_its_value():
    def prices(value):
        return record(field("prices", {"type": "map", "values": value}))

    assert found(prices("int"), prices("long")) == [("TYPE_MISMATCH", "/fields/0/type/values", "prices.value")]


def test_causes_come_in_the_order_of_the_reader_fields():
    reader = record(field("a", "int"), field("b", "int"), field("c", "int"))
    writer = record(field("c", "string"), field("a", "string"))
    assert [cause.field_path for cause in causes(reader, writer)] == ["a", "b", "c"]


def test_union_cause_names_what_is_wrong_in_the_nearest_branch():
    def customer(*fields):
        return record(field("customer", ["null", record(*fields, name="Customer")]))

    (cause,) = causes(customer(field("id", "long"), field("name", "string")), customer(field("id", "long")))
    assert (cause.kind, cause.field_path) == (IncompatibilityKind.MISSING_UNION_BRANCH, "customer")
    assert cause.text.endswith(
        "nearest, name: the reader's field name has no default, and the writer's Customer has no such field"
    )


def test_union_cause_without_a_near_branch_says_only_that():
    (cause,) = causes(["null", "int"], ["null", "string"])
    assert cause.text == "the reader has union [null, int], of which no branch reads the writer's string"


def test_missing_symbols_are_listed():
    def enum(*symbols):
        return {"type": "enum", "name": "E", "symbols": list(symbols)}

    (cause,) = causes(enum("A"), enum("C", "A", "B"))
    assert cause.text == "the reader's enum E has no default and lacks B, C"


def test_type_used_in_many_places_is_one_cause():
    def schema(size):
        return record(field("a", {"type": "fixed", "name": "X", "size": size}), field("b", "X"), field("c", "X"))

    assert found(schema(1), schema(2)) == [("FIXED_SIZE_MISMATCH", "/fields/0/type/size", "a")]


def test_same_mismatch_in_two_fields_is_two_causes():
    def schema(kind):
        return record(field("a", kind), field("b", kind), field("c", record(field("d", kind), name="S")))

    assert [cause.field_path for cause in causes(schema("int"), schema("long"))] == ["a", "b", "c.d"]


def test_reader_field_that_matches_two_writer_fields_is_refused():
    reader = record(field("a", "int", aliases=["b"]))
    writer = record(field("a", "int"), field("b", "int"))
    (cause,) = causes(reader, writer)
    assert (cause.kind, cause.path) == (IncompatibilityKind.NAME_MISMATCH, "/fields/0")
    assert "match more than one field" in cause.text


def test_field_whose_alias_is_its_sibling_makes_a_record_that_does_not_read_itself():
    """As in Java, which finds two writer fields for it and throws."""
    schema = record(field("a", "int"), field("b", "int", aliases=["a"]))
    assert [cause.field_path for cause in causes(schema, schema)] == ["b"]


def test_pair_that_held_only_by_a_refuted_assumption_does_not_hold():
    """Java keeps the answer for B found while A was still assumed to be readable, and calls this compatible."""

    def schema(*more, x):
        inner = record(field("a", "n.A"), name="n.B")
        first = record(field("b", inner), *more, name="n.A")
        return record(field("x", x(first)), field("y", "n.B"))

    reader = schema(field("required", "int"), x=lambda first: [first, record(name="m.A")])
    writer = schema(x=lambda first: first)
    assert found(reader, writer) == [
        ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1/type/fields/0/type/fields/1", "y.a.required")
    ]


def test_consequence_of_a_recursive_cause_is_not_one_more_cause():
    def tree(value):
        return record(field("kids", [{"type": "array", "items": "R"}]), field("value", value))

    assert found(tree("int"), tree("string")) == [("TYPE_MISMATCH", "/fields/1/type", "value")]


def chain(length, last):
    """Records that each use the one before; the first field is unknown to the writer, so the walk starts at the end."""
    links = [record(field("value", last), name="L0")]
    links += [record(field("inner", f"L{i - 1}"), name=f"L{i}") for i in range(1, length)]
    return record(field("unused", ["null", *links], default=None), field("use", f"L{length - 1}"))


def test_references_five_thousand_deep_are_resolved():
    reader, writer = chain(5_000, "long"), chain(5_000, "int")
    for schema, name in ((reader, "r"), (writer, "w")):
        schema["fields"][0]["name"] = name
    assert causes(reader, writer) == ()
    (cause,) = causes(writer, reader)
    assert cause.field_path.endswith("inner.inner.value")


def test_doubling_references_are_resolved_once_each():
    def doubling(value):
        records = [record(field("v", value), name="D0")]
        records += [record(field("l", f"D{i - 1}"), field("r", f"D{i - 1}"), name=f"D{i}") for i in range(1, 100)]
        return records

    assert causes(doubling("long"), doubling("int")) == ()
    assert len(causes(doubling("int"), doubling("long"))) == 100
