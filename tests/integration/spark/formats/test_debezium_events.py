"""Every kind of Debezium's events, as the PostgreSQL connector writes them, and the table that each leaves."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from laminae.codec.value_encodings import UNAVAILABLE
from laminae.spark.formats.debezium.format import DebeziumFormat
from laminae.spark.formats.protocol import SHORT_BYTES
from tests.support.debezium_events import compact, connect_field, envelope, message, told
from tests.support.things import maker_of_things, reasons, told_of

pytestmark = pytest.mark.usefixtures("time_of_day")

NAMED = "id INT NOT NULL, name STRING"
ID = {"type": "int32", "optional": False, "field": "id"}
NAME = connect_field("name", "string")


@pytest.fixture
def things(db, inbox):
    return maker_of_things(db, inbox, NAMED, key="id")


def test_each_kind_of_event(db, things):
    read = things()
    assert read(message("r", 10, {"id": 1, "name": "a"}), message("r", 10, {"id": 2, "name": "b"})) == [
        (1, "a"),
        (2, "b"),
    ]
    assert read(message("c", 11, {"id": 3, "name": "c"})) == [(1, "a"), (2, "b"), (3, "c")]
    # The default replica identity: no row before an update; in a delete the key, and "" where a text is NOT NULL.
    assert read(message("u", 12, {"id": 1, "name": "A"})) == [(1, "A"), (2, "b"), (3, "c")]
    assert read(message("d", 13, before={"id": 2, "name": ""}), None) == [(1, "A"), (3, "c")]
    assert read(message("m", 14)) == [(1, "A"), (3, "c")]
    assert read(message("t", 15), message("c", 16, {"id": 9, "name": "z"})) == [(9, "z")]
    # A tombstone and a logical message change nothing, and are counted.
    assert told_of(db, "dropped") == [0, 0, 0, 1, 1, 0]
    assert told_of(db, "anomalies") == [0, 0, 0, 0, 0, 0]
    assert reasons(db) == []


def test_events_with_a_schema_and_full_replica_identity(db, things):
    read = things(evolve="auto")
    fields = [ID, NAME]
    assert read(
        told(fields, "r", 10, {"id": 1, "name": "a"}),
        told(fields, "u", 11, {"id": 1, "name": 'q"uo,"after":te'}, before={"id": 1, "name": "a"}),
        None,
        told(fields, "t", 12),
        told(fields, "c", 13, {"id": 2, "name": "größe"}),
        told(fields, "d", 14, before={"id": 3, "name": "never seen"}),
        message("c", 15, {"id": 4, "name": "without"}),
        compact({"schema": {"type": "struct"}, "payload": envelope("c", 16, {"id": 5, "name": "tells nothing"})}),
    ) == [(2, "größe"), (4, "without"), (5, "tells nothing")]
    assert reasons(db) == []
    assert told_of(db, "anomalies") == [1]


def test_plain_events_are_read_many_at_once(db, things, monkeypatch):
    read = things()

    def closer_look(*given: object) -> None:
        raise AssertionError("nothing is odd about these")

    monkeypatch.setattr(DebeziumFormat, "decoded", closer_look)
    assert read(message("c", 10, {"id": 1, "name": "a"}), message("c", 11, {"id": 2, "name": "b"})) == [
        (1, "a"),
        (2, "b"),
    ]
    assert read(message("d", 12, before={"id": 1, "name": "a"})) == [(2, "b")]


@pytest.fixture
def tried(monkeypatch) -> list[bool]:
    """Whether events were taken for short ones, of each time that many were read at once."""
    found: list[bool] = []
    usual = DebeziumFormat.arrow_rows

    def told(events, records, table, are_short):
        found.append(are_short)
        return usual(events, records, table, are_short)

    monkeypatch.setattr(DebeziumFormat, "arrow_rows", told)
    return found


def test_long_events_are_read_many_at_once_too(db, things, tried, monkeypatch):
    read = things()

    def closer_look(*given: object) -> None:
        raise AssertionError("nothing is odd about these")

    monkeypatch.setattr(DebeziumFormat, "decoded", closer_look)
    long = "x" * SHORT_BYTES
    assert read(message("c", 10, {"id": 1, "name": "a"})) == [(1, "a")]
    assert tried == [True]
    assert read(message("c", 11, {"id": 2, "name": long}), message("c", 12, {"id": 3, "name": "c"})) == [
        (1, "a"),
        (2, long),
        (3, "c"),
    ]
    assert tried == [True, True, False]
    assert read(message("d", 13, before={"id": 2, "name": long})) == [(1, "a"), (3, "c")]


def test_an_odd_event_is_tried_many_at_once_but_once(db, things, tried):
    read = things()
    odd = compact({"odd": 1, **json.loads(message("c", 10, {"id": 1, "name": "a"}))})
    assert read(odd) == [(1, "a")]
    assert tried == [True]


@pytest.mark.parametrize("head", [{}, {"odd": 1}], ids=["many at once", "one by one"])
def test_a_table_of_many_texts_is_planned_as_any(db, things, head):
    # What Spark infers about values was exponential in their number: of 20 an epoch did not end within minutes.
    names = [f"t{number}" for number in range(40)]
    read = things(", ".join(["id INT NOT NULL", *(f"{name} STRING" for name in names)]))
    row = {"id": 1, **{name: name for name in names}}
    whole = {**head, **json.loads(message("c", 10, row))}
    (found,) = read(compact(whole), message("u", 11, row | {"t39": UNAVAILABLE, "t0": "new"}))
    assert found == (1, "new", *names[1:])
    read(message("c", 12, {"id": None}))
    assert db.replay_dead_letters("things").refused == 1


def test_pushed_events_are_read_like_any(db):
    db.sql("CREATE SOURCE things (id INT NOT NULL, name STRING, PRIMARY KEY (id)) WITH (changelog = 'debezium')")
    db.insert("things", [envelope("c", 10, {"id": 1, "name": "a"}), envelope("u", 11, {"id": 1, "name": "b"})])
    db.run()
    assert db.sql("SELECT * FROM things").fetchall() == [(1, "b")]


def test_events_that_come_again_or_too_late_are_dropped_and_counted(db, things):
    read = things()
    first = [
        message("r", 10, {"id": 1, "name": "snapshot"}),
        # The first change behind a snapshot may have its very place.
        message("u", 10, {"id": 1, "name": "changed"}),
        message("c", 12, {"id": 2, "name": "b"}),
        message("d", 13, before={"id": 2, "name": None}),
        None,
    ]
    assert read(*first) == [(1, "changed")]
    assert read(*first) == [(1, "changed")]
    assert read(message("u", 9, {"id": 1, "name": "old"}), message("c", 12, {"id": 2, "name": "b"})) == [(1, "changed")]
    assert told_of(db, "dropped") == [1, 5, 2]


def test_truncation_takes_what_came_before_it_wherever_it_is_read(db, things):
    read = things()
    read(message("c", 10, {"id": 1, "name": "a"}), message("c", 21, {"id": 2, "name": "behind it"}))
    # It is read behind rows that came after it, and ahead of one that came before.
    assert read(message("c", 22, {"id": 3, "name": "c"}), message("t", 20)) == [(2, "behind it"), (3, "c")]
    assert read(message("c", 19, {"id": 4, "name": "late"})) == [(2, "behind it"), (3, "c")]
    assert told_of(db, "dropped") == [0, 0, 1]


def test_changed_primary_key_is_a_delete_and_an_insert_at_one_place(db, things):
    read = things()
    read(message("c", 10, {"id": 1, "name": "a"}))
    moved = [message("c", 11, {"id": 7, "name": "a"}), message("d", 11, before={"id": 1, "name": None}), None]
    assert read(*moved) == [(7, "a")]
    assert read(*moved[::-1]) == [(7, "a")]


TYPES = {
    "small": ("SMALLINT", connect_field("small", "int16"), 7, 7),
    "flag": ("BOOLEAN", connect_field("flag", "boolean"), True, True),
    "price": (
        "DECIMAL(10, 2)",
        connect_field(
            "price",
            "bytes",
            "org.apache.kafka.connect.data.Decimal",
            parameters={"scale": "2", "connect.decimal.precision": "10"},
        ),
        "/tM=",
        Decimal("-3.01"),
    ),
    "wide": (
        "DECIMAL(38, 4)",
        connect_field(
            "wide",
            "bytes",
            "org.apache.kafka.connect.data.Decimal",
            parameters={"scale": "4", "connect.decimal.precision": "38"},
        ),
        "AlM8m8cqltZCH/ZYIEY=",
        Decimal("4715951412061516412941516512.4678"),
    ),
    "free": (
        "STRING",
        {
            "type": "struct",
            "fields": [connect_field("scale", "int32"), connect_field("value", "bytes")],
            "optional": True,
            "name": "io.debezium.data.VariableScaleDecimal",
            "version": 1,
            "field": "free",
        },
        {"scale": 3, "value": "/w=="},
        "-0.001",
    ),
    "born": ("DATE", connect_field("born", "int32", "io.debezium.time.Date"), -1, date(1969, 12, 31)),
    "at": ("TIME", connect_field("at", "int64", "io.debezium.time.MicroTime"), 3723000004, time(1, 2, 3, 4)),
    "done": (
        "TIMESTAMP_NTZ",
        connect_field("done", "int64", "io.debezium.time.MicroTimestamp"),
        1700000000123456,
        datetime(2023, 11, 14, 22, 13, 20, 123456),
    ),
    "seen": (
        "TIMESTAMP",
        connect_field("seen", "string", "io.debezium.time.ZonedTimestamp"),
        "2023-11-14T22:13:20.123456Z",
        datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
    ),
    "ratio": ("DOUBLE", connect_field("ratio", "double"), 0.1, 0.1),
    "limit": ("DOUBLE", connect_field("limit", "double"), "-Infinity", -math.inf),
    "raw": ("BINARY", connect_field("raw", "bytes"), "AP8=", b"\x00\xff"),
    "note": ("STRING", connect_field("note", "string", "io.debezium.data.Json"), '{"a": [1]}', '{"a": [1]}'),
    "key": (
        "STRING",
        connect_field("key", "string", "io.debezium.data.Uuid"),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "tags": (
        "ARRAY<STRING>",
        {"type": "array", "items": {"type": "string", "optional": True}, "optional": True, "field": "tags"},
        ["x", None],
        ["x", None],
    ),
    "days": (
        "ARRAY<DATE>",
        {
            "type": "array",
            "items": {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1},
            "optional": True,
            "field": "days",
        },
        [0, None, 1],
        [date(1970, 1, 1), None, date(1970, 1, 2)],
    ),
}
SENT = {"id": 1, **{name: sent for name, (_, _, sent, _) in TYPES.items()}}
EXPECTED = (1, *(value for _, _, _, value in TYPES.values()))
NOTHING = (2, *[None] * len(TYPES))


def test_semantic_types_become_columns_by_the_schema_of_a_message(db, things):
    read = things("id INT NOT NULL", evolve="auto")
    fields = [ID, *(field for _, field, _, _ in TYPES.values())]
    nothing = {"id": 2, **dict.fromkeys(TYPES)}
    assert read(told(fields, "c", 1, SENT), told(fields, "c", 2, nothing)) == [EXPECTED, NOTHING]
    described = {name: kind for name, kind, *_ in db.sql("DESCRIBE SOURCE things").fetchall()}
    assert {name: described[name] for name in TYPES} == {name: kind for name, (kind, *_) in TYPES.items()}
    assert reasons(db) == []


def test_declared_types_say_what_values_without_a_schema_are(db, things):
    declared = ", ".join(f"`{name}` {kind}" for name, (kind, *_) in TYPES.items() if name != "free")
    read = things(f"id INT NOT NULL, {declared}")
    sent = {name: value for name, value in SENT.items() if name != "free"}
    expected = tuple(value for name, value in zip(("id", *TYPES), EXPECTED, strict=True) if name != "free")
    assert read(message("c", 1, sent)) == [expected]
    assert reasons(db) == []


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {"at": 1000, "price": "AfQ=", "day": "2024-02-29", "took": "00:00:01"}),
        ({"debezium__time": "millis"}, {"at": 1, "price": 5.00, "day": 19782, "took": 1000}),
        ({"debezium__time": "nanos", "debezium__decimal": "text"}, {"at": 1000000, "price": "5.00", "day": 19782}),
        ({"debezium__decimal": "text"}, {"at": "1970-01-01 00:00:00.001", "price": "5", "took": 1000000}),
    ],
)
def test_options_say_how_times_and_decimals_are_written_without_a_schema(db, things, options, sent):
    read = things("id INT NOT NULL, at TIMESTAMP, price DECIMAL(10, 2), day DATE, took TIME", **options)
    whole = {
        "at": datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
        "price": Decimal("5.00"),
        "day": date(2024, 2, 29),
        "took": time(0, 0, 1),
    }
    expected = (1, *(value if name in sent else None for name, value in whole.items()))
    assert read(message("c", 1, {"id": 1, **sent})) == [expected]
    assert reasons(db) == []


def test_declared_types_take_what_a_schema_tells_where_no_value_is_lost(db, things):
    columns = "id BIGINT NOT NULL, free DECIMAL(12, 4), done TIMESTAMP, small STRING, price DOUBLE"
    read = things(columns)
    names = ("free", "done", "small", "price")
    fields = [ID, *(TYPES[name][1] for name in names)]
    row = {"id": 1, **{name: SENT[name] for name in names}}
    ((key, *values),) = read(
        told(fields, "c", 1, row), told(fields, "c", 2, {**row, "id": 2, "free": {"scale": 5, "value": "AQ=="}})
    )
    assert (key, values[0], values[1]) == (1, Decimal("-0.0010"), datetime(2023, 11, 14, 22, 13, 20, 123456, UTC))
    assert (values[2], values[3]) == ("7", -3.01)
    assert reasons(db) == ["free is not a value of type DECIMAL(12,4)"]


def test_value_that_did_not_change_and_was_not_sent_stays(db, things):
    read = things("id INT NOT NULL, name STRING, raw BINARY, tags ARRAY<STRING>, codes ARRAY<INT>")
    row = {"id": 1, "name": "long", "raw": "AP8=", "tags": ["x"], "codes": [1, 2]}
    missing = {
        "name": UNAVAILABLE,
        "raw": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "tags": [UNAVAILABLE],
        "codes": list(UNAVAILABLE.encode()),
    }
    expected = (1, "long", b"\x00\xff", ["x"], [1, 2])
    assert read(message("c", 1, row))[0] == expected
    assert read(message("u", 2, {"id": 1, **missing}))[0] == expected
    # Also where the value came with an event of the same epoch.
    again = read(message("u", 3, {**row, "name": "longer"}), message("u", 4, {**row, "name": UNAVAILABLE, "tags": []}))
    assert again[0] == (1, "longer", b"\x00\xff", [], [1, 2])
    assert told_of(db, "anomalies") == [0, 0, 0]


def test_value_that_was_not_sent_of_a_row_whose_key_changed_is_that_under_its_old_key(db, things):
    read = things()
    read(message("c", 1, {"id": 1, "name": "long"}))
    moved = {"id": 7, "name": UNAVAILABLE}
    assert read(message("d", 2, before={"id": 1, "name": None}), None, message("c", 2, moved)) == [(7, "long")]
    # Also of a row that came, and moved, within the epoch.
    rows = read(
        message("c", 3, {"id": 2, "name": "longer"}),
        message("c", 4, {"id": 8, "name": UNAVAILABLE}),
        message("d", 4, before={"id": 2, "name": None}),
        None,
    )
    assert rows == [(7, "long"), (8, "longer")]
    assert set(told_of(db, "anomalies")) == {0}


def test_column_that_is_added_with_a_default_has_it_in_rows_that_are_there(db, things):
    read = things(evolve="auto")
    assert read(told([ID, NAME], "c", 1, {"id": 1, "name": "a"})) == [(1, "a")]
    added = connect_field("n", "int32", default=5)
    rows = read(told([ID, NAME, added], "c", 2, {"id": 2, "name": "b", "n": 6}))
    assert rows == [(1, "a", 5), (2, "b", 6)]


def test_column_that_was_dropped_does_not_come_back_with_a_late_event(db, things):
    read = things("id INT NOT NULL, name STRING, old STRING", evolve="auto")
    late = message("c", 1, {"id": 1, "name": "a", "old": "x"})
    read(late)
    db.sql("ALTER SOURCE things DROP COLUMN old")
    assert read(late, message("u", 2, {"id": 1, "name": "b"})) == [(1, "b")]
    assert db.version("things") == 2


def test_table_that_is_altered_evolves_the_source_in_the_epoch_of_its_next_event(db, things):
    read = things("id INT NOT NULL, n INT, old STRING", evolve="auto")
    n, old = connect_field("n", "int32"), connect_field("old", "string")
    assert read(told([ID, n, old], "c", 1, {"id": 1, "n": 1, "old": "x"})) == [(1, 1, "x")]
    # ADD COLUMN and ALTER TYPE; events of both shapes in one epoch.
    wide, day = connect_field("n", "int64"), connect_field("day", "int32", "io.debezium.time.Date")
    rows = read(
        told([ID, n, old], "c", 2, {"id": 2, "n": 2, "old": "y"}),
        told([ID, wide, old, day], "u", 3, {"id": 1, "n": 2**40, "old": "x", "day": 0}),
    )
    assert rows == [(1, 2**40, "x", date(1970, 1, 1)), (2, 2, "y", None)]
    # RENAME and DROP: one column gone and one new; what is gone stays, and is NULL in rows to come.
    renamed = connect_field("new", "string")
    rows = read(told([ID, wide, renamed], "u", 4, {"id": 2, "n": 3, "new": "z"}))
    assert rows == [(1, 2**40, "x", date(1970, 1, 1), None), (2, 3, None, None, "z")]
    assert [version.version for version in db._catalog.versions(db._engine.source("things").id)] == [1, 2, 3]
    # The old shape once more, from a connector that was restarted: nothing goes back.
    rows = read(told([ID, n, old], "u", 5, {"id": 2, "n": 4, "old": "again"}))
    assert rows == [(1, 2**40, "x", date(1970, 1, 1), None), (2, 4, "again", None, None)]
    assert db.version("things") == 3
    assert reasons(db) == []


def test_events_without_a_schema_evolve_the_source_by_what_they_hold(db, things):
    read = things(evolve="auto")
    assert read(message("c", 1, {"id": 1, "name": "a"})) == [(1, "a")]
    rows = read(message("c", 2, {"id": 2, "name": "b", "age": 5}), message("d", 3, before={"id": 1, "name": None}))
    assert rows == [(2, "b", 5)]
    assert read(message("u", 4, {"id": 2, "age": 6})) == [(2, None, 6)]


def test_type_of_another_kind_waits_for_a_person(db, things):
    read = things("id INT NOT NULL, n INT", evolve="auto")
    read(told([ID, connect_field("n", "int32")], "c", 1, {"id": 1, "n": 1}))
    flag = [ID, connect_field("n", "boolean")]
    assert read(told(flag, "u", 2, {"id": 1, "n": True})) == [(1, 1)]
    (pending,) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    assert reasons(db) == ["n is INT here, and a type of another kind in the schema of the record"]
    db.sql(f"ALTER SOURCE things CONFIRM CHANGE {pending[0]}")
    db.replay_dead_letters("things")
    assert db.sql("SELECT * FROM things").fetchall() == [(1, True)]
    assert read(told(flag, "u", 3, {"id": 1, "n": False})) == [(1, False)]


BAD = {
    message("z", 1, {"id": 1}): "op is not one of c, r, u, d, t and m: z",
    message("c", None, {"id": 1}): "source.lsn, which orders events, is missing",
    message("c", 1): "after, which contains the row, is missing",
    message("d", 1): "before, which contains the key of the deleted row, is missing",
    message("u", 1, {"id": "one"}): "id is not a value of type INT",
    message("u", 1, {"id": None, "name": "x"}): "id is NULL in a NOT NULL column",
    message("u", 1, {"id": 1, "day": "tomorrow"}): "day is not a value of type DATE: tomorrow",
    message("c", 1, {"id": 1})[:-1]: "the message is not one JSON document, or has a key twice in one object",
    message("c", 1, {"id": 1}) + "{}": "the message is not one JSON document, or has a key twice in one object",
    message("c", 1, {"id": 1}).replace('"id"', '"id":2,"id"'): "a key occurs twice in one object",
    "[1]": "the record is not a Debezium event: it has no op",
    '{"id":1}': "the record is not a Debezium event: it has no op",
    compact({"op": "c", "after": 5, "source": {"lsn": 1}}): "the message is JSON but not an object",
}


def test_bad_events_are_dead_letters_that_keep_the_message(db, things):
    read = things("id INT NOT NULL, name STRING, day DATE")
    assert read(*BAD, message("c", 5, {"id": 9, "name": "good", "day": None})) == [(9, "good", None)]
    found = db.sql("SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters").fetchall()
    assert dict(found) == BAD


def test_columns_may_have_the_names_of_the_parts_of_an_event(db, things):
    columns = "id INT NOT NULL, after STRING, before STRING, source STRUCT<lsn: INT>, op STRING, payload STRING"
    read = things(columns)
    row = {"id": 1, "after": "a", "before": "b", "source": {"lsn": 3}, "op": "d", "payload": "p"}
    assert read(message("u", 1, row, before=row))[0] == (1, "a", "b", {"lsn": 3}, "d", "p")
    assert read(message("u", 2, {"id": 1, "source": {"lsn": 4}, "after": "c"}))[0][:2] == (1, "c")
    assert read(message("d", 3, before={"id": 1, "after": "c"})) == []
    assert reasons(db) == []


def test_events_written_otherwise_are_read_as_well(db, things):
    read = things("id INT NOT NULL, name STRING, credit DECIMAL(20, 4)")
    spread = json.dumps(envelope("c", 1, {"id": 1, "name": "a"}), indent=None)
    other = '{"op":"c","after":{"id":2,"credit":1234567890123456.7890},"source":{"lsn":"2"}}'
    assert read(spread, other) == [(1, "a", None), (2, None, Decimal("1234567890123456.7890"))]
    assert reasons(db) == []
