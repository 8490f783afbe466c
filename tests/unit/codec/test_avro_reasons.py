"""Why bytes are no record of their schema: the field at which reading ends, and what is wrong there."""

from __future__ import annotations

import re

import pytest

from laminae.codec.avro.errors import can_tell, why_unreadable
from laminae.codec.confluent import HEADER
from tests.support.avro_records import framed, record_schema
from tests.support.registry_double import avro_field as field

SCHEMA = record_schema(
    field("id"),
    field("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    field("note", ["null", "string"]),
    field("again", ["null", "Kind"]),
)
BODY = framed(1, SCHEMA, {"id": 5, "kind": "B", "note": "words", "again": "A"})[HEADER.size :]


def test_fastavro_is_what_tells() -> None:
    assert can_tell()


def test_a_record_that_can_be_read_has_no_reason() -> None:
    assert why_unreadable(SCHEMA, BODY) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "field id, from byte 0 of the record on: the bytes end within it"),
        (BODY[:-4], "field note, from byte 2 of the record on: the bytes end within it"),
        (BODY[:1] + b"\x08" + BODY[2:], "field kind, from byte 1 .*: it names a branch or a symbol"),
        (BODY[:2] + b"\x08" + BODY[3:], "field note, from byte 2 .*: it names a branch or a symbol"),
        (BODY[:4] + b"\xff" + BODY[5:], "field note, from byte 2 .*: it holds text that is not UTF-8"),
        (BODY + b"abc", "3 bytes follow the record"),
    ],
)
def test_the_field_that_cannot_be_read_is_named(body: bytes, reason: str) -> None:
    found = why_unreadable(SCHEMA, body)
    assert found is not None
    assert re.match(reason, found), found


@pytest.mark.parametrize("item", ["null", {"type": "record", "name": "Empty", "fields": []}])
def test_bytes_that_could_stand_for_endless_items_are_not_tried(item: object) -> None:
    schema = record_schema(field("items", {"type": "array", "items": item}))
    assert why_unreadable(schema, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f") is None
