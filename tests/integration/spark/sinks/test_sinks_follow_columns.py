"""Sinks while the columns of their relation change: the table equals the relation, or the sink says what to run."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest
from deltalake import DeltaTable

import laminae as lm
from laminae.errors import DeliveryFailed
from laminae.net.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.iceberg import Lake

_numbers = count()

# Each is (what is done to the source, a row that comes after it), one after the other over the same tables.
RENAME = ("RENAME COLUMN a TO b2", {"b2": 5})
SWAP = ("RENAME COLUMN b TO t; RENAME COLUMN b2 TO b; RENAME COLUMN t TO b2", {"b": 1, "b2": 2})
AGAIN = ("DROP COLUMN bare; ADD COLUMN bare STRING", {"bare": "text"})
CHANGES = [
    RENAME,
    (
        "ALTER COLUMN b2 TYPE BIGINT; ALTER COLUMN price TYPE DECIMAL(12, 4); ALTER COLUMN rate TYPE DOUBLE",
        {"b2": 1 << 40, "price": "1.2345", "rate": 0.1},
    ),
    ("ADD COLUMN extra STRING DEFAULT 'it''s'; ADD COLUMN bare INT", {"bare": 3}),
    SWAP,
    (
        "RENAME COLUMN b TO B; ALTER COLUMN required DROP NOT NULL; ADD COLUMN place.zip STRING",
        {"B": 8, "required": None, "place": {"town": "x", "zip": "1"}},
    ),
    ("DROP COLUMN required; DROP COLUMN bare; ADD COLUMN bare STRING", {"bare": "text"}),
]
CHANGE_OF_DELTA = {
    "RENAME COLUMN a TO b2": "column a is called b2 now",
    "ALTER COLUMN rate TYPE DOUBLE": "column rate is a FLOAT",
}
COLUMNS = "a INT, b INT, price DECIMAL(10, 2), rate FLOAT, required INT NOT NULL, place STRUCT<town: STRING>"
FIRST = {"a": 1, "b": 2, "price": "1.25", "rate": 0.5, "required": 1, "place": {"town": "Rome"}}
ROWS = "SELECT * FROM {} ORDER BY id"
STATEMENTS = re.compile(r"Run in the database: (.*) -- delivery")


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lm.Database]:
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", 60.0)
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql(
            f"CREATE SOURCE users (id BIGINT NOT NULL, {COLUMNS}, PRIMARY KEY (id)) WITH (changelog = 'upsert')"
        )
        yield database


@pytest.fixture
def ask(postgres_url: str) -> Callable[[str], list[dict[str, object]]]:
    def answer(statement: str) -> list[dict[str, object]]:
        with psycopg.connect(postgres_url, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    return answer


def altered(db: lm.Database, change: str) -> None:
    for part in change.split("; "):
        db.sql(f"ALTER SOURCE users {part}")


def problems(db: lm.Database) -> dict[str, str]:
    rows = db.status().to_pylist()
    return {row["name"]: row["detail"] for row in rows if row["kind"] == "sink" and row["state"] == "failing"}


def insert(db: lm.Database, number: int, row: dict[str, object]) -> None:
    present = set(db._catalog.source("users").schema.names)
    rest = {name: value for name, value in FIRST.items() if name in present and name not in row}
    db.insert("users", [{"id": number, **rest, **row}])
    run(db)


def run(db: lm.Database) -> None:
    """What a sink could not take is asked of `problems`."""
    with suppress(DeliveryFailed):
        db.run()


def rows_of(db: lm.Database, relation: str) -> list[dict[str, object]]:
    found = db.sql(ROWS.format(relation)).arrow().to_pylist()
    # A field that came later is not in the JSON of rows from before it.
    return [{**row, "place": {k: v for k, v in row["place"].items() if v is not None}} for row in found]


def table_of(ask: Callable[[str], list[dict[str, object]]], table: str, like: list[dict[str, object]]):
    found = ask(ROWS.format(f'"{table}"'))
    shown = [{name: row[name] for name in like[0]} for row in found]
    return [{**row, "place": {k: v for k, v in row["place"].items() if v is not None}} for row in shown]


@pytest.mark.postgres
def test_postgres_tables_equal_their_relations_after_every_change_of_columns(db, ask, postgres_url):
    number = next(_numbers)
    db.sql("CREATE MATERIALIZED VIEW shown AS SELECT * FROM users")
    tables = {}
    for relation in ("users", "shown"):
        for kind in ("auto", "off"):
            tables[f"{relation}_{kind}"] = (relation, f"{relation} {kind} {number}")
            db.sql(
                f"""CREATE SINK {relation}_{kind} FROM {relation} WITH (connector = 'postgres', url = '{postgres_url}',
                    table = '{relation} {kind} {number}', create_table = 'true', evolve = '{kind}')"""
            )
    insert(db, 0, {})
    for _, table in tables.values():
        ask(f'ALTER TABLE "{table}" ALTER COLUMN required SET NOT NULL')
    asked = 0
    for key, (change, row) in enumerate(CHANGES, 1):
        if "DROP COLUMN" in change and "shown_auto" in tables:
            # A view that shows every column keeps them from being dropped.
            for name in ("shown_auto", "shown_off"):
                db.sql(f"DROP SINK {name}")
                del tables[name]
            db.sql("DROP MATERIALIZED VIEW shown")
        altered(db, change)
        insert(db, key, row)
        for _ in range(2):
            # A NULL in a NOT NULL column is met only when the names are right.
            for name, problem in problems(db).items():
                assert name.endswith("_off"), (change, name, problem)
                asked += 1
                (statements,) = STATEMENTS.findall(problem)
                ask(statements)
            run(db)
        assert problems(db) == {}, change
        for relation, table in tables.values():
            expected = rows_of(db, relation)
            assert len(expected) == key + 1
            assert table_of(ask, table, expected) == expected, (change, table)
    # Of two sinks once for each step and twice for the fifth, then of one.
    assert asked == 2 * 6 + 1


def test_an_iceberg_table_equals_its_relation_under_renames_swaps_and_columns_that_come_again(db, lake: Lake):
    settings = {**lake.settings("followed"), "connector": "iceberg", "mode": "upsert"}
    written = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    db.sql(f"CREATE SINK shipped FROM users WITH ({written})")
    insert(db, 0, {})
    steps = [RENAME, ("ALTER COLUMN b2 TYPE BIGINT; ADD COLUMN bare INT", {"b2": 1 << 40, "bare": 3}), SWAP, AGAIN]
    for key, (change, row) in enumerate(steps, 1):
        altered(db, change)
        insert(db, key, row)
        assert problems(db) == {}, change
        expected = rows_of(db, "users")
        found = lake.load("followed").scan(selected_fields=tuple(expected[0])).to_arrow().sort_by("id").to_pylist()
        assert found == expected, change


def test_a_delta_sink_refuses_by_name_what_its_table_cannot_follow(db, tmp_path):
    for name in ("first", "second"):
        path = tmp_path / name
        db.sql(f"CREATE SINK {name} FROM users WITH (connector = 'delta', path = '{path}', mode = 'upsert')")
        insert(db, 0, {})
        before = DeltaTable(path).version()
        (change, problem) = list(CHANGE_OF_DELTA.items())[name == "first"]
        altered(db, change)
        insert(db, 1, {})
        assert problem in problems(db)[name]
        assert "create a sink with another path" in problems(db)[name]
        assert DeltaTable(path).version() == before
        db.sql(f"DROP SINK {name}")
