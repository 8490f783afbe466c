"""Views as topics of a real broker, with schemas in a real registry: every message in order, named by its headers."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING
from uuid import uuid4

import fastavro
import pytest

import laminae as lm
from laminae.codec.confluent import split
from laminae.engine import faults
from laminae.errors import DeliveryFailed, NotAvailable
from laminae.net.backoff import Backoff
from laminae.registry import RegistryClient, RegistrySettings
from laminae.spark.sinks.kafka.deliver import CLIENT_DEFAULTS
from laminae.spark.sources.kafka.jars import AVRO, KAFKA, Connector, is_loaded, require
from tests.support.crashing import crash_at
from tests.support.received import by_key, make_topic, name_of, once, received, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.services

SECONDS = 60.0
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer"


@pytest.fixture
def topic(kafka_address: str) -> str:
    """A topic of its own for each test, of two partitions."""
    name = f"totals-{uuid4()}"
    make_topic(kafka_address, name)
    return name


@pytest.fixture
def orders(
    connector_jars: None, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[lm.Database]:
    # Only `run` itself delivers, so that a crash is raised here and not in a thread.
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", SECONDS)
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (customer STRING, qty BIGINT)")
        yield database
    faults.clear()


def create(db: lm.Database, address: str, topic: str, relation: str = "totals", **options: str) -> None:
    given = {"connector": "kafka", "topic": topic, "kafka.bootstrap.servers": address, **options}
    written = ", ".join(f"{name} = '{value}'" for name, value in given.items())
    db.sql(f"CREATE SINK shipped FROM {relation} WITH ({written})")


def insert(db: lm.Database, *rows: tuple[str, int]) -> None:
    db.insert("orders", [{"customer": customer, "qty": qty} for customer, qty in rows])
    db.run()


def test_upserts_stand_under_their_key_and_a_row_that_is_gone_is_a_tombstone(orders, kafka_address, topic):
    orders.sql("CREATE SOURCE users (customer STRING, gone BOOLEAN, q BIGINT, PRIMARY KEY (customer)) "
               "WITH (changelog = 'upsert', deleted_by = 'gone')")  # fmt: skip
    create(orders, kafka_address, topic, "users")
    for rows in ([("a", False, 1), ("b", False, 2)], [("a", False, 3)], [("b", True, None)]):
        orders.insert("users", [dict(zip(("customer", "gone", "q"), row, strict=True)) for row in rows])
        orders.run()
    found = received(kafka_address, topic)
    shown = {key: [row and row["q"] for row in rows] for key, rows in by_key(found).items()}
    assert shown == {"a": [1, 3], "b": [2, None]}
    assert len({name_of(message) for message in found}) == 4
    assert {name_of(message)[0].split("/")[0] for message in found} == {"shipped"}


def test_debezium_events_of_a_view_end_a_deleted_key_with_a_tombstone(orders, kafka_address, topic):
    orders.sql(TOTALS)
    insert(orders, ("a", 1))
    create(orders, kafka_address, topic, format="debezium-json")
    orders.run()
    insert(orders, ("a", 2), ("b", 5))
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("FROM orders", "FROM orders WHERE qty > 4"))
    orders.run()
    found = by_key(received(kafka_address, topic))
    assert [event and event["op"] for event in found["a"]] == ["r", "u", "d", None]
    assert found["a"][1]["before"]["q"] == 1
    assert found["a"][1]["after"]["q"] == 3
    assert found["b"][0]["after"] == {"customer": "b", "q": 5}


def test_a_schema_is_registered_for_the_view_and_evolves_with_it(orders, kafka_address, registry_address, topic):
    orders.sql("CREATE SOURCE users (customer STRING, q BIGINT, PRIMARY KEY (customer)) WITH (changelog = 'upsert')")
    create(orders, kafka_address, topic, "users", format="avro", registry=registry_address)
    orders.insert("users", [{"customer": "a", "q": 1}])
    orders.run()
    orders.sql("ALTER SOURCE users ADD COLUMN email STRING")
    orders.insert("users", [{"customer": "a", "q": 2, "email": "a@x"}])
    orders.run()
    client = RegistryClient(RegistrySettings(registry_address, "test"))
    assert client.versions(f"{topic}-value") == (1, 2)
    assert client.versions(f"{topic}-key") == (1,)
    rows = []
    for message in received(kafka_address, topic):
        framed = split(message.value())
        rows.append(fastavro.schemaless_reader(io.BytesIO(framed.body), json.loads(client.avro(framed.schema_id))))
    assert rows == [{"customer": "a", "q": 1}, {"customer": "a", "q": 2, "email": "a@x"}]


def test_an_epoch_that_is_sent_twice_has_the_same_names_and_order(orders, kafka_address, topic):
    orders.sql(TOTALS)
    create(orders, kafka_address, topic)
    orders.run()
    with crash_at("segment delivered"):
        insert(orders, *((f"c{number}", number) for number in range(50)))
    orders.run()
    insert(orders, ("c1", 100))
    found = received(kafka_address, topic)
    assert len(found) == 101
    assert len(once(found)) == 51
    assert table(once(found)) == table(found)
    assert table(found)["c1"] == {"customer": "c1", "q": 101}


def test_a_broker_that_is_away_or_a_topic_that_is_missing_makes_the_sink_lag(orders, kafka_address, monkeypatch):
    monkeypatch.setitem(CLIENT_DEFAULTS, "kafka.max.block.ms", "500")
    orders.sql(TOTALS)
    missing = f"missing-{uuid4()}"
    create(orders, kafka_address, missing)
    with pytest.raises(DeliveryFailed, match="not present in metadata"):
        insert(orders, ("a", 1))
    (row,) = [row for row in orders.status().to_pylist() if row["kind"] == "sink"]
    assert (row["state"], row["lag"]) == ("failing", 1)
    assert f"topic {missing} of {kafka_address}" in row["detail"]
    assert "not present in metadata" in row["detail"]
    make_topic(kafka_address, missing)
    orders.run()
    assert table(received(kafka_address, missing)) == {"a": {"customer": "a", "q": 1}}


def test_a_connector_that_spark_does_not_have_is_named_with_its_coordinates(connector_jars: None, spark: SparkSession):
    assert is_loaded(spark, KAFKA)
    assert is_loaded(spark, AVRO)
    with pytest.raises(NotAvailable, match=rf"sink k .*org\.apache\.spark:spark-other_2\.13:{spark.version}") as told:
        require(spark, "sink k", KAFKA, Connector("no-such-connector", "spark-other"))
    assert f"'spark.jars.packages': 'org.apache.spark:spark-other_2.13:{spark.version}'" in told.value.remedy
