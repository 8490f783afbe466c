"""Events by Arrow: what is read of plain ones, and that any odd one is left to the decoder of single events."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from laminae.codec.debezium.json_lines import event_reader
from laminae.codec.value_encodings import by_looks
from tests.support.debezium_events import compact, envelope, message

ROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
TIMES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("x", pa.float64()),
        pa.field("ok", pa.bool_()),
    ]
)
ONE = message("c", 10, {"id": 1, "name": "a"})


def read(*messages: str | bytes | None, schema: pa.Schema = ROW, order: str = "source.lsn"):
    reader = event_reader(by_looks(schema, "micros", "text"), ["id"], order)
    assert reader is not None
    given = [each.encode() if isinstance(each, str) else each for each in messages]
    # As a task is given them: a part of a longer array.
    found = reader.read(pa.array([b"{}", *given, b"{}"], pa.binary()).slice(1, len(given)))
    return None if found is None else [tuple(row.values()) for row in found.to_pylist()]


def test_what_is_done_its_place_and_the_row_of_each_event():
    assert read(
        message("r", 10, {"id": 1, "name": "a"}),
        message("c", 10, {"id": 2, "name": 'q"uo,"after":te\\n'}),
        message("u", 11, {"id": 1, "name": None}, before={"id": 1, "name": "größe"}),
        None,
        message("d", 12, before={"id": 2, "name": ""}),
        message("c", 13, {"id": 3}),
    ) == [
        ("r", 20, {"id": 1, "name": "a"}),
        ("c", 21, {"id": 2, "name": 'q"uo,"after":te\\n'}),
        ("u", 23, {"id": 1, "name": None}),
        ("tombstone", None, None),
        ("d", 25, {"id": 2, "name": ""}),
        ("c", 27, {"id": 3, "name": None}),
    ]


def test_tombstones_alone_and_no_message_at_all():
    assert read(None, None) == [("tombstone", None, None)] * 2
    assert read() == []


def test_another_field_may_order_events():
    told = json.loads(ONE) | {"ts_ms": 77}
    assert read(compact(told), order="ts_ms") == [("c", 155, {"id": 1, "name": "a"})]


def test_times_come_as_numbers():
    at = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    micros = int(at.timestamp()) * 1_000_000 + 123456
    row = {"id": 1, "at": micros, "local": micros, "day": 19849, "x": 1, "ok": True}
    made = {"id": 1, "at": at, "local": at.replace(tzinfo=None), "day": date(2024, 5, 6), "x": 1.0, "ok": True}
    nothing = {"id": 2, "at": None, "local": None, "day": None, "x": None, "ok": None}
    assert read(message("c", 1, row), message("c", 2, nothing), schema=TIMES) == [("c", 3, made), ("c", 5, nothing)]


ODD = {
    "no event": "{}",
    "not one document": ONE + ONE,
    "text around it": ONE + " ",
    "a line break inside": ONE.replace('"op"', '\n"op"'),
    "not JSON": ONE[:-1],
    "no object": "[]",
    "empty": "",
    "null": "null",
    "not UTF-8": ONE.encode().replace(b'"a"', b'"\xff"'),
    "an op that is not known": ONE.replace('"c"', '"x"'),
    "no op": ONE.replace('"op":"c"', '"op":null'),
    "a truncation": message("t", 11),
    "a logical message": message("m", 11),
    "no row": message("u", 11, before={"id": 1, "name": "a"}),
    "no key of what goes": message("d", 11),
    "no place": ONE.replace('"lsn":10', '"lsn":null'),
    "a place that is not a number": ONE.replace('"lsn":10', '"lsn":"10"'),
    "a place too far": ONE.replace('"lsn":10', f'"lsn":{2**62}'),
    "no value of the key": message("c", 11, {"id": None, "name": "a"}),
    "a column that is new": message("c", 11, {"id": 1, "name": "a", "new": None}),
    "a column that is gone in what goes": message("d", 11, before={"id": 1, "name": "a", "old": 1}),
    "a key twice": ONE.replace('"name":"a"', '"name":"a","name":"b"'),
    "a number for a text": message("c", 11, {"id": 1, "name": 5}),
    "a text for a number": message("c", 11, {"id": "1", "name": "a"}),
    "a fraction": message("c", 11, {"id": 1.5, "name": "a"}),
    "a number too large": message("c", 11, {"id": 2**63, "name": "a"}),
    "something beside the envelope": compact(json.loads(ONE) | {"more": 1}),
    "a schema around it": compact({"schema": {"type": "struct"}, "payload": envelope("c", 16, {"id": 5, "name": "t"})}),
    "a key that is not UTF-8": ONE.encode().replace(b'"op":', b'"\xff":1,"op":'),
    "a key too long": ONE.replace('"lsn"', f'"{"k" * 50_001}":1,"lsn"'),
    "lists that go deep": ONE.replace('"lsn"', f'"q":{"[" * 800}{"]" * 800},"lsn"'),
    "objects that go very deep": ONE.replace('"lsn"', '"q":' + '{"q":' * 20_000 + "1" + "}" * 20_000 + ',"lsn"'),
    "single quotes": ONE.replace('"a"', "'a'"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_one_odd_message_leaves_all_to_the_closer_look(odd):
    assert read(ONE) is not None
    assert read(odd) is None
    assert read(ONE, odd, ONE) is None


@pytest.mark.parametrize(
    "value",
    [
        {"at": "2024-01-01T00:00:00Z"},
        {"at": 2**60},
        {"day": 10**7},
        {"day": "2024-01-01"},
        {"x": "NaN"},
        {"local": 1.5},
    ],
    ids=str,
)
def test_times_and_numbers_in_other_forms_are_odd(value):
    assert read(message("c", 1, {"id": 1, **value}), schema=TIMES) is None


def test_a_null_is_odd_where_it_may_stand_for_a_default():
    from laminae.schema.column import DEFAULT

    field = pa.field("n", pa.int64(), metadata={DEFAULT: b"7"})
    schema = pa.schema([ROW.field("id"), field])
    assert read(message("c", 1, {"id": 1, "n": 5}), schema=schema) == [("c", 3, {"id": 1, "n": 5})]
    assert read(message("c", 1, {"id": 1}), schema=schema) is None
    assert read(message("d", 1, before={"id": 1}), schema=schema) is None


@pytest.mark.parametrize(
    "kind", [pa.decimal128(10, 2), pa.float32(), pa.binary(), pa.list_(pa.int64()), pa.time64("us")], ids=str
)
def test_types_that_are_read_otherwise_keep_a_table_away(kind):
    schema = by_looks(pa.schema([ROW.field("id"), pa.field("a", kind)]), "micros", "text")
    assert event_reader(schema, ["id"], "source.lsn") is None


def test_an_order_that_is_not_of_the_event_or_its_source_keeps_a_table_away():
    assert event_reader(ROW, ["id"], "other.lsn") is None
