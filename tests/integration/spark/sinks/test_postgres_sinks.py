"""Views and tables by key in a real PostgreSQL while they run, change, crash, fail and go back to a savepoint."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest

import laminae as lm
from laminae.engine import faults
from laminae.errors import DeliveryFailed
from laminae.net.backoff import Backoff
from tests.support.crashing import crash_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.postgres

SECONDS = 60.0
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer"
ROWS = "SELECT customer, q FROM {} ORDER BY customer"
_numbers = count()


@pytest.fixture
def table() -> str:
    return f"Totals {next(_numbers)}"


@pytest.fixture
def query(postgres_url: str, table: str) -> Callable[[str], list[tuple[object, ...]]]:
    """Asks about the table of the test, which is `{}`."""

    def answer(text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            found = connection.execute(text.format(f'"{table}"').encode())
            return found.fetchall() if found.description else []

    return answer


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lm.Database]:
    # Only `run` itself delivers, so that a crash is raised here and not in a thread.
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", SECONDS)
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (customer STRING, qty BIGINT)")
        yield database
    faults.clear()


@pytest.fixture
def shipped(orders: lm.Database, postgres_url: str, table: str) -> Callable[..., None]:
    def create(relation: str, **options: str) -> None:
        given = {"connector": "postgres", "url": postgres_url, "table": f'"{table}"', "create_table": "true", **options}
        written = ", ".join(f"{name} = '{value}'" for name, value in given.items())
        orders.sql(f"CREATE SINK shipped FROM {relation} WITH ({written})")

    return create


def insert(db: lm.Database, *rows: tuple[str, int]) -> None:
    db.insert("orders", [{"customer": customer, "qty": qty} for customer, qty in rows])
    db.run()


def state(db: lm.Database) -> tuple[str, int, str]:
    (row,) = [row for row in db.status().to_pylist() if row["kind"] == "sink"]
    return row["state"], row["lag"], row["detail"]


def test_a_view_is_upserted_and_its_new_column_is_added_while_it_runs(orders, shipped, query):
    orders.sql("CREATE SOURCE users (id BIGINT NOT NULL, name STRING, PRIMARY KEY (id)) WITH (changelog = 'upsert')")
    shipped("users", add_columns="true")
    orders.insert("users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    orders.run()
    orders.sql("ALTER SOURCE users ADD COLUMN email STRING")
    orders.insert("users", [{"id": 2, "name": "B", "email": "b@x"}])
    orders.run()
    assert query("SELECT id, name, email FROM {} ORDER BY id") == [(1, "a", None), (2, "B", "b@x")]
    assert dict(orders._catalog.sink("shipped").options)["mode"] == "upsert"


@pytest.mark.parametrize("point", ["sink placed", "snapshot written", "segment delivered", *faults.DATABASE_POINTS])
def test_a_crash_at_any_step_changes_nothing(orders, shipped, query, point):
    orders.sql(TOTALS)
    insert(orders, ("a", 1), ("b", 2))
    shipped("totals")
    if point == "segment delivered":
        # Its beginning, a snapshot, is behind it.
        orders.run()
    with crash_at(point):
        insert(orders, ("a", 10), ("c", 3))
    insert(orders, ("c", 1))
    assert query(ROWS) == [("a", 11), ("b", 2), ("c", 4)]


def test_rows_of_a_source_are_added_once_each(orders, shipped, query):
    insert(orders, ("a", 1))
    shipped("orders")
    insert(orders, ("a", 1), ("b", 2))
    insert(orders, ("b", 2))
    assert query("SELECT customer, qty FROM {} ORDER BY 1") == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_a_database_that_refuses_makes_the_sink_lag_with_its_reason_until_it_does_not(orders, shipped, query):
    orders.sql(TOTALS)
    query("CREATE TABLE {} (customer text PRIMARY KEY, q smallint)")
    shipped("totals")
    insert(orders, ("a", 1))
    for row in (("a", 100_000), ("b", 1)):
        with pytest.raises(DeliveryFailed, match="out of range for type smallint"):
            insert(orders, row)
    assert query(ROWS) == [("a", 1)]
    name, lag, detail = state(orders)
    assert (name, lag) == ("failing", 2)
    assert "out of range for type smallint" in detail
    query("ALTER TABLE {} ALTER COLUMN q TYPE bigint")
    orders.run()
    assert query(ROWS) == [("a", 100_001), ("b", 1)]
    assert state(orders)[:2] == ("live", 0)


def test_a_restored_home_takes_its_rows_back(orders, shipped, query):
    orders.sql(TOTALS)
    shipped("totals")
    insert(orders, ("a", 1), ("b", 2))
    orders.savepoint("before")
    insert(orders, ("a", 5), ("z", 9))
    assert query(ROWS) == [("a", 6), ("b", 2), ("z", 9)]
    orders.restore("before")
    # What came after the savepoint is read again, and is the same.
    orders.run()
    assert query(ROWS) == [("a", 6), ("b", 2), ("z", 9)]
    insert(orders, ("b", 1))
    assert query(ROWS) == [("a", 6), ("b", 3), ("z", 9)]


def test_a_replaced_view_leaves_none_of_its_old_rows(orders, shipped, query):
    orders.sql(TOTALS)
    shipped("totals")
    insert(orders, ("a", 1), ("b", 2))
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("FROM orders", "FROM orders WHERE qty > 1"))
    insert(orders, ("c", 3))
    assert query(ROWS) == [("b", 2), ("c", 3)]
