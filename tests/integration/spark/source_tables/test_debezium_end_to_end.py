"""PostgreSQL, Debezium, Kafka, a source, two stacked views, sinks in PostgreSQL and Kafka: all real, and one killed."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

import laminae as lm
from laminae.catalog import open_catalog
from tests.support.debezium import AVRO, Database, new_database
from tests.support.driving import BOTH, Driver
from tests.support.received import make_topic, once, received, table
from tests.support.waiting import pass_a_moment, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.services.connect import Connect

pytestmark = [pytest.mark.services, pytest.mark.postgres, pytest.mark.usefixtures("connector_jars")]

SEED = 20260304
CHANGES, KEYS, CUSTOMERS = 150, 120, 7
WORK_SECONDS = 300.0
TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, total bigint, void boolean NOT NULL)"
SOURCE = """CREATE SOURCE orders (id BIGINT NOT NULL, customer STRING, total BIGINT, void BOOLEAN, PRIMARY KEY (id))
            WITH (connector = 'kafka', format = 'avro', changelog = 'debezium', topic = '{topic}',
                  kafka.bootstrap.servers = '{kafka}', registry = '{registry}', compatibility = 'BACKWARD')"""
VIEWS = """CREATE MATERIALIZED VIEW valid AS SELECT * FROM orders WHERE NOT void;
           CREATE MATERIALIZED VIEW totals AS
             SELECT customer, COUNT(*) AS n, SUM(total) AS total FROM valid GROUP BY customer"""
SINKS = """CREATE SINK {relation}_rows FROM {relation} WITH (
             connector = 'postgres', url = '{url}', table = 'reports.{relation}', create_table = 'true',
             add_columns = 'true');
           CREATE SINK {relation}_messages FROM {relation} WITH (
             connector = 'kafka', topic = '{topic}', kafka.bootstrap.servers = '{kafka}')"""
# What each view is to hold, by its key, as PostgreSQL itself says.
ORACLE = {
    ("valid", "id"): "SELECT * FROM orders WHERE NOT void",
    ("totals", "customer"): """SELECT customer, COUNT(*) AS n, SUM(total)::bigint AS total FROM orders WHERE NOT void
                               GROUP BY customer""",
}

Rows = dict[object, dict[str, object]]


@pytest.fixture
def shop(postgres_url: str) -> Iterator[Database]:
    with new_database(postgres_url) as database:
        database.execute(TABLE, "CREATE SCHEMA reports")
        yield database


def test_both_sinks_equal_the_oracle_after_a_new_column_and_a_kill(
    tmp_path: Path,
    spark: SparkSession,
    shop: Database,
    connect_worker: Connect,
    kafka_address: str,
    registry_address: str,
) -> None:
    dice = random.Random(SEED)
    change(shop, dice)
    connect_worker.run(shop.prefix(AVRO), shop.config(AVRO, registry_address))
    shop.until_sent(connect_worker, AVRO)
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(SOURCE.format(topic=shop.topic(AVRO, "orders"), kafka=kafka_address, registry=registry_address))
        db.sql(VIEWS)
        for relation, _ in ORACLE:
            topic = topic_of(shop, relation)
            make_topic(kafka_address, topic)
            db.sql(SINKS.format(relation=relation, url=shop.url, topic=topic, kafka=kafka_address))
        one_life(db, shop, dice, tmp_path / "driver.log")
        change(shop, dice, has_note=True)
        shop.until_sent(connect_worker, AVRO)
        db.run()
    for (relation, key), query in ORACLE.items():
        expected = rows(shop, query, key)
        assert expected
        assert rows(shop, f"SELECT * FROM reports.{relation}", key) == expected  # noqa: S608  # a name of this file
        messages = received(kafka_address, topic_of(shop, relation))
        for read in (messages, once(messages)):
            assert without_nulls(table(read, key)) == without_nulls(expected)


def one_life(db: lm.Database, shop: Database, dice: random.Random, log: Path) -> None:
    """A driver that reads and delivers while the table changes and gains a column, until it is killed."""
    with closing(open_catalog(db.home, None)) as catalog:
        driver = Driver(catalog, db.home, log).start()
        try:
            change(shop, dice)
            until(lambda: driver.is_running() and delivered(db) > 0, WORK_SECONDS, "it delivers")
            shop.execute("ALTER TABLE orders ADD COLUMN note text")
            change(shop, dice, has_note=True)
            until(lambda: driver.is_running() and db.version("orders") > 1, WORK_SECONDS, "the column is there")
            change(shop, dice, has_note=True)
            pass_a_moment(dice)
            driver.kill(BOTH)
        except BaseException as problem:
            problem.add_note(f"the end of {log}:\n{driver.tail()}")
            driver.sweep()
            raise


def delivered(db: lm.Database) -> int:
    return min(sink.progress for sink in db._catalog.sinks())


def change(shop: Database, dice: random.Random, has_note: bool = False) -> None:
    """Rows that are put, changed and deleted, each in a transaction of its own."""
    with psycopg.connect(shop.url, autocommit=True) as connection:
        for _ in range(CHANGES):
            key = dice.randrange(KEYS)
            if dice.random() < 0.2:
                connection.execute("DELETE FROM orders WHERE id = %s", [key])
                continue
            customer, total, void = f"c{dice.randrange(CUSTOMERS)}", dice.randrange(10**9), dice.random() < 0.2
            connection.execute(
                """INSERT INTO orders VALUES (%s, %s, %s, %s) ON CONFLICT (id)
                   DO UPDATE SET customer = excluded.customer, total = excluded.total, void = excluded.void""",
                [key, customer, total, void],
            )
            if has_note:
                connection.execute("UPDATE orders SET note = %s WHERE id = %s", [f"note {total}", key])


def topic_of(shop: Database, relation: str) -> str:
    return f"{shop.name}_{relation}"


def rows(shop: Database, query: str, key: str) -> Rows:
    with psycopg.connect(shop.url) as connection:
        cursor = connection.execute(query.encode())
        names = [column.name for column in cursor.description or ()]
        return {row[key]: row for row in (dict(zip(names, values, strict=True)) for values in cursor)}


def without_nulls(found: dict[object, object]) -> Rows:
    """Messages from before the column was added have none."""
    return {
        key: {name: value for name, value in row.items() if value is not None}
        for key, row in found.items()
        if isinstance(row, dict)
    }
