"""A registry that goes away while records come: known ids flow on, unknown ones are held, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.engine.writer_schemas.registry import client_of
from laminae.registry import RegistryClient, RegistrySettings
from tests.services.fixtures import said_if_missing
from tests.services.processes import free_port
from tests.services.registry import running_registry
from tests.support.avro_records import register
from tests.support.registry_double import avro_field as field
from tests.support.topics import new_topic
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars")]

WAIT_SECONDS = 240.0
ID, NOTE = field("id"), field("note", ["null", "string"], default=None)
SOURCE = """CREATE SOURCE orders (id BIGINT NOT NULL) WITH (connector = 'kafka', format = 'avro', topic = '{topic}',
  kafka.bootstrap.servers = '{servers}', registry = '{registry}', compatibility = 'BACKWARD')"""


def test_known_ids_flow_on_and_unknown_ones_are_held_until_the_registry_is_back(
    db: lm.Database, kafka_address: str, tmp_path: Path
) -> None:
    topic, port = new_topic(kafka_address), free_port()

    def has(rows: int, state: str) -> bool:
        (status,) = pipeline.status()
        return (status.rows, status.state) == (rows, state)

    with said_if_missing(), running_registry(tmp_path / "registry", port) as address:
        client = RegistryClient(RegistrySettings(address, "orders"))
        known = register(client, f"{topic.name}-value", ID)
        new = register(client, f"{topic.name}-value", ID, NOTE)
        db.sql(SOURCE.format(topic=topic.name, servers=kafka_address, registry=address))
        pipeline = db.start("100 milliseconds")
        topic.send(known.records([{"id": 1}]))
        until(lambda: has(1, "running"), WAIT_SECONDS, "the first record is read")
        (before,) = pipeline.status()
    try:
        topic.send([*new.records([{"id": 2, "note": "two"}, {"id": 3, "note": None}]), *known.records([{"id": 4}])])
        until(lambda: has(2, "waiting"), WAIT_SECONDS, "what is known flows on")
        topic.send(known.records([{"id": 5}]))
        until(lambda: has(3, "waiting"), WAIT_SECONDS, "what is known still flows on")
        assert "REGISTRY_UNAVAILABLE" in str(pipeline.status()[0].problem)
        reasons = db.sql("SELECT DISTINCT reason FROM laminar_catalog.dead_letters").fetchall()
        assert reasons == [(f"held until the registry answers: schema id {new.schema_id}",)]
        with running_registry(tmp_path / "registry", port):
            until(lambda: has(5, "running"), WAIT_SECONDS, "everything is read")
        (after,) = pipeline.status()
        assert (after.run_id, after.version) == (before.run_id, 2)
    finally:
        pipeline.stop()
    expected = [(1, None), (2, "two"), (3, None), (4, None), (5, None)]
    assert db.sql("SELECT id, note FROM orders ORDER BY id").fetchall() == expected


def test_a_known_id_that_comes_up_again_flows_on_while_the_registry_is_away(
    db: lm.Database, kafka_address: str, tmp_path: Path
) -> None:
    """A new id has the epochs behind it planned without those that its own epoch lacks; they need no registry."""
    topic, port = new_topic(kafka_address), free_port()
    with said_if_missing(), running_registry(tmp_path / "registry", port) as address:
        client = RegistryClient(RegistrySettings(address, "orders"))
        one = register(client, f"{topic.name}-value", ID)
        two = register(client, f"{topic.name}-value", ID, NOTE)
        db.sql(SOURCE.format(topic=topic.name, servers=kafka_address, registry=address))
        topic.send(one.records([{"id": 1}]))
        db.run()
        # As another process would: nothing is known but what the catalog says.
        client_of.cache_clear()
        topic.send(two.records([{"id": 2, "note": "two"}]))
        pipeline = db.start("100 milliseconds")
        pipeline.process_all_available()
    try:
        topic.send(one.records([{"id": 3}]))
        pipeline.process_all_available()
    finally:
        pipeline.stop()
    assert db.sql("SELECT id, note FROM orders ORDER BY id").fetchall() == [(1, None), (2, "two"), (3, None)]
    assert db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall() == []
