"""Avro from a real broker with schemas from a real registry: evolution while the stream runs, every record once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from laminae.engine import faults
from laminae.registry import RegistryClient, RegistrySettings
from laminae.registry.transport import HttpTransport, Request
from tests.support.avro_records import Written, framed, record_schema, register
from tests.support.crashing import EpochCrashError, crash_at
from tests.support.registry_double import avro_field as field
from tests.support.topics import Topic, new_topic
from tests.support.waiting import until

if TYPE_CHECKING:
    import laminae as lm

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars")]

WAIT_SECONDS = 120.0
ID, AMOUNT = field("id"), field("amount", "int")
NOTE = field("note", ["null", "string"], default=None)


@pytest.fixture
def topic(kafka_address: str) -> Topic:
    return new_topic(kafka_address, partitions=2)


@pytest.fixture
def registry(registry_address: str) -> RegistryClient:
    return RegistryClient(RegistrySettings(registry_address, "orders"))


def create(db: lm.Database, topic: Topic, registry: str, columns: str = "", **options: str) -> None:
    given = {
        "connector": "kafka",
        "format": "avro",
        "topic": topic.name,
        "kafka.bootstrap.servers": topic.address,
        "registry": registry,
        "compatibility": "BACKWARD",
        **options,
    }
    told = ", ".join(f"{option} = '{value}'" for option, value in given.items())
    db.sql(f"CREATE SOURCE orders {columns} WITH ({told})")


def test_live_evolution_kafka_avro(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    """Seed 000: the producer goes from v1 to v2 to v3 while the stream runs; v4 is refused, and the stream goes on."""
    subject = f"{topic.name}-value"
    first = register(registry, subject, ID, AMOUNT)
    create(db, topic, registry_address)
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(id) AS ids FROM orders")
    pipeline = db.start("100 milliseconds")
    sent: dict[int, tuple[int, str | None]] = {}

    def send(schema: Written, row: dict[str, object], partition: int) -> None:
        topic.send(schema.records([row]), partition)
        amount, note = row.get("total", row.get("amount")), row.get("note")
        sent[int(str(row["id"]))] = (int(str(amount)), None if note is None else str(note))

    try:
        send(first, {"id": 1, "amount": 10}, 0)
        pipeline.process_all_available()
        (before,) = pipeline.status()
        second = register(registry, subject, ID, field("amount", "long"), NOTE)
        send(second, {"id": 2, "amount": 2**40, "note": "two"}, 1)
        send(first, {"id": 3, "amount": 30}, 0)
        pipeline.process_all_available()
        assert db.version("orders") == 2
        third = register(registry, subject, ID, field("total", "long", aliases=["amount"]), NOTE)
        for number, schema in enumerate((third, first, second, third, second), start=4):
            name = "total" if schema is third else "amount"
            row: dict[str, object] = {"id": number, name: number * 10}
            send(schema, row if schema is first else {**row, "note": f"n{number}"}, number % 2)
        pipeline.process_all_available()
        assert db.version("orders") == 3
        fourth = register(registry, subject, ID, field("total", "string"), NOTE)
        topic.send(fourth.records([{"id": 100, "total": "many", "note": None}]))
        send(third, {"id": 9, "total": 90, "note": None}, 0)
        pipeline.process_all_available()
        (after,) = pipeline.status()
        assert (after.state, after.run_id, after.version) == ("running", before.run_id, 3)
    finally:
        pipeline.stop()
    found = db.sql("SELECT id, total, note FROM orders ORDER BY id").fetchall()
    assert found == [(number, *values) for number, values in sorted(sent.items())]
    assert db.sql("SELECT n, ids FROM totals").fetchall() == [(len(sent), sum(sent))]
    ((reason, schema_id),) = db.sql("SELECT reason, version FROM laminar_catalog.dead_letters").fetchall()
    assert "total is BIGINT here" in reason
    assert schema_id == fourth.schema_id
    history = [(row.change_type, row.column_name, row.trigger, row.schema_id) for row in db.history("orders")[2:]]
    assert history == [
        ("TypeWidened", "amount", "Registry", second.schema_id),
        ("ColumnAdded", "note", "Registry", second.schema_id),
        ("ColumnRenamed", "total", "Registry", third.schema_id),
    ]


def test_what_was_bound_is_read_again_without_a_registry(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = register(registry, f"{topic.name}-value", ID, AMOUNT)
    create(db, topic, registry_address)
    topic.send(schema.records([{"id": 1, "amount": 1}]))
    db.run()
    monkeypatch.setattr("laminae.engine.writer_schemas.binding.registered", None)
    topic.send(schema.records([{"id": 2, "amount": 2}]))
    db.run()
    assert db.sql("SELECT id, amount FROM orders ORDER BY id").fetchall() == [(1, 1), (2, 2)]


def test_an_id_that_is_not_under_the_subject_is_a_dead_letter_until_it_is(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    subject = f"{topic.name}-value"
    known = register(registry, subject, ID, AMOUNT)
    create(db, topic, registry_address)
    unique = field(f"x{uuid4().hex}", ["null", "long"], default=None)
    other = register(registry, f"elsewhere-{uuid4()}", ID, AMOUNT, unique)
    topic.send([*known.records([{"id": 1, "amount": 1}]), *other.records([{"id": 2, "amount": 2, unique["name"]: 5}])])
    db.run()
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert f"under subject {subject}" in reason
    assert register(registry, subject, ID, AMOUNT, unique).schema_id == other.schema_id
    done = db.replay_dead_letters("orders")
    assert (done.rows, done.refused) == (1, 0)
    assert sorted(db.sql("SELECT * FROM orders").fetchall()) == [(1, 1, None), (2, 2, 5)]


def test_records_that_lack_a_column_which_none_may_lack_are_dead_letters(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    """Spark knows of every such record that it has no row, and the plan is made ahead, when the column is added."""
    schema = register(registry, f"{topic.name}-value", ID)
    create(db, topic, registry_address, compatibility="NONE")
    pipeline = db.start("100 milliseconds")
    topic.send(schema.records([{"id": 1}]))
    pipeline.process_all_available()
    # A name that raw records have as well.
    db.sql("ALTER SOURCE orders ADD COLUMN offset BIGINT NOT NULL")
    topic.send(schema.records([{"id": 2}, {"id": 3}]))
    pipeline.process_all_available()
    pipeline.stop()
    assert db.sql("SELECT rows, dead_letters FROM laminar_catalog.epochs ORDER BY epoch").fetchall()[-1] == (0, 2)
    reasons = db.sql("SELECT DISTINCT reason FROM laminar_catalog.dead_letters").fetchall()
    assert reasons == [("offset is NOT NULL, has no default, and the older version does not have it",)]


def test_declared_columns_that_come_later_are_filled_from_then_on(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    schema = register(registry, f"{topic.name}-value", ID, AMOUNT)
    create(db, topic, registry_address, "(id BIGINT)")
    topic.send(schema.records([{"id": 1, "amount": 10}]))
    db.run()
    db.sql("ALTER SOURCE orders ADD COLUMN amount BIGINT")
    topic.send(schema.records([{"id": 2, "amount": 20}]))
    db.run()
    assert db.sql("SELECT id, amount FROM orders ORDER BY id").fetchall() == [(1, None), (2, 20)]


def test_other_kinds_of_schemas_and_unframed_records_are_dead_letters(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    schema = register(registry, f"{topic.name}-value", ID)
    create(db, topic, registry_address)
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "title": str(uuid4()), "type": "object"}
    body = {"schema": json.dumps(draft), "schemaType": "JSON"}
    transport = HttpTransport(RegistrySettings(registry_address, "orders"))
    answer = transport(Request("POST", f"/subjects/{topic.name}-json/versions", body))
    json_id = json.loads(answer.body)["id"]
    frame = framed(json_id, record_schema(ID), {"id": 1})
    topic.send([b'{"id": 1}', None, frame, *schema.records([{"id": 5}])])
    db.run()
    found = db.sql("SELECT reason FROM laminar_catalog.dead_letters ORDER BY offset").fetchall()
    expected = ("not in the Confluent wire format", "has no value", "is JSON Schema, which is not supported")
    assert len(found) == len(expected)
    for (reason,), told in zip(found, expected, strict=True):
        assert told in reason
    assert db.sql("SELECT id FROM orders").fetchall() == [(5,)]


def test_bytes_that_are_no_record_say_where_reading_ended(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    schema = register(registry, f"{topic.name}-value", ID, AMOUNT, NOTE)
    create(db, topic, registry_address)
    (good,) = schema.records([{"id": 1, "amount": 10, "note": "words"}])
    topic.send([good, good[:-2], good + b"more"])
    db.run()
    found = db.sql("SELECT reason, version FROM laminar_catalog.dead_letters ORDER BY offset").fetchall()
    told = f"its bytes do not match schema id {schema.schema_id}: "
    assert found == [
        (f"{told}field note, from byte 2 of the record on: the bytes end within it", schema.schema_id),
        (f"{told}4 bytes follow the record", schema.schema_id),
    ]
    assert db.sql("SELECT id FROM orders").fetchall() == [(1,)]


def test_a_schema_is_followed_before_any_record_has_it(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str
) -> None:
    subject = f"{topic.name}-value"
    first = register(registry, subject, ID, AMOUNT)
    create(db, topic, registry_address, registry_poll="100 milliseconds")
    topic.send(first.records([{"id": 1, "amount": 1}]))
    pipeline = db.start("100 milliseconds")
    try:
        pipeline.process_all_available()
        second = register(registry, subject, ID, AMOUNT, NOTE)
        until(lambda: db.version("orders") == 2, WAIT_SECONDS, "the new schema is taken")
        topic.send([*second.records([{"id": 2, "amount": 2, "note": "two"}]), *first.records([{"id": 3, "amount": 3}])])
        pipeline.process_all_available()
        (status,) = pipeline.status()
        assert (status.state, status.rows, status.problem) == ("running", 3, None)
    finally:
        pipeline.stop()
    assert db.sql("SELECT id, note FROM orders ORDER BY id").fetchall() == [(1, None), (2, "two"), (3, None)]
    assert [(row.trigger, row.schema_id) for row in db.history("orders")[2:]] == [("Registry", second.schema_id)]


@pytest.mark.parametrize("point", [*faults.WRITER_POINTS, "schema evolved", "epoch committed"])
def test_a_crash_in_the_epoch_that_meets_a_schema_id_changes_nothing(
    db: lm.Database, topic: Topic, registry: RegistryClient, registry_address: str, point: str
) -> None:
    subject = f"{topic.name}-value"
    first = register(registry, subject, ID, AMOUNT)
    create(db, topic, registry_address)
    topic.send(first.records([{"id": 1, "amount": 1}]), 0)
    db.run()
    second = register(registry, subject, ID, AMOUNT, NOTE)
    topic.send(second.records([{"id": 2, "amount": 2, "note": "two"}]), 0)
    with crash_at(point, EpochCrashError):
        db.run()
    topic.send(first.records([{"id": 3, "amount": 3}]), 1)
    db.run()
    assert db.version("orders") == 2
    assert db.sql("SELECT id, amount, note FROM orders ORDER BY id").fetchall() == [
        (1, 1, None),
        (2, 2, "two"),
        (3, 3, None),
    ]
