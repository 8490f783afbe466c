"""A writer's columns as those of a source, and what a newer schema of the writer's asks of it."""

from __future__ import annotations

import json

import pyarrow as pa

from laminae.codec.avro.to_columns import columns_of_avro
from laminae.schema.column import columns_of
from laminae.schema.external.writer_schema import bound, grown, misfit
from laminae.schema.identity import assign_ids


def avro(*fields: dict[str, object]) -> pa.Schema:
    return columns_of_avro(json.dumps({"type": "record", "name": "Order", "fields": fields}))


def field(name: str, kind: object = "long", **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, **more}


def numbered(*fields: pa.Field) -> pa.Schema:
    return assign_ids(pa.schema(list(fields)), 1)[0]


def ids(schema: pa.Schema) -> dict[str, int | None]:
    return {node.name: node.id for node in columns_of(schema)}


def shown(schema: pa.Schema) -> list[tuple[str, str, int | None]]:
    return [(node.name, str(node.type), node.id) for node in columns_of(schema)]


SOURCE = numbered(pa.field("id", pa.int64(), False), pa.field("amount", pa.int32(), False))
V1 = avro(field("id"), field("amount", "int"))
BOUND = bound(V1, None, SOURCE)


def test_columns_are_found_by_name_and_alias() -> None:
    writer = avro(field("number", aliases=["id"]), field("amount", "int"), field("more"))
    assert ids(bound(writer, None, SOURCE)) == {"number": 1, "amount": 2, "more": None}


def test_what_continues_a_column_is_it_whatever_its_name_is_here() -> None:
    renamed = numbered(pa.field("id", pa.int64(), False), pa.field("total", pa.int32(), False))
    later = avro(field("id"), field("amount", "long"), field("total", "string"))
    found = bound(later, BOUND, renamed)
    assert ids(found) == {"id": 1, "amount": 2, "total": None}
    assert shown(grown(renamed, BOUND, found)) == [("id", "int64", 1), ("total", "int64", 2)]


def test_added_widened_and_renamed_columns_are_carried_over() -> None:
    later = avro(field("id"), field("sum", "long", aliases=["amount"]), field("note", ["null", "string"], default=None))
    wanted = grown(SOURCE, BOUND, bound(later, BOUND, SOURCE))
    assert shown(wanted) == [("id", "int64", 1), ("sum", "int64", 2), ("note", "string", None)]


def test_done_twice_is_done_once() -> None:
    later = avro(field("id"), field("note", ["null", "string"], default=None), field("sum", aliases=["amount"]))
    once, _ = assign_ids(grown(SOURCE, BOUND, bound(later, BOUND, SOURCE)), 3)
    assert grown(once, BOUND, bound(later, BOUND, once)).equals(once, check_metadata=True)


def test_a_column_that_the_writer_gave_up_goes() -> None:
    later = avro(field("id"))
    assert grown(SOURCE, BOUND, bound(later, BOUND, SOURCE)).names == ["id"]


def test_columns_of_the_sources_own_and_those_it_does_not_want_stay_so() -> None:
    own = numbered(pa.field("id", pa.int64()), pa.field("mine", pa.string()))
    first = bound(V1, None, own)
    later = bound(avro(field("id"), field("amount", "int"), field("new", "int")), first, own)
    assert shown(grown(own, first, later)) == [("id", "int64", 1), ("new", "int32", None), ("mine", "string", 2)]


def test_a_wider_type_here_stays() -> None:
    wide = numbered(pa.field("id", pa.int64()), pa.field("amount", pa.int64()))
    first = bound(V1, None, wide)
    later = bound(avro(field("id"), field("amount", "int"), field("new")), first, wide)
    assert shown(grown(wide, first, later))[:2] == [("id", "int64", 1), ("amount", "int64", 2)]


def test_inner_columns_follow_as_outer_ones_do() -> None:
    inner = {"type": "record", "name": "In", "fields": [field("x", "int")]}
    grown_inner = {"type": "record", "name": "In", "fields": [field("z", "long", aliases=["x"]), field("y", "int")]}
    first = avro(field("a", inner), field("l", {"type": "array", "items": "int"}))
    source, _ = assign_ids(first, 1)
    before = bound(first, None, source)
    after = bound(avro(field("a", grown_inner), field("l", {"type": "array", "items": "long"})), before, source)
    wanted = grown(source, before, after)
    assert [(f.name, str(f.type)) for f in wanted.field("a").type] == [("z", "int64"), ("y", "int32")]
    assert wanted.field("l").type.value_type == pa.int64()


def test_a_type_of_another_kind_is_a_misfit() -> None:
    assert misfit(BOUND, SOURCE) is None
    later = bound(avro(field("id"), field("amount", "string")), BOUND, SOURCE)
    assert misfit(later, SOURCE) == "amount is INT here, and a type of another kind in the schema of the record"
    # A column that the source does not have is no matter.
    assert misfit(bound(avro(field("id"), field("x", "string")), BOUND, SOURCE), SOURCE) is None
