"""Debezium's events in Avro, behind a registry's frame: the row of each, in the types that `connect.name` tells."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from laminae.catalog.model import WriterRecord
from laminae.codec.debezium.avro_schema import event_columns_of_avro, event_text
from laminae.codec.decoders import Decoder, DecoderTable
from laminae.codec.value_encodings import without_rules
from laminae.schema.external.writer_schema import bound
from laminae.schema.identity import assign_ids
from laminae.spark.formats.avro.decode import avro_records
from laminae.spark.formats.debezium.events import EVENT, MOVES, OLD
from laminae.spark.formats.protocol import ERROR, RAW_SCHEMA, ROW
from tests.support.avro_records import framed
from tests.support.registry_double import avro_field as field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars", "time_of_day")]


def semantic(kind: str, name: str, **more: object) -> list[object]:
    return ["null", {"type": kind, "connect.version": 1, "connect.name": name, **more}]


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [field("scale", "int"), field("value", "bytes")],
    "connect.name": "io.debezium.data.VariableScaleDecimal",
}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
DIGITS = {"scale": 2, "precision": 9, "logicalType": "decimal"}
MONEY = {"scale": 2, "precision": 64, "logicalType": "decimal", "connect.parameters": {"scale": "2"}}
KINDS: dict[str, tuple[object, Any, Any]] = {
    "name": (["null", "string"], "größe", "größe"),
    "price": (semantic("bytes", DECIMAL, **DIGITS), Decimal("-3.01"), Decimal("-3.01")),
    "cash": (semantic("bytes", DECIMAL, **MONEY), b"\xfe\xd3", Decimal("-3.01")),
    "free": (["null", VARIABLE], {"scale": 3, "value": b"\xff"}, "-0.001"),
    "born": (semantic("int", "io.debezium.time.Date"), -1, date(1969, 12, 31)),
    "at": (semantic("long", "io.debezium.time.MicroTime"), 3723000004, time(1, 2, 3, 4)),
    "done": (
        semantic("long", "org.apache.kafka.connect.data.Timestamp", logicalType="timestamp-millis"),
        datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        datetime(2023, 11, 14, 22, 13, 20, 123000),
    ),
    "seen": (
        semantic("string", "io.debezium.time.ZonedTimestamp"),
        "2023-11-14T22:13:20.123456Z",
        datetime(2023, 11, 14, 22, 13, 20, 123456),
    ),
    "ratio": (["null", "double"], float("inf"), float("inf")),
    "days": (
        ["null", {"type": "array", "items": semantic("int", "io.debezium.time.Date")}],
        [0, None],
        [date(1970, 1, 1), None],
    ),
}
ROW_SCHEMA = {
    "type": "record",
    "name": "Value",
    "fields": [field("id", "int"), *(field(n, k) for n, (k, *_) in KINDS.items())],
}
SOURCE = {"type": "record", "name": "Source", "fields": [field("lsn", ["null", "long"])]}
ENVELOPE = json.dumps(
    {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.public.things",
        "fields": [
            field("before", ["null", ROW_SCHEMA]),
            field("after", ["null", "Value"]),
            field("source", SOURCE),
            field("op", "string"),
        ],
    }
)
NOTHING = dict.fromkeys(KINDS)
WHOLE = {name: sent for name, (_, sent, _) in KINDS.items()}


def message(
    op: str, lsn: int | None, after: dict[str, Any] | None = None, before: dict[str, Any] | None = None
) -> bytes:
    return framed(7, ENVELOPE, {"before": before, "after": after, "source": {"lsn": lsn}, "op": op})


@pytest.fixture
def table() -> DecoderTable:
    text = event_text(ENVELOPE)
    told = event_columns_of_avro(text)
    current, _ = assign_ids(without_rules(told), 1)
    writer = WriterRecord(1, 7, 0, 1, True, None, text, bound(told, None, current))
    return DecoderTable((Decoder(1, current, 0),), current, writers=(writer,), event_order="source.lsn")


def read(spark: SparkSession, table: DecoderTable, *values: bytes | None) -> list[tuple[Any, str | None, Any]]:
    rows = [
        (None, value if value is None else bytearray(value), "p", i, 0, None, None, None)
        for i, value in enumerate(values)
    ]
    found = (
        avro_records(spark.createDataFrame(rows, RAW_SCHEMA + f", {MOVES} BOOLEAN"), table).orderBy("offset").collect()
    )
    return [
        (
            None if row[ROW] is None else row[ROW].asDict(recursive=True),
            row[ERROR],
            (row[EVENT].op, row[EVENT].sequence),
        )
        for row in found
    ]


def test_each_kind_of_event_has_its_row_and_place(spark, table):
    changed, snapshot, deleted, cut, told, tombstone = read(
        spark,
        table,
        message("u", 5, {"id": 1, **WHOLE}),
        message("r", 5, {"id": 1, **NOTHING}),
        message("d", 6, before={"id": 2, **NOTHING, "name": ""}),
        message("t", 7),
        message("m", 8),
        None,
    )
    expected = {name: value for name, (_, _, value) in KINDS.items()}
    assert changed == ({"id": 1, **expected}, None, ("u", 11))
    assert snapshot == ({"id": 1, **NOTHING}, None, ("r", 10))
    assert deleted == ({"id": 2, **NOTHING, "name": ""}, None, ("d", 13))
    assert [(error, event) for _, error, event in (cut, told, tombstone)] == [
        (None, ("t", 15)),
        (None, ("m", 17)),
        (None, ("tombstone", None)),
    ]


def test_events_that_cannot_be_taken_say_why(spark, table):
    found = read(
        spark,
        table,
        message("z", 5, {"id": 1, **NOTHING}),
        message("c", None, {"id": 1, **NOTHING}),
        message("c", 5),
        message("d", 5, {"id": 1, **NOTHING}),
        message("c", 5, {"id": 1, **NOTHING, "at": 86_400_000_000}),
        message("c", 5, {"id": 1, **NOTHING})[:-1],
    )
    assert [error for _, error, _ in found] == [
        "op is not one of c, r, u, d, t and m: z",
        "source.lsn, which orders events, is missing",
        "after, which contains the row, is missing",
        "before, which contains the key of the deleted row, is missing",
        "at is not a value of type TIME(6)",
        "its bytes do not match schema id 7",
    ]


def both_rows(spark: SparkSession, table: DecoderTable, *values: bytes | None) -> list[tuple[Any, Any, str | None]]:
    """The rows after and before each event, and why it is refused."""
    rows = [
        (None, value if value is None else bytearray(value), "p", i, 0, None, None, None)
        for i, value in enumerate(values)
    ]
    raw = spark.createDataFrame(rows, RAW_SCHEMA + f", {MOVES} BOOLEAN")
    found = avro_records(raw, replace(table, has_old_rows=True)).orderBy("offset").collect()
    return [
        (*(None if row[x] is None else row[x].asDict(recursive=True) for x in (ROW, OLD)), row[ERROR]) for row in found
    ]


def test_both_rows_of_an_event_about_a_table_without_a_key(spark, table):
    whole, bare = {"id": 1, **WHOLE}, {"id": 2, **NOTHING}
    expected = {"id": 1, **{name: value for name, (_, _, value) in KINDS.items()}}
    assert both_rows(
        spark,
        table,
        message("c", 5, whole),
        message("u", 6, bare, whole),
        message("u", 7, whole, bare),
        message("d", 8, before=whole),
        message("t", 9),
        message("m", 10),
        None,
    ) == [
        (expected, None, None),
        (bare, expected, None),
        (expected, bare, None),
        (None, expected, None),
        (None, None, None),
        (None, None, None),
        (None, None, None),
    ]


def test_event_about_a_table_without_a_key_is_taken_whole_or_not_at_all(spark, table):
    bare = {"id": 1, **NOTHING}
    beyond = {**bare, "at": 86_400_000_000}
    found = both_rows(
        spark,
        table,
        message("u", 5, bare),
        message("d", 6),
        message("u", 7, beyond, bare),
        message("u", 8, bare, beyond),
        message("c", 9, before=bare),
        message("u", 10, bare, bare)[:-1],
        message("u", None, bare, bare),
    )
    assert [(row, old) for row, old, _ in found] == [(None, None)] * len(found)
    missing = (
        "before is missing, and a source without a PRIMARY KEY identifies rows by their values: "
        "set REPLICA IDENTITY FULL on the upstream table, or declare the key of the source"
    )
    assert [error for *_, error in found] == [
        missing,
        missing,
        "at is not a value of type TIME(6)",
        "in before: at is not a value of type TIME(6)",
        "after, which contains the row, is missing",
        "its bytes do not match schema id 7",
        "source.lsn, which orders events, is missing",
    ]
