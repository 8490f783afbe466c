"""A registry and a broker that go away while records keep coming, some of an id that nobody has met."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from laminae.registry import RegistryClient, RegistrySettings
from tests.services.fixtures import said_if_missing
from tests.services.kafka import running_kafka
from tests.services.processes import free_port
from tests.services.registry import running_registry
from tests.support.avro_records import Written, register
from tests.support.load import Load
from tests.support.registry_double import avro_field as field
from tests.support.topics import new_topic
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    import laminae as lm
    from laminae.spark.driver.pipeline import Pipeline
    from tests.support.topics import Topic

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars")]

WAIT_SECONDS = 240.0
PARTITIONS = 2
ID, NOTE = field("id"), field("note", ["null", "string"], default=None)


def create(db: lm.Database, topic: Topic, registry: str) -> None:
    db.sql(
        f"""CREATE SOURCE orders (id BIGINT NOT NULL) WITH (connector = 'kafka', format = 'avro',
              topic = '{topic.name}', kafka.bootstrap.servers = '{topic.address}', registry = '{registry}',
              compatibility = 'BACKWARD')"""
    )
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(id) AS ids FROM orders")


def record(schemas: list[Written], number: int) -> bytes:
    """Of the schemas that are there by then in turn; those that have a note say which record they are."""
    (made,) = schemas[number % len(schemas)].records([{"id": number, "note": f"n{number}"}])
    return made


def rows(pipeline: Pipeline) -> int:
    return pipeline.status()[0].rows


def assert_read_once(db: lm.Database, sent: int) -> None:
    assert [number for (number,) in db.sql("SELECT id FROM orders ORDER BY id").fetchall()] == list(range(sent))
    assert db.sql("SELECT id FROM orders WHERE note <> concat('n', id)").fetchall() == []
    assert db.sql("SELECT n, ids FROM totals").fetchall() == [(sent, sum(range(sent)))]
    waiting = db.sql("SELECT reason FROM laminar_catalog.dead_letters WHERE replayed_by IS NULL").fetchall()
    assert waiting == []
    assert db.version("orders") == 2


def test_a_registry_that_goes_away_under_load_loses_and_doubles_nothing(
    db: lm.Database, kafka_address: str, tmp_path: Path
) -> None:
    topic, port = new_topic(kafka_address, PARTITIONS), free_port()
    schemas: list[Written] = []
    with ExitStack() as stack:
        with said_if_missing(), running_registry(tmp_path / "registry", port) as address:
            client = RegistryClient(RegistrySettings(address, "orders"))
            schemas.append(register(client, f"{topic.name}-value", ID))
            unknown = register(client, f"{topic.name}-value", ID, NOTE)
            create(db, topic, address)
            pipeline = db.start("100 milliseconds")
            stack.callback(pipeline.stop)
            load = stack.enter_context(Load(topic, lambda number: record(schemas, number), PARTITIONS))
            until(lambda: rows(pipeline) > 100, WAIT_SECONDS, "records are read")
        schemas.append(unknown)
        until(lambda: pipeline.status()[0].state == "waiting", WAIT_SECONDS, "records of an unknown id are held")
        known = rows(pipeline)
        until(lambda: rows(pipeline) > known + 100, WAIT_SECONDS, "those of the known id flow on")
        with running_registry(tmp_path / "registry", port):
            until(lambda: pipeline.status()[0].state == "running", WAIT_SECONDS, "nothing is held any more")
            load.end()
            until(lambda: rows(pipeline) == load.sent, WAIT_SECONDS, "every record is read")
    assert_read_once(db, load.sent)


def test_a_broker_that_goes_away_under_load_loses_and_doubles_nothing(
    db: lm.Database, registry_address: str, tmp_path: Path
) -> None:
    port = free_port()
    client = RegistryClient(RegistrySettings(registry_address, "orders"))
    schemas: list[Written] = []
    with ExitStack() as stack:
        with said_if_missing(), running_kafka(tmp_path / "kafka", port) as address:
            topic = new_topic(address, PARTITIONS)
            schemas.append(register(client, f"{topic.name}-value", ID))
            create(db, topic, registry_address)
            pipeline = db.start("100 milliseconds")
            stack.callback(pipeline.stop)
            load = stack.enter_context(Load(topic, lambda number: record(schemas, number), PARTITIONS))
            until(lambda: rows(pipeline) > 100, WAIT_SECONDS, "records are read")
        # The producer keeps these until the broker is there again.
        schemas.append(register(client, f"{topic.name}-value", ID, NOTE))
        until(lambda: "SOURCE_UNAVAILABLE" in str(pipeline.status()[0].problem), WAIT_SECONDS, "the broker is missed")
        with running_kafka(tmp_path / "kafka", port):
            read = rows(pipeline)
            until(lambda: rows(pipeline) > read + 100, WAIT_SECONDS, "records are read again")
            load.end()
            until(lambda: rows(pipeline) == load.sent, WAIT_SECONDS, "every record is read")
            pipeline.stop()
            assert_read_once(db, load.sent)
