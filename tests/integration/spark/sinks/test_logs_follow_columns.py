"""Sinks that are logs (files, topics) while the columns of their relation change.

A log keeps what was written. Its reader knows the relation's schema history and renames, adds and drops columns of the
rows that it has as the history says; then its rows equal the relation's after every change. In Avro the schemas in the
registry say it all: every message, read with the newest schema, is the row; or delivery stops by name.
"""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import uuid4

import fastavro
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.codec.confluent import split
from laminae.errors import DeliveryFailed
from laminae.net.backoff import Backoff
from laminae.registry import RegistryClient, RegistrySettings
from tests.support.received import make_topic, received

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = "a INT, b INT, price DECIMAL(10, 2), rate FLOAT, place STRUCT<town: STRING>"
FIRST = {"a": 1, "b": 2, "price": "1.25", "rate": 0.5, "place": {"town": "Rome"}}
# Each is (what is done to the source, a row that comes after it), one after the other.
IN_EVERY_LOG = [
    ("RENAME COLUMN a TO c", {"c": 5}),
    ("ALTER COLUMN c TYPE BIGINT; ALTER COLUMN rate TYPE DOUBLE", {"c": 1 << 40, "rate": 0.1}),
    ("ADD COLUMN extra STRING DEFAULT 'it''s'; ADD COLUMN bare INT; ADD COLUMN place.zip STRING", {"bare": 3}),
]
NOT_IN_AVRO = [
    ("ALTER COLUMN price TYPE DECIMAL(12, 4)", {"price": "1.2345"}),
    ("RENAME COLUMN b TO t; RENAME COLUMN c TO b; RENAME COLUMN t TO c", {"b": 1, "c": 2}),
    ("DROP COLUMN bare; ADD COLUMN bare STRING", {"bare": "text"}),
]
KINDS = ("json", "parquet", "debezium-json")


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lm.Database]:
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", 60.0)
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql(
            f"CREATE SOURCE users (id BIGINT NOT NULL, {COLUMNS}, PRIMARY KEY (id)) WITH (changelog = 'upsert')"
        )
        yield database


def put(db: lm.Database, number: int, row: dict[str, object]) -> None:
    """A row more, and the first row as it is under the columns of now."""
    present = set(db._catalog.source("users").schema.names)
    rest = {name: value for name, value in FIRST.items() if name in present and name not in row}
    db.insert("users", [{"id": number, **rest, **row}])
    db.run()


def alter(db: lm.Database, change: str) -> None:
    for part in change.split("; "):
        db.sql(f"ALTER SOURCE users {part}")


def relation(db: lm.Database) -> dict[int, dict[str, object]]:
    return {row["id"]: plain(row) for row in db.sql("SELECT * FROM users").arrow().to_pylist()}


def plain(row: dict[str, object]) -> dict[str, object]:
    """A field that came later is not in rows from before it, where it is NULL; a number is one in any form."""
    place = row.get("place")
    found = {**row, "price": Decimal(str(row["price"]))}
    return {**found, "place": place and {name: value for name, value in place.items() if value is not None}}


class Reader:
    """Rows by their id, which follow the schema history of the relation."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, object]] = {}

    def alter(self, change: str) -> None:
        for part in change.split("; "):
            words = part.split()
            for row in self.rows.values():
                if words[0] == "RENAME":
                    row[words[4]] = row.pop(words[2])
                elif words[0] == "DROP":
                    del row[words[2]]
                elif words[0] == "ADD" and "." not in words[2]:
                    row[words[2]] = "it's" if "DEFAULT" in words else None

    def take(self, changes: Iterable[tuple[bool, dict[str, object]]]) -> None:
        for stays, row in changes:
            self.rows.pop(row["id"], None)
            if stays:
                self.rows[row["id"]] = plain(row)


def rows_in(kind: str, directory: Path, seen: set[Path]) -> Iterator[tuple[bool, dict[str, object]]]:
    """(whether the row stays, the row) of each change in the files that have come."""
    for file in sorted(set(directory.iterdir()) - seen):
        seen.add(file)
        if kind == "parquet":
            yield from map(as_change, pq.read_table(file).to_pylist())
        else:
            for line in file.read_text().splitlines():
                yield from changes_of(kind, line)


def changes_of(kind: str, text: str | bytes) -> Iterator[tuple[bool, dict[str, object]]]:
    value = json.loads(text, parse_float=str if kind == "debezium-json" else None)
    if kind != "debezium-json":
        yield as_change(value)
        return
    row = value.get("after") or value["before"]
    yield "after" in value, {**row, "rate": float(row["rate"])}


def as_change(row: dict[str, object]) -> tuple[bool, dict[str, object]]:
    stays = str(row.pop("_op", "+I")).startswith("+")
    return stays, {name: value for name, value in row.items() if not name.startswith("_")}


def test_files_hold_the_relation_under_its_history_after_every_change_of_columns(db, tmp_path):
    readers = {kind: (Reader(), set()) for kind in KINDS}
    for kind in KINDS:
        path = tmp_path / kind
        db.sql(f"CREATE SINK `{kind}` FROM users WITH (connector = 'files', format = '{kind}', path = '{path}')")
    put(db, 0, {})
    for number, (change, row) in enumerate([*IN_EVERY_LOG, *NOT_IN_AVRO], 1):
        for kind, (reader, seen) in readers.items():
            reader.take(rows_in(kind, tmp_path / kind, seen))
            reader.alter(change)
        alter(db, change)
        put(db, number, row)
        for kind, (reader, seen) in readers.items():
            reader.take(rows_in(kind, tmp_path / kind, seen))
            assert reader.rows == relation(db), (kind, change)


@pytest.mark.services
def test_topics_hold_the_relation_and_avro_says_the_history_in_its_schemas(
    connector_jars, db, kafka_address, registry_address
):
    topics = {}
    for kind in ("json", "debezium-json", "avro"):
        topics[kind] = f"follow-{uuid4()}"
        make_topic(kafka_address, topics[kind])
        given = {"connector": "kafka", "topic": topics[kind], "kafka.bootstrap.servers": kafka_address, "format": kind}
        given |= {"registry": registry_address} if kind == "avro" else {}
        listed = ", ".join(f"{name} = '{value}'" for name, value in given.items())
        db.sql(f"CREATE SINK `{kind}` FROM users WITH ({listed})")
    readers = {kind: (Reader(), set()) for kind in ("json", "debezium-json")}
    put(db, 0, {})
    client = RegistryClient(RegistrySettings(registry_address, "test"))
    for number, (change, row) in enumerate(IN_EVERY_LOG, 1):
        for kind, (reader, seen) in readers.items():
            reader.take(new_rows(kafka_address, topics[kind], kind, seen))
            reader.alter(change)
        alter(db, change)
        put(db, number, row)
        for kind, (reader, seen) in readers.items():
            reader.take(new_rows(kafka_address, topics[kind], kind, seen))
            assert reader.rows == relation(db), (kind, change)
        assert by_newest_schema(client, kafka_address, topics["avro"]) == relation(db), change
    for change, row in NOT_IN_AVRO:
        db.sql("DROP SINK avro")
        topic = f"follow-{uuid4()}"
        make_topic(kafka_address, topic)
        db.sql(
            f"""CREATE SINK avro FROM users WITH (connector = 'kafka', topic = '{topic}', format = 'avro',
                  kafka.bootstrap.servers = '{kafka_address}', registry = '{registry_address}')"""
        )
        # A sink that is made anew begins with the rows as they are: the remedy.
        db.run()
        assert by_newest_schema(client, kafka_address, topic) == relation(db), change
        sent = len(received(kafka_address, topic))
        alter(db, change)
        with pytest.raises(DeliveryFailed, match="cannot be sent, because earlier messages"):
            put(db, 9, row)
        assert len(received(kafka_address, topic)) == sent


def new_rows(address: str, topic: str, kind: str, seen: set[bytes]) -> Iterator[tuple[bool, dict[str, object]]]:
    for message in received(address, topic):
        name = repr(message.headers()).encode()
        if name not in seen and message.value() is not None:
            yield from changes_of(kind, message.value())
        seen.add(name)


def by_newest_schema(client: RegistryClient, address: str, topic: str) -> dict[int, dict[str, object]]:
    """The last row of each key as a reader has it that knows the newest schema of the subject."""
    messages = [split(message.value()) for message in received(address, topic)]
    newest = json.loads(client.avro(max(framed.schema_id for framed in messages)))
    found = {}
    for framed in messages:
        writer = json.loads(client.avro(framed.schema_id))
        row = fastavro.schemaless_reader(io.BytesIO(framed.body), writer, newest)
        found[row["id"]] = plain(row)
    return found
