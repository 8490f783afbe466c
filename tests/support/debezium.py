"""A database whose changes go to Kafka: tables of a test's own, and connectors that send them in each form."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.connect import Connect

JSON, JSON_WITH_SCHEMA, AVRO = "json", "json-with-schema", "avro"
FORMS = (JSON, JSON_WITH_SCHEMA, AVRO)
"""How the messages of a connector are written."""
SENT_SECONDS = 180.0
PARTITIONS = 3
CONNECTOR = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "filtered",
    # Truncates are left out unless this is said.
    "skipped.operations": "none",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": str(PARTITIONS),
    "poll.interval.ms": "50",
}
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
AVRO_CONVERTER = {
    "": "io.apicurio.registry.utils.converter.AvroConverter",
    ".apicurio.registry.auto-register": "true",
    ".apicurio.registry.headers.enabled": "false",
    ".apicurio.registry.as-confluent": "true",
    ".apicurio.registry.use-id": "contentId",
}
# One row of it is written behind everything else: when its event is sent, all events are.
MARKS = "marks"


@dataclass(frozen=True, slots=True)
class Database:
    """A database of its own on the server that tests share, with connectors that are named after the form."""

    url: str
    name: str

    def execute(self, *statements: str) -> None:
        """All of them in one transaction."""
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, table: str) -> list[dict[str, object]]:
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def columns(self, table: str) -> list[str]:
        with psycopg.connect(self.url) as connection:
            found = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(table)))
            return [column.name for column in found.description or ()]

    def topic(self, form: str, table: str) -> str:
        return f"{self.prefix(form)}.public.{table}"

    def prefix(self, form: str) -> str:
        """The name of the connector, too, and a part of names in Avro."""
        return f"{self.name}_{form}".replace("-", "_")

    def config(self, form: str, registry: str | None = None, name: str | None = None) -> dict[str, str]:
        """A connector that sends every table of the database in a form, which is its name unless told."""
        place, prefix = urlsplit(self.url), self.prefix(name or form)
        return {
            **CONNECTOR,
            "database.hostname": str(place.hostname),
            "database.port": str(place.port),
            "database.user": str(place.username),
            "database.password": "",
            "database.dbname": self.name,
            "topic.prefix": prefix,
            "slot.name": prefix,
            "publication.name": prefix,
            "schema.include.list": "public",
            **converters(form, registry),
        }

    def mark(self) -> int:
        """Where the log of the server is now; a row is written behind it."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
            assert found is not None
            connection.execute(sql.SQL("INSERT INTO {} DEFAULT VALUES").format(sql.Identifier(MARKS)))
        return int(found[0])

    def until_sent(self, worker: Connect, *forms: str) -> None:
        """Returns when the broker has every event of what was committed before."""
        end = self.mark()
        for form in forms:
            _until_sent(worker, self.prefix(form), end)


def _until_sent(worker: Connect, connector: str, end: int) -> None:
    until(lambda: worker.position(connector) >= end, SENT_SECONDS, f"all events of {connector} are sent")


def converters(form: str, registry: str | None = None) -> dict[str, str]:
    """Settings for the keys and values of a form; `registry` is the address of the Confluent API of Apicurio."""
    if form != AVRO:
        has_schema = str(form == JSON_WITH_SCHEMA).lower()
        return {
            f"{part}.converter{name}": value
            for part in ("key", "value")
            for name, value in (("", JSON_CONVERTER), (".schemas.enable", has_schema))
        }
    assert registry is not None
    own = registry.replace("/apis/ccompat/v7", "/apis/registry/v2")
    settings = {**AVRO_CONVERTER, ".apicurio.registry.url": own}
    return {f"{part}.converter{name}": value for part in ("key", "value") for name, value in settings.items()}


@contextmanager
def new_database(server_url: str, name: str | None = None) -> Iterator[Database]:
    """Gone at the end, with the slots of its connectors: without their readers the server would keep its log."""
    name = name or f"shop_{uuid4().hex[:8]}"
    place = sql.Identifier(name)
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(place))
    made = Database(urlsplit(server_url)._replace(path=f"/{name}").geturl(), name)
    try:
        with psycopg.connect(made.url) as connection:
            connection.execute(sql.SQL("CREATE TABLE {} (id bigserial PRIMARY KEY)").format(sql.Identifier(MARKS)))
        yield made
    finally:
        with psycopg.connect(server_url, autocommit=True) as server:
            _forget(server, name)
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(place))


def _forget(server: psycopg.Connection, name: str) -> None:
    """Drop the slots of a database. A connector that still reads from one is cut off."""
    slots = "SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = %s"
    for slot, pid in server.execute(slots, [name]).fetchall():
        if pid is not None:
            server.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        server.execute("SELECT pg_drop_replication_slot(%s)", [slot])
