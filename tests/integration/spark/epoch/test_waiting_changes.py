"""Records whose new fields wait for a person are set aside with the change's number, and come back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import laminae as lm
from laminae.spark.driver.gc import collect
from laminae.spark.driver.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LETTERS = "SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters WHERE replayed_by IS NULL ORDER BY 1"


def status_of(db: lm.Database) -> str:
    return next(str(row["detail"]) for row in db.status().to_pylist() if row["kind"] == "source")


def answer(db: lm.Database, statement: str) -> tuple[str, str]:
    ((status, _, _, detail),) = db.sql(statement).fetchall()
    return status, detail


def test_records_that_wait_for_a_change_keep_their_values_until_it_is_confirmed(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    with lm.connect(home, spark=spark) as db:
        db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm')")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s")
        db.insert("s", [{"id": 1}, {"id": 2, "b": "new"}])
        db.run()
        ((change,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
        assert db.sql(LETTERS).fetchall() == [
            (
                '{"id":2,"b":"new"}',
                f"waits for confirmation of change {change}: the record has a field that the source does not have yet",
            )
        ]
        assert f"change {change}" in status_of(db)
        db.insert("s", [{"id": 3}])
    with lm.connect(home, spark=spark) as db:
        db.run()
        assert db.sql("SELECT id FROM s ORDER BY id").fetchall() == [(1,), (3,)]
        assert answer(db, f"ALTER SOURCE s CONFIRM CHANGE {change}") == (
            "applied",
            "b: add STRING; records that waited for it are replayed by the next run",
        )
        assert "change" not in status_of(db)
    with lm.connect(home, spark=spark) as db:
        db.run()
        for _ in range(2):
            assert db.sql("SELECT id, b FROM s ORDER BY id").fetchall() == [(1, None), (2, "new"), (3, None)]
            assert db.sql("SELECT n FROM v").fetchall() == [(3,)]
            assert db.sql(LETTERS).fetchall() == []
            db.run()


def test_records_that_waited_for_a_rejected_change_come_back_without_its_fields(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    with lm.connect(home, spark=spark) as db:
        db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm')")
        db.insert("s", [{"id": 1}, {"id": 2, "b": "new"}])
        db.run()
        ((change,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
        status, detail = answer(db, f"ALTER SOURCE s REJECT CHANGE {change}")
        assert status == "rejected"
        assert "laminae dead-letters replay s" in detail
        assert db.sql("SELECT * FROM laminar_catalog.pending_changes").fetchall() == []
    with lm.connect(home, spark=spark) as db:
        db.insert("s", [{"id": 3, "b": "again"}])
        db.run()
        assert db.sql("SELECT * FROM s ORDER BY id").fetchall() == [(1,), (3,)]
        assert [value for value, _ in db.sql(LETTERS).fetchall()] == ['{"id":2,"b":"new"}']
        assert db.replay_dead_letters("s").rows == 1
        assert db.sql("SELECT * FROM s ORDER BY id").fetchall() == [(1,), (2,), (3,)]
        assert db.sql(LETTERS).fetchall() == []


def test_letters_that_wait_are_kept_until_the_change_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=30)
    with lm.connect(str(tmp_path / "home"), spark=spark) as db:
        db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm', dead_letter_retention = '1 day')")
        db.insert("s", [{"id": 1}, {"id": 2, "b": "new"}])
        db.run()
        ((change,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
        assert collect(db._catalog, Storage(tmp_path / "home"), later, dry_run=False) == ()
        assert db.sql("SELECT id FROM s ORDER BY id").fetchall() == [(1,)]
        # Confirmed, and not replayed yet: the next run puts them through.
        db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
        assert collect(db._catalog, Storage(tmp_path / "home"), later, dry_run=False) == ()
        db.run()
        assert db.sql("SELECT id, b FROM s ORDER BY id").fetchall() == [(1, None), (2, "new")]
        db.insert("s", [{"id": 3, "c": "other"}])
        db.run()
        ((other,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
        db.sql(f"ALTER SOURCE s REJECT CHANGE {other}")
        (gone,) = collect(db._catalog, Storage(tmp_path / "home"), later, dry_run=False)
        assert "dead_letters" in gone.path
        assert db.sql(LETTERS).fetchall() == []
        # No row without its field has taken the place of the record.
        assert db.sql("SELECT id, b FROM s ORDER BY id").fetchall() == [(1, None), (2, "new")]


def test_reading_a_source_whose_records_waited_opens_no_letters(db: lm.Database, tmp_path: Path) -> None:
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm')")
    db.insert("s", [{"id": 1}, {"id": 2, "b": "new"}])
    db.run()
    db.insert("s", [{"id": 3}])
    db.run()
    letters = [file for file in (tmp_path / "home").rglob("*.parquet") if "dead_letters" in file.parts]
    assert letters
    for file in letters:
        file.unlink()
    assert db.sql("SELECT id FROM s ORDER BY id").fetchall() == [(1,), (3,)]


def test_a_change_that_came_to_nothing_by_another_one_is_asked_for_again(db: lm.Database) -> None:
    db.sql("CREATE SOURCE s (id BIGINT) WITH (evolve = 'confirm')")
    db.insert("s", [{"id": 1, "b": "x"}])
    db.run()
    db.insert("s", [{"id": 2, "c": "y"}])
    db.run()
    first, second = db.sql("SELECT id FROM laminar_catalog.pending_changes ORDER BY id").fetchall()
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {first[0]}")
    db.run()
    assert db.sql("SELECT id, b FROM s").fetchall() == [(1, "x")]
    ((third,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    assert third not in (first[0], second[0])
    ((value, reason),) = db.sql(LETTERS).fetchall()
    assert (value, reason.startswith(f"waits for confirmation of change {third}: ")) == ('{"id":2,"c":"y"}', True)
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {third}")
    db.run()
    assert db.sql("SELECT id, b, c FROM s ORDER BY id").fetchall() == [(1, "x", None), (2, None, "y")]
