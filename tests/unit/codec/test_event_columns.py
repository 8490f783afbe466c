"""The columns that the schemas of Debezium's events tell, and the rules by which their values are written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from laminae.codec.debezium.avro_schema import event_columns_of_avro, event_text, has_path
from laminae.codec.debezium.connect_schema import event_columns
from laminae.codec.value_encodings import as_sent, by_looks, fitted, has_rules, rule_of, with_rule, without_rules
from laminae.errors import NoColumnForm
from laminae.schema.avro import parse_avro
from tests.support.build import col
from tests.support.debezium_events import connect_field as field

DECIMAL = "org.apache.kafka.connect.data.Decimal"
NTZ, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")


def told(*fields: dict[str, object]) -> pa.Schema | None:
    row = {"type": "struct", "fields": list(fields)}
    return event_columns({"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}]})


@pytest.mark.parametrize(
    ("sent", "kind", "rule"),
    [
        (field("a", "int16"), pa.int16(), None),
        (field("a", "string", "io.debezium.data.Json"), pa.string(), None),
        (field("a", "bytes", "io.debezium.data.Bits"), pa.binary(), None),
        (field("a", "int64", "io.debezium.time.MicroDuration"), pa.int64(), None),
        (field("a", "string", "io.debezium.time.ZonedTime"), pa.string(), None),
        (field("a", "double"), pa.float64(), ("number", 0)),
        (field("a", "int32", "io.debezium.time.Date"), pa.date32(), ("days", 0)),
        (field("a", "int32", "org.apache.kafka.connect.data.Time"), pa.time64("ns"), ("time_millis", 0)),
        (field("a", "int64", "io.debezium.time.NanoTimestamp"), NTZ, ("nanos", 0)),
        (field("a", "string", "io.debezium.time.ZonedTimestamp"), INSTANT, ("zoned", 0)),
        (field("a", "bytes", DECIMAL, parameters={"scale": "3"}), pa.decimal128(38, 3), ("decimal", 3)),
        (field("a", "bytes", DECIMAL, parameters={"scale": "50"}), pa.string(), ("decimal", 50)),
        (
            field("a", "bytes", DECIMAL, parameters={"scale": "2", "connect.decimal.precision": "9"}),
            pa.decimal128(9, 2),
            ("decimal", 2),
        ),
        (field("a", "map", keys={"type": "string"}, values={"type": "int32"}), pa.map_(pa.string(), pa.int32()), None),
        (field("a", "something new"), pa.string(), None),
    ],
)
def test_name_of_a_semantic_type_says_which_column_holds_it(sent, kind, rule):
    (found,) = told(sent)
    assert (found.type, rule_of(found), found.nullable) == (kind, rule, True)


def test_schema_without_a_row_tells_no_columns():
    assert event_columns({"type": "struct"}) is None
    assert event_columns(None) is None
    assert event_columns({"type": "struct", "fields": [field("after", "string")]}) is None


def test_values_are_read_as_they_are_sent_and_a_source_has_no_rules():
    days = {"type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}, "field": "days"}
    found = told(field("id", "int32"), field("at", "int64", "io.debezium.time.MicroTime"), days)
    assert as_sent(found).types == [pa.int32(), pa.int64(), pa.list_(pa.field("element", pa.int32()))]
    assert without_rules(found).types == found.types
    assert not has_rules(without_rules(found))
    plain = pa.schema([col("a", "int", id=1)])
    assert as_sent(plain) is plain


def test_default_of_a_column_is_none_of_what_is_read():
    ruled = by_looks(pa.schema([col("a", "date", id=7, default='"2024-01-01"'), col("b", "int", default="1")]), "", "")
    first, second = as_sent(ruled)
    assert (first.metadata, first.type) == ({b"laminae:id": b"7"}, pa.string())
    assert second.metadata == {b"laminae:default": b"1"}


@pytest.mark.parametrize(
    ("sent", "mine", "kind", "rule"),
    [
        # Related types stay: the column becomes wider, or takes what fits.
        (col("a", "bigint"), pa.int32(), pa.int64(), None),
        (with_rule(col("a", NTZ), "micros"), INSTANT, INSTANT, ("micros", 0)),
        (with_rule(col("a"), "variable_decimal"), pa.decimal128(9, 2), pa.decimal128(9, 2), ("variable_decimal", 0)),
        (with_rule(col("a", pa.decimal128(9, 2)), "decimal:2"), pa.float64(), pa.decimal128(9, 2), ("decimal", 2)),
        (with_rule(col("a", pa.decimal128(9, 2)), "decimal:2"), pa.string(), pa.string(), ("decimal", 2)),
        (col("a", "string"), pa.decimal128(9, 2), pa.decimal128(9, 2), ("number", 0)),
        (col("a", "int"), pa.string(), pa.string(), ("text", 0)),
        (col("a", "int"), pa.decimal128(9, 2), pa.decimal128(9, 2), ("number", 0)),
        (with_rule(col("a", "double"), "number"), pa.string(), pa.string(), ("text", 0)),
        # No value of theirs can be one of these.
        (with_rule(col("a", "date"), "days"), pa.int64(), pa.date32(), ("days", 0)),
        (col("a", "string"), pa.int64(), pa.string(), None),
    ],
)  # fmt: skip
def test_column_of_another_type_is_taken_where_values_can_become_such(sent, mine, kind, rule):
    found = fitted(sent, mine)
    assert (found.type, rule_of(found)) == (kind, rule)


def avro_envelope(*fields: dict[str, object]) -> str:
    row = {"type": "record", "name": "Value", "fields": list(fields)}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    parts = [("before", ["null", row]), ("after", ["null", "Value"]), ("source", source), ("op", "string")]
    return json.dumps({"type": "record", "name": "Envelope", "fields": [{"name": n, "type": t} for n, t in parts]})


def avro(name: str, kind: str, semantic: str, **more: object) -> dict[str, object]:
    return {"name": name, "type": ["null", {"type": kind, "connect.name": semantic, **more}], "default": None}


def test_columns_of_an_envelope_in_avro_are_those_of_its_row():
    digits = {"connect.parameters": {"scale": "2", "connect.decimal.precision": "9"}, "precision": 9, "scale": 2}
    unknown = {"connect.parameters": {"scale": "2"}, "precision": 64, "scale": 2}
    day = {"type": "int", "connect.name": "io.debezium.time.Date"}
    text = event_text(
        avro_envelope(
            {"name": "id", "type": "int", "default": 0},
            avro("ts", "long", "io.debezium.time.MicroTimestamp"),
            avro("day", "int", "org.apache.kafka.connect.data.Date", logicalType="date"),
            avro("price", "bytes", DECIMAL, logicalType="decimal", **digits),
            avro("cash", "bytes", DECIMAL, logicalType="decimal", **unknown),
            {"name": "days", "type": {"type": "array", "items": day}},
        )
    )
    found = event_columns_of_avro(text)
    assert [(each.name, rule_of(each)) for each in found] == [
        ("id", None),
        ("ts", ("micros", 0)),
        ("day", ("days", 0)),
        ("price", None),
        ("cash", ("decimal", 2)),
        ("days", None),
    ]
    assert found.types[1:5] == [NTZ, pa.date32(), pa.decimal128(9, 2), pa.decimal128(38, 2)]
    assert rule_of(found.field("days").type.value_field) == ("days", 0)
    assert all(each.nullable for each in found)
    assert (has_path(parse_avro(text), "source.lsn"), has_path(parse_avro(text), "source.pos")) == (True, False)


def test_record_that_is_no_envelope_is_refused():
    with pytest.raises(NoColumnForm, match="not a Debezium envelope"):
        event_columns_of_avro(json.dumps({"type": "record", "name": "A", "fields": [{"name": "after", "type": "int"}]}))


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (field("a", "int32", default=5), "5"),
        (field("a", "string", default="x"), '"x"'),
        (field("a", "double", default="NaN"), '"NaN"'),
        (field("a", "bytes", default="AP8="), '"AP8="'),
        (field("a", "int32", "io.debezium.time.Date", default=-1), '"1969-12-31"'),
        (field("a", "int64", "io.debezium.time.MicroTime", default=1_000_001), '"00:00:01.000001"'),
        (field("a", "int64", "io.debezium.time.Timestamp", default=1), '"1970-01-01T00:00:00.001000"'),
        (field("a", "bytes", DECIMAL, parameters={"scale": "2"}, default="/tM="), '"-3.01"'),
        (field("a", "string", "io.debezium.time.ZonedTimestamp", default="infinity"), ""),
        (field("a", "int32", default=None), ""),
    ],
)
def test_default_is_written_as_a_value_is(sent, kept):
    (found,) = told(sent)
    assert (found.metadata or {}).get(b"laminae:default", b"").decode() == kept


def test_default_in_avro_is_that_of_the_column():
    day = avro("day", "int", "io.debezium.time.Date")
    text = avro_envelope(
        {"name": "id", "type": "int"}, {"name": "n", "type": "int", "default": 5}, {**day, "default": 1}
    )
    found = event_columns_of_avro(event_text(text))
    assert [(each.metadata or {}).get(b"laminae:default") for each in found] == [None, b"5", b'"1970-01-02"']
