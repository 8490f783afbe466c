"""A default that changes, over formats whose records say by a schema of their own what they have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from laminae.registry import RegistryClient, RegistrySettings
from tests.support.avro_records import register
from tests.support.debezium_events import message
from tests.support.iceberg import put
from tests.support.registry_double import avro_field
from tests.support.topics import new_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import laminae as lm
    from tests.support.iceberg import Lake

GROUPED = "SELECT c, COUNT(*) AS n FROM {} GROUP BY c"
WRITTEN = Counter({("x", 3): 1, ("y", 1): 1})
# An event is the image of a row: a column that it does not have is always the initial default.
INITIAL = Counter({("x", 4): 1})


def delta(db: lm.Database, tmp_path: Path, name: str) -> Callable[[int], None]:
    def send(number: int) -> None:
        write_deltalake(tmp_path / name, pa.table({"id": [number]}), mode="append")

    send(0)
    db.sql(f"CREATE SOURCE {name} (id BIGINT) WITH (connector = 'delta', path = '{tmp_path / name}')")
    return send


def iceberg(db: lm.Database, lake: Lake, name: str) -> Callable[[int], None]:
    table = lake.table(name, {"id": pa.int64()})
    put(table, id=[0])
    db.sql(f"CREATE SOURCE {name} (id BIGINT) WITH {lake.options(name)}")
    return lambda number: put(table, id=[number]) and None


def debezium(db: lm.Database, tmp_path: Path, name: str) -> Callable[[int], None]:
    inbox = tmp_path / name
    inbox.mkdir()
    db.sql(
        f"CREATE SOURCE {name} (id BIGINT NOT NULL, PRIMARY KEY (id)) "
        f"WITH (connector = 'files', path = '{inbox}', format = 'debezium-json')"
    )

    def send(number: int) -> None:
        (inbox / f"{number}.json").write_text(message("c", number, {"id": number}) + "\n")

    send(0)
    return send


def assert_defaults_leave_history(
    db: lm.Database, feeds: dict[str, tuple[Callable[[int], None], Counter[tuple[object, ...]]]]
) -> None:
    """`feeds` have sent the first row."""
    sources = list(feeds)

    def alter(change: str) -> None:
        for source in sources:
            db.sql(f"ALTER SOURCE {source} {change}")

    def send(number: int) -> None:
        for source in sources:
            feeds[source][0](number)
        db.run()

    send(1)
    alter("ADD COLUMN c STRING DEFAULT 'x'")
    for source in sources:
        db.sql(f"CREATE MATERIALIZED VIEW kept_{source} AS {GROUPED.format(source)}")
    send(2)
    alter("ALTER COLUMN c SET DEFAULT 'y'")
    for source in sources:
        db.sql(f"CREATE MATERIALIZED VIEW now_{source} AS {GROUPED.format(source)}")
    send(3)
    assert db.sql("SELECT source_name, reason FROM laminar_catalog.dead_letters").fetchall() == []
    for source, (_, expected) in feeds.items():
        for relation in (f"kept_{source}", f"now_{source}"):
            rows = Counter(db.sql("SELECT * FROM " + relation).fetchall())  # noqa: S608  # a name of this file
            assert rows == expected, relation
        assert Counter(db.sql(GROUPED.format(source)).fetchall()) == expected, source


def test_set_default_leaves_rows_of_tables_and_of_events_as_they_are(db, lake, tmp_path):
    assert_defaults_leave_history(
        db,
        {
            "in_delta": (delta(db, tmp_path, "in_delta"), WRITTEN),
            "in_iceberg": (iceberg(db, lake, "in_iceberg"), WRITTEN),
            "in_events": (debezium(db, tmp_path, "in_events"), INITIAL),
        },
    )


@pytest.mark.services
def test_set_default_leaves_rows_of_a_writers_schema_as_they_are(connector_jars, db, kafka_address, registry_address):
    topic = new_topic(kafka_address)
    client = RegistryClient(RegistrySettings(registry_address, "test"))
    schema = register(client, f"{topic.name}-value", avro_field("id"))

    def send(number: int) -> None:
        topic.send(schema.records([{"id": number}]))

    send(0)
    db.sql(
        f"""CREATE SOURCE in_avro (id BIGINT NOT NULL) WITH (connector = 'kafka', format = 'avro',
              topic = '{topic.name}', kafka.bootstrap.servers = '{kafka_address}', registry = '{registry_address}')"""
    )
    assert_defaults_leave_history(db, {"in_avro": (send, WRITTEN)})
