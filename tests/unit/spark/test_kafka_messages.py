"""Segments as messages of a topic: keys, tombstones, order and numbers, the same when they are made again."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.model import SinkRecord
from laminae.codec.avro.from_columns import avro_of_columns
from laminae.codec.confluent import split
from laminae.errors import NoAvroForm
from laminae.spark.sinks.kafka import avro
from laminae.spark.sinks.kafka.deliver import messages_of
from laminae.spark.sinks.kafka.messages import with_headers
from laminae.spark.sinks.segment import Holds, Segment

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
META = [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))]
ROW = pa.schema([("customer", pa.string()), ("n", pa.int64())])
CHANGES = [("+I", "b", 1), ("-U", "a", 1), ("+U", "a", 2), ("-D", "c", 4)]
_numbers = count()


def changes(home: Path, *parts: list[tuple], row: pa.Schema = ROW, key=("customer",)) -> Segment:
    schema, names = pa.schema([*META, *row]), []
    for part in parts:
        lines = [(op, 1 if op[0] == "+" else -1, NOON, *rest) for op, *rest in part]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*lines, strict=True), schema, strict=True)]
        names.append(f"{next(_numbers)}.parquet")
        pq.write_table(pa.table(columns, schema=schema), home / names[-1])
    return Segment(7, str(home), schema, sum(map(len, parts)), Holds.CHANGES, tuple(names), key=key)


def rows_of(home: Path, holds: Holds, *parts: list[dict], row: pa.Schema = ROW, key=None) -> Segment:
    names = [f"{next(_numbers)}.parquet" for _ in parts]
    for name, part in zip(names, parts, strict=True):
        pq.write_table(pa.Table.from_pylist(part, row), home / name)
    return Segment(7, str(home), row, sum(map(len, parts)), holds, tuple(names), NOON, key)


def sink(kind: str = "json", mode: str = "upsert", **options: str) -> SinkRecord:
    given = {"connector": "kafka", "topic": "t", "format": kind, "mode": mode, **options}
    return SinkRecord(1, "shipped", "totals", tuple(sorted(given.items())), "live", None, 0, NOON, 1)


def pairs(messages: pa.Table) -> list[tuple[object, object]]:
    def loaded(value: bytes | None) -> object:
        return None if value is None else json.loads(value)

    return [(loaded(row["key"]), loaded(row["value"])) for row in messages.to_pylist()]


def test_rows_stand_under_their_key_and_a_row_that_is_gone_is_a_tombstone(tmp_path):
    assert pairs(messages_of(changes(tmp_path, CHANGES), sink())) == [
        ({"customer": "a"}, {"customer": "a", "n": 2}),
        ({"customer": "b"}, {"customer": "b", "n": 1}),
        ({"customer": "c"}, None),
    ]


def test_rows_that_are_only_added_have_no_key_and_the_order_of_their_files(tmp_path):
    segment = rows_of(tmp_path, Holds.ROWS, [{"customer": "z", "n": 1}], [{"customer": "a", "n": 2}])
    assert pairs(messages_of(segment, sink(mode="append"))) == [
        (None, {"customer": "z", "n": 1}),
        (None, {"customer": "a", "n": 2}),
    ]


def test_debezium_events_have_the_key_of_their_row_and_an_end_if_it_is_wanted(tmp_path):
    segment = changes(tmp_path, CHANGES[:2], CHANGES[2:])
    found = pairs(messages_of(segment, sink("debezium-json", "changelog")))
    assert [(key["customer"], value and value["op"]) for key, value in found] == [
        ("a", "u"), ("b", "c"), ("c", "d"), ("c", None),
    ]  # fmt: skip
    assert found[0][1]["before"] == {"customer": "a", "n": 1}
    # Numbered in the order of the changelog, whatever the order of the topic.
    assert [value["source"]["sequence"] for _, value in found if value] == [1, 0, 2]
    without = messages_of(segment, sink("debezium-json", "changelog", **{"debezium.tombstones": "false"}))
    assert pairs(without) == found[:3]
    keyless = messages_of(changes(tmp_path, CHANGES, key=None), sink("debezium-json", "changelog"))
    assert [(key, value["op"]) for key, value in pairs(keyless)] == [(None, "c"), (None, "u"), (None, "d")]


def test_changes_of_one_key_keep_their_order(tmp_path):
    several = [("+I", "b", 1), ("-D", "b", 1), ("+I", "a", 1), ("+I", "b", 2)]
    found = pairs(messages_of(changes(tmp_path, several), sink("debezium-json", "changelog")))
    assert [(key["customer"], value and value["op"]) for key, value in found] == [
        ("a", "c"), ("b", "c"), ("b", "d"), ("b", None), ("b", "c"),
    ]  # fmt: skip


@pytest.mark.parametrize("key", [("customer",), None])
@pytest.mark.parametrize("kind", ["json", "debezium-json"])
def test_a_snapshot_cut_into_other_files_gives_the_same_messages(tmp_path, kind, key):
    rows = [{"customer": f"c{number % 40}", "n": number} for number in range(40)]
    mode = ("upsert" if key else "append") if kind == "json" else "changelog"
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        segment = rows_of(tmp_path, Holds.SNAPSHOT, rows[: 10 * seed + 5], rows[10 * seed + 5 :], key=key)
        found.append(pairs(messages_of(segment, sink(kind, mode))))
    for _, value in (pair for each in found for pair in each if kind == "debezium-json"):
        # The place in the changelog of this attempt; the number in the headers is that of the message.
        del value["source"]["sequence"]
    assert found[0] == found[1] == found[2]


def test_headers_name_a_message_for_ever(tmp_path):
    messages = with_headers(messages_of(changes(tmp_path, CHANGES), sink()), 7, "shipped/1")
    assert messages.column("headers").to_pylist() == [
        [
            {"key": "laminae.sink", "value": b"shipped/1"},
            {"key": "laminae.epoch", "value": b"7"},
            {"key": "laminae.sequence", "value": str(number).encode()},
        ]
        for number in range(3)
    ]
    assert with_headers(messages_of(changes(tmp_path, CHANGES), sink()).slice(0, 0), 7, "s").num_rows == 0


EVERY = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False), ("yes", pa.bool_()), ("small", pa.int16()), ("real", pa.float32()),
        ("x", pa.float64()), ("price", pa.decimal128(20, 2)), ("text", pa.string()), ("raw", pa.binary()),
        ("day", pa.date32()), ("clock", pa.time64("ns")), ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")), ("tags", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("a", pa.decimal128(10, 2)), ("t", pa.string())])),
    ]
)  # fmt: skip
VALUES = {
    "id": 1, "yes": True, "small": 3, "real": 0.5, "x": float("inf"), "price": Decimal("-123456789012345678.10"),
    "text": "ä", "raw": b"\xff", "day": date(2026, 3, 1), "clock": time(1, 2, 3, 4), "at": NOON,
    "local": NOON.replace(tzinfo=None), "tags": ["a", None], "m": {"k": 1}, "inner": {"a": Decimal("1.10"), "t": None},
}  # fmt: skip


def test_every_type_is_written_as_avro_behind_the_id_of_its_schema(tmp_path, monkeypatch):
    asked: list[tuple[str, str]] = []

    def registered(options, name, subject, text):
        asked.append((subject, text))
        return len(asked)

    monkeypatch.setattr(avro, "_registered", registered)
    nothing = {"id": 2, **dict.fromkeys(EVERY.names[1:])}
    segment = rows_of(tmp_path, Holds.SNAPSHOT, [VALUES, nothing], row=EVERY, key=("id",))
    found = messages_of(segment, sink("avro")).to_pylist()
    texts = dict(asked)
    assert texts.keys() == {"t-key", "t-value"}
    assert texts["t-value"] == avro_of_columns(EVERY, "laminae.totals")
    rows = []
    for message in found:
        key, value = split(message["key"]), split(message["value"])
        schemas = [json.loads(asked[framed.schema_id - 1][1]) for framed in (key, value)]
        assert fastavro.schemaless_reader(io.BytesIO(key.body), schemas[0]).keys() == {"id"}
        rows.append(fastavro.schemaless_reader(io.BytesIO(value.body), schemas[1]))
    assert rows == [VALUES, nothing]


def test_a_column_that_avro_has_no_name_for_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(avro, "_registered", lambda *_: 1)
    odd = pa.schema([("customer", pa.string()), ("a b", pa.int64())])
    with pytest.raises(NoAvroForm, match="a b"):
        messages_of(changes(tmp_path, CHANGES, row=odd), sink("avro"))


def test_rows_of_a_replaced_view_are_tombstones_under_the_keys_they_had(tmp_path):
    gone = replace(changes(tmp_path, [("-D", "a", 1)]), holds=Holds.TAKEN_BACK)
    row = pa.schema([("n", pa.int64()), ("most", pa.int64())])
    came = changes(tmp_path, [("+I", 5, 2)], row=row, key=("n",))
    found = pairs(messages_of(replace(came, former=gone), sink()))
    assert found == [({"customer": "a"}, None), ({"n": 5}, {"n": 5, "most": 2})]
    plain = sink("debezium-json", "changelog", **{"debezium.tombstones": "false"})
    events = pairs(messages_of(replace(came, former=gone), plain))
    assert [(key, event["op"], event["source"]["sequence"]) for key, event in events] == [
        ({"customer": "a"}, "d", 0),
        ({"n": 5}, "c", 1),
    ]
