"""Names that break text without quotes, in every kind of sink: the rows come out exact.

What a system cannot hold is refused when the sink is created (tests/unit/engine/test_sink_names.py); a name that data
brings stops the sink alone, by name.
"""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

import io
import json
from collections import Counter
from itertools import count
from uuid import uuid4

import fastavro
import psycopg
import pytest
from deltalake import DeltaTable

from laminae.codec.confluent import split
from laminae.errors import DeliveryFailed
from laminae.registry import RegistryClient, RegistrySettings
from laminae.schema.avro.names import is_name
from laminae.schema.identifiers import quoted
from tests.support.hostile_names import HOSTILE_NAMES
from tests.support.received import make_topic, received

LONGEST = "x" * 255
NAMES = [name for name in HOSTILE_NAMES if name != LONGEST]
IN_AVRO = [name for name in NAMES if is_name(name)]
NEW, PLAIN = 'n.e`w"er', "newer"
# pyiceberg cannot find rows by a key with a dot in its name.
KEYS = {"kept": ["a.b", "..", "back`tick", 'dou"ble', "${env:HOME}"], "plain": ["back`tick", 'dou"ble', "select", "*"]}
_numbers = count()


@pytest.fixture(autouse=True)
def _no_substitution(spark):
    """A name with `${...}` must reach Spark's parser as it is."""
    before = spark.conf.get("spark.sql.variable.substitute")
    spark.conf.set("spark.sql.variable.substitute", "false")
    yield
    spark.conf.set("spark.sql.variable.substitute", before)


class Sources:
    """`added` has rows one after the other, the one called `by_key` rows by a key."""

    def __init__(self, db, by_key: str, names: list[str], new: str = NEW) -> None:
        self.db, self.by_key, self.names, self.new = db, by_key, names, new
        self.key = [name for name in KEYS.get(by_key, names[:3]) if name in names]
        declared = ", ".join(f"{quoted(name)} BIGINT" + " NOT NULL" * (name in self.key) for name in names)
        db.sql(f"CREATE SOURCE added ({declared})")
        db.sql(f"CREATE SOURCE {by_key} ({declared}, gone BOOLEAN, PRIMARY KEY ({', '.join(map(quoted, self.key))})) "
               "WITH (changelog = 'upsert', deleted_by = 'gone')")  # fmt: skip

    def row(self, number: int, **more: object) -> dict[str, object]:
        return {name: number * 100 + place for place, name in enumerate(self.names)} | more

    def feed(self) -> dict[str, list[dict[str, object]]]:
        """Two epochs, a column between them: what a table of each source must hold then, and the new column's fill."""
        self.db.insert("added", [self.row(1)])
        self.db.insert(self.by_key, [self.row(number, gone=False) for number in (1, 2, 3)])
        self.db.run()
        for source in ("added", self.by_key):
            self.db.sql(f"ALTER SOURCE {source} ADD COLUMN {quoted(self.new)} STRING DEFAULT 'it''s'")
        changed = {name: self.row(2)[name] for name in self.key} | {self.new: "b"}
        self.db.insert("added", [self.row(2) | {self.new: "b"}])
        self.db.insert(self.by_key, [changed | {"gone": False}, self.row(3, gone=True)])
        self.db.run()
        return {
            "added": [self.row(1) | {self.new: "it's"}, self.row(2) | {self.new: "b"}],
            self.by_key: [self.row(1) | {self.new: "it's"}, dict.fromkeys(self.names) | changed],
        }


def counted(rows) -> Counter[str]:
    return Counter(repr(sorted((name, value) for name, value in each.items() if name != "gone")) for each in rows)


def unfilled(rows, new=NEW):
    """In a table that keeps rows from before a column as they are, they have NULL in it."""
    return [each | {new: None} if each[new] == "it's" else each for each in rows]


def listed(options: dict[str, str]) -> str:
    return ", ".join(f"{name} = '{value}'" for name, value in options.items())


def test_tables_of_delta_and_iceberg_have_rows_under_hostile_names(db, lake, tmp_path):
    sources = Sources(db, "plain", HOSTILE_NAMES)
    for source, mode in (("added", "append"), ("plain", "upsert")):
        db.sql(f"CREATE SINK d_{source} FROM {source} "
               f"WITH (connector = 'delta', mode = '{mode}', path = '{tmp_path}/{source}')")  # fmt: skip
        db.sql(f"CREATE SINK i_{source} FROM {source} WITH {lake.options(source, mode=mode)}")
    for source, expected in sources.feed().items():
        wanted = counted(unfilled(expected))
        assert counted(DeltaTable(tmp_path / source).to_pyarrow_table().to_pylist()) == wanted, source
        assert counted(lake.load(source).scan().to_arrow().to_pylist()) == wanted, source


@pytest.mark.postgres
def test_tables_of_postgresql_have_rows_under_hostile_names_and_one_that_data_brings_stops_the_sink_alone(
    db, postgres_url, tmp_path
):
    sources = Sources(db, "kept", NAMES)
    (tmp_path / "in").mkdir()
    db.sql(f"CREATE SOURCE growing (id BIGINT) "
           f"WITH (connector = 'files', path = '{tmp_path}/in', format = 'json', evolve = 'auto')")  # fmt: skip
    tables = {source: f"{source} {next(_numbers)}" for source in ("added", "kept", "growing")}
    for source, table in tables.items():
        given = {"connector": "postgres", "url": postgres_url, "table": table, "create_table": "true", "evolve": "auto"}
        db.sql(f"CREATE SINK to_{source} FROM {source} WITH ({listed(given)})")
    found = sources.feed()
    with psycopg.connect(postgres_url, row_factory=psycopg.rows.dict_row) as connection:
        for source, expected in found.items():
            rows = connection.execute(f'SELECT * FROM "{tables[source]}"'.encode()).fetchall()
            assert counted(rows) == counted(expected), source
    (tmp_path / "in" / "1.json").write_text(json.dumps({"id": 1, LONGEST: 1}))
    with pytest.raises(DeliveryFailed, match=r"SINK_COLUMN_REFUSED\] Sink to_growing cannot write column xxx"):
        db.run()
    assert db.sql("SELECT * FROM growing").fetchall() == [(1, 1)]


@pytest.mark.services
def test_messages_of_kafka_have_hostile_names(connector_jars, db, kafka_address, registry_address):
    sources = Sources(db, "kept", NAMES)
    topics = {}
    for source in ("added", "kept"):
        for kind in ("json", "debezium-json"):
            topics[source, kind] = topic_for(db, kafka_address, source, format=kind)
    for source, expected in sources.feed().items():
        wanted = counted(unfilled(expected)) if source == "added" else counted(expected[1:])
        for kind in ("json", "debezium-json"):
            messages = received(kafka_address, topics[source, kind])
            values = [json.loads(message.value()) for message in messages if message.value() is not None]
            rows = [value if kind == "json" else value["after"] for value in values if value.get("op") != "d"]
            # Rows that were sent before the column do not have it.
            assert counted([{NEW: None} | row for row in rows]) >= wanted, (source, kind)


@pytest.mark.services
def test_messages_in_avro_have_every_name_that_avro_has(connector_jars, db, kafka_address, registry_address):
    sources = Sources(db, "kept_in_avro", IN_AVRO, PLAIN)
    topics = {
        source: topic_for(db, kafka_address, source, format="avro", registry=registry_address)
        for source in ("added", "kept_in_avro")
    }
    client = RegistryClient(RegistrySettings(registry_address, "test"))
    for source, expected in sources.feed().items():
        rows = []
        for message in received(kafka_address, topics[source]):
            if message.value() is not None:
                framed = split(message.value())
                schema = json.loads(client.avro(framed.schema_id))
                rows.append({PLAIN: None} | fastavro.schemaless_reader(io.BytesIO(framed.body), schema))
        wanted = unfilled(expected, PLAIN) if source == "added" else expected[1:]
        assert counted(rows) >= counted(wanted), source


def topic_for(db, address: str, source: str, **options: str) -> str:
    topic = f"names-{uuid4()}"
    make_topic(address, topic)
    given = {"connector": "kafka", "topic": topic, "kafka.bootstrap.servers": address, **options}
    sink = f"{source}.{options['format']}"
    db.sql(f"CREATE SINK {quoted(sink)} FROM {source} WITH ({listed(given)})")
    return topic
