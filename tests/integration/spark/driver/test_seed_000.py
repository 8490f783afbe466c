"""The integration tests that seed 000 names, each on a stream that runs meanwhile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import EvolutionRejected, IncompatibleChange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from laminae.spark.driver.pipeline import Pipeline


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (id BIGINT NOT NULL, amount INT, note STRING)")
        database.sql(
            f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'json', path = '{tmp_path / 'k'}')"
        )
        yield database


@pytest.fixture
def pipeline(db: lm.Database) -> Iterator[Pipeline]:
    """Started, with one row behind it; at the end it is the same run of the same query."""
    running = db.start("50 milliseconds")
    try:
        running.process_all_available()
        push(db, running, {"id": 1, "amount": 1, "note": "first"})
        (before,) = running.status()
        yield running
        running.process_all_available()
        (after,) = running.status()
        assert after.run_id == before.run_id
    finally:
        running.stop()


def push(db: lm.Database, pipeline: Pipeline, *rows: dict[str, object]) -> None:
    db.insert("orders", rows)
    pipeline.process_all_available()


def put(file: Path, text: str) -> None:
    hidden = file.with_name(f".{file.name}")
    hidden.write_text(text)
    hidden.rename(file)


def delivered(tmp_path: Path) -> list[dict[str, object]]:
    files = sorted((tmp_path / "k").iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_alter_source_add_column(db: lm.Database, pipeline: Pipeline, tmp_path: Path) -> None:
    db.sql("ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR'")
    push(db, pipeline, {"id": 2, "amount": 2, "note": "second", "currency": "USD"}, {"id": 3})
    assert db.sql("SELECT id, currency FROM orders ORDER BY id").fetchall() == [(1, "EUR"), (2, "USD"), (3, "EUR")]
    assert delivered(tmp_path) == [
        {"id": 1, "amount": 1, "note": "first"},
        {"id": 2, "amount": 2, "note": "second", "currency": "USD"},
        {"id": 3, "amount": None, "note": None, "currency": "EUR"},
    ]


def test_alter_source_drop_column(db: lm.Database, pipeline: Pipeline, tmp_path: Path) -> None:
    db.sql("ALTER SOURCE orders DROP COLUMN note")
    push(db, pipeline, {"id": 2, "amount": 2, "note": "still sent"})
    assert db.sql("SELECT * FROM orders ORDER BY id").fetchall() == [(1, 1), (2, 2)]
    assert delivered(tmp_path) == [{"id": 1, "amount": 1, "note": "first"}, {"id": 2, "amount": 2}]


def test_alter_source_widen_type(db: lm.Database, pipeline: Pipeline, tmp_path: Path) -> None:
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    push(db, pipeline, {"id": 2, "amount": 2**40})
    table = db.sql("SELECT id, amount FROM orders ORDER BY id").arrow()
    assert table.to_pylist() == [{"id": 1, "amount": 1}, {"id": 2, "amount": 2**40}]
    assert str(table.schema.field("amount").type) == "int64"
    assert [row["amount"] for row in delivered(tmp_path)] == [1, 2**40]


def test_refresh_schema(spark: SparkSession, tmp_path: Path) -> None:
    """A producer began to send a field that nobody declared: REFRESH finds it in the newest files, live."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql(f"CREATE SOURCE letters (id BIGINT) WITH (connector = 'files', format = 'json', path = '{inbox}')")
        running = db.start("50 milliseconds")
        try:
            put(inbox / "1.json", '{"id": 1, "city": "Ghent"}\n')
            running.process_all_available()
            (before,) = running.status()
            assert db.sql("ALTER SOURCE letters REFRESH SCHEMA").fetchone()[0] == "applied"
            put(inbox / "2.json", '{"id": 2, "city": "Bruges"}\n')
            running.process_all_available()
            (after,) = running.status()
        finally:
            running.stop()
        assert (after.run_id, after.version) == (before.run_id, 2)
        assert db.sql("SELECT * FROM letters ORDER BY id").fetchall() == [(1, None), (2, "Bruges")]
        assert [(row.column_name, row.trigger) for row in db.history("letters")][1:] == [("city", "ManualRefresh")]


def test_schema_history_query(db: lm.Database, pipeline: Pipeline) -> None:
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT; ALTER SOURCE orders RENAME COLUMN amount TO cents")
    push(db, pipeline, {"id": 2, "cents": 2})
    # Beside rows of the source it is a relation of Spark like any other.
    found = db.sql(
        "SELECT h.version, h.change_type, h.column_name, h.old_type, h.new_type, h.old_name, h.trigger "
        "FROM laminar_catalog.schema_history h JOIN orders o ON o.id = 1 "
        "WHERE h.source_name = 'orders' ORDER BY h.version, h.column_name"
    ).fetchall()
    assert found == [
        (1, "ColumnAdded", "amount", None, "INT", None, "Created"),
        (1, "ColumnAdded", "id", None, "BIGINT NOT NULL", None, "Created"),
        (1, "ColumnAdded", "note", None, "STRING", None, "Created"),
        (2, "TypeWidened", "amount", "INT", "BIGINT", None, "Ddl"),
        (3, "ColumnRenamed", "cents", None, None, "amount", "Ddl"),
    ]


def test_incompatible_rejected(db: lm.Database, pipeline: Pipeline, tmp_path: Path) -> None:
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = FULL")
    with pytest.raises(IncompatibleChange, match="amount"):
        db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE SMALLINT")
    push(db, pipeline, {"id": 2, "amount": 70_000})
    assert db.version("orders") == 1
    assert [row["amount"] for row in delivered(tmp_path)] == [1, 70_000]


def test_transitive_compatibility(db: lm.Database, pipeline: Pipeline, tmp_path: Path) -> None:
    """Compatible with the latest version, not with the first, which had a column that was dropped on the way."""
    db.sql("ALTER SOURCE orders DROP COLUMN amount")
    again = "ALTER SOURCE orders ADD COLUMN amount STRING"
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = FULL_TRANSITIVE")
    with pytest.raises(EvolutionRejected, match="against version 1"):
        db.sql(again)
    push(db, pipeline, {"id": 2})
    db.sql("ALTER SOURCE orders SET COMPATIBILITY = FULL")
    db.sql(again)
    push(db, pipeline, {"id": 3, "amount": "three"})
    assert delivered(tmp_path) == [
        {"id": 1, "amount": 1, "note": "first"},
        {"id": 2, "note": None},
        {"id": 3, "note": None, "amount": "three"},
    ]
