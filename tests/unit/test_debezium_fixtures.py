"""The captured events of a real connector: the same changes in each form, and every Avro message with its schema."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from laminae.codec.confluent import split
from tests.support.debezium import AVRO, FORMS, JSON, JSON_WITH_SCHEMA
from tests.support.debezium_cases import CASES
from tests.support.debezium_fixtures import Message, avro_schemas, case, cases

fastavro = pytest.importorskip("fastavro")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_messages_of_each_case(form: str) -> None:
    assert cases(form) == sorted(["snapshot", *CASES])
    for name in cases(form):
        assert operations(form, name) == operations(JSON, name)


def operations(form: str, name: str) -> Counter[tuple[str, str | None]]:
    """How often each table has each operation: which partition a key is in depends on how it is written."""
    return Counter((message.table, operation(form, message)) for message in case(form, name).messages)


def operation(form: str, message: Message) -> str | None:
    """None for a tombstone."""
    if message.value is None:
        return None
    if form == AVRO:
        framed = split(message.value)
        event = fastavro.schemaless_reader(io.BytesIO(framed.body), avro_schemas()[framed.schema_id])
    else:
        event = json.loads(message.value)
    return str((event["payload"] if form == JSON_WITH_SCHEMA else event)["op"])
