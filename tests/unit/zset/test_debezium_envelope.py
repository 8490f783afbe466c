"""The Debezium envelope: what is written, and everything that Connect may send."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from laminae.errors import InvalidChangeEvent, LaminaeError
from laminae.zset.debezium.envelope import CdcEnvelope, CdcSource, encode_many, read_event

SOURCE = CdcSource(name="laminardb", db="default", table="orders", sequence=42)
ROW, OLD = {"id": 1, "amount": 100}, {"id": 1, "amount": 90}
TIME = 1706140800000


def test_cdc_envelope_debezium_compatible():
    envelope = CdcEnvelope.insert(ROW, SOURCE, TIME)
    text = envelope.to_json()
    assert '"op":"c"' in text
    assert '"after"' in text
    assert '"before"' not in text
    assert json.loads(text) == {
        "after": ROW,
        "source": {"name": "laminardb", "db": "default", "table": "orders", "sequence": 42},
        "op": "c",
        "ts_ms": TIME,
    }


@pytest.mark.parametrize(
    ("envelope", "op", "images"),
    [
        (CdcEnvelope.insert(ROW, SOURCE, TIME), "c", {"after": ROW}),
        (CdcEnvelope.update(OLD, ROW, SOURCE, TIME), "u", {"before": OLD, "after": ROW}),
        (CdcEnvelope.update(None, ROW, SOURCE, TIME), "u", {"after": ROW}),
        (CdcEnvelope.delete(OLD, SOURCE, TIME), "d", {"before": OLD}),
        (CdcEnvelope.read(ROW, SOURCE, TIME), "r", {"after": ROW}),
    ],
)
def test_every_operation_has_its_images_and_comes_back(envelope, op, images):
    found = json.loads(envelope.to_json())
    assert found["op"] == op
    assert {name: found[name] for name in ("before", "after") if name in found} == images
    assert CdcEnvelope.from_json(envelope.to_json()) == envelope


def test_missing_images_are_written_as_null_on_demand():
    assert '"before":null' in CdcEnvelope.insert(ROW, SOURCE, TIME).to_json(nulls="explicit")
    assert '"after":null' in CdcEnvelope.delete(ROW, SOURCE, TIME).to_json(nulls="explicit")


def test_null_columns_are_always_written():
    assert '"after":{"id":1,"note":null}' in CdcEnvelope.insert({"id": 1, "note": None}, SOURCE, TIME).to_json()


def test_times_transaction_and_what_else_the_source_says_are_kept():
    source = CdcSource("pg", "shop", "orders", '["1","2"]', {"lsn": 33, "snapshot": "false"})
    envelope = CdcEnvelope("u", TIME, source, OLD, ROW, TIME * 1000, TIME * 10**6, {"id": "7", "total_order": 1})
    assert CdcEnvelope.from_json(envelope.to_json()) == envelope
    assert CdcEnvelope.from_json(envelope.to_json()).source.extra["lsn"] == 33


def test_values_that_json_has_no_word_for_are_not_lost():
    row = {
        "decimal": Decimal("0.00000001"),
        "bytes": b"\x00\xff",
        "at": datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "day": date(2024, 1, 2),
        "nan": math.nan,
        "list": [math.inf, -math.inf, {"x": Decimal("1.50")}],
    }
    assert json.loads(CdcEnvelope.insert(row, SOURCE, TIME).to_json())["after"] == {
        "decimal": "0.00000001",
        "bytes": "AP8=",
        "at": "2024-01-02T03:04:05.000006Z",
        "day": "2024-01-02",
        "nan": "NaN",
        "list": ["Infinity", "-Infinity", {"x": "1.50"}],
    }


def test_many_are_written_as_one_by_one():
    other = CdcSource("b", "default", "t", 1)
    events = [CdcEnvelope.insert({"id": i}, SOURCE if i < 2 else other, TIME) for i in range(4)]
    assert [text.decode() for text in encode_many(events)] == [event.to_json() for event in events]


def test_the_schema_wrapper_is_taken_off():
    payload = json.loads(CdcEnvelope.update(OLD, ROW, SOURCE, TIME).to_json())
    wrapped = json.dumps({"schema": {"type": "struct", "fields": []}, "payload": payload})
    assert CdcEnvelope.from_json(wrapped) == CdcEnvelope.update(OLD, ROW, SOURCE, TIME)


@pytest.mark.parametrize("value", [None, b"", "  ", b"null", b'{"schema":null,"payload":null}'])
def test_a_tombstone_is_no_event(value):
    assert read_event(value) is None
    if value is not None:
        with pytest.raises(InvalidChangeEvent, match="tombstone"):
            CdcEnvelope.from_json(value)


@pytest.mark.parametrize(
    ("text", "op"),
    [
        (b'{"op":"t","source":{"table":"orders"},"ts_ms":5}', "t"),
        (b'{"op":"m","source":{},"ts_ms":5,"message":{"prefix":"p","content":"AA=="}}', "m"),
        (b'{"op":"d","ts_ms":5}', "d"),
    ],
)
def test_truncates_messages_and_deletes_without_before_are_read_and_change_no_row_by_themselves(text, op):
    event = CdcEnvelope.from_json(text)
    assert event.op == op
    assert event.changes() == ()


def test_an_event_becomes_weighted_rows():
    def told(event):
        return [(record.operation.value, record.data, record.weight) for record in event.changes()]

    assert told(CdcEnvelope.insert(ROW, SOURCE, TIME)) == [("+I", ROW, 1)]
    assert told(CdcEnvelope.read(ROW, SOURCE, TIME)) == [("+I", ROW, 1)]
    assert told(CdcEnvelope.update(OLD, ROW, SOURCE, TIME)) == [("-U", OLD, -1), ("+U", ROW, 1)]
    assert told(CdcEnvelope.update(None, ROW, SOURCE, TIME)) == [("+U", ROW, 1)]
    assert told(CdcEnvelope.delete(OLD, SOURCE, TIME)) == [("-D", OLD, -1)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"op":"x","after":{},"ts_ms":1}', "at op: 'x' is not an operation"),
        (b'{"after":{},"ts_ms":1}', "at op: it is missing"),
        (b'{"op":7}', "at op: 7 is not text"),
        (b'{"op":"c"', "not JSON"),
        (b'{"op":"c"} {}', "not JSON"),
        (b"[1]", "a list where an event was expected"),
        (b'{"schema":{},"payload":3}', "an? int where an event was expected"),
        (b'{"op":"c","ts_ms":1}', "at after: a row was created but is missing"),
        (b'{"op":"u","before":{},"after":null}', "at after"),
        (b'{"op":"c","after":[1]}', "at after: a list where an object"),
        (b'{"op":"c","after":{},"ts_ms":"soon"}', "at ts_ms: 'soon' is not an integer"),
        (b'{"op":"c","after":{},"source":"pg"}', "at source"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_a_code_and_a_place(text, told):
    with pytest.raises(InvalidChangeEvent, match=told) as caught:
        CdcEnvelope.from_json(text)
    assert isinstance(caught.value, LaminaeError)
    assert caught.value.code == "INVALID_CHANGE_EVENT"


def test_no_digit_of_a_number_is_lost():
    numbers = b'"i":123456789012345678901234567890,"d":0.12345678901234567890,"f":0.1,"l":1.5e3'
    text = b'{"op":"c","ts_ms":1,"after":{' + numbers + b"}}"
    row = CdcEnvelope.from_json(text).after
    assert row == {"i": 123456789012345678901234567890, "d": Decimal("0.12345678901234567890"), "f": 0.1, "l": 1500.0}
    assert isinstance(row["f"], float)


def test_an_unknown_operation_cannot_be_made_either():
    with pytest.raises(InvalidChangeEvent, match="'z'"):
        CdcEnvelope("z", TIME, SOURCE)


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="object"):
        CdcEnvelope.insert({"a": object()}, SOURCE, TIME).to_json()
