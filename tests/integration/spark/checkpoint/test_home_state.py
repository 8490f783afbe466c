"""laminae's own state under the same rules: a home is checked, and a savepoint goes on in a changed application."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import laminae as lm
import laminae.spark.checkpoint.session
from laminae.cli.app import main
from laminae.errors import StateEvolutionDisabled
from laminae.state import check_home, migrate_checkpoint, start
from laminae.state.compatibility import Kind
from tests.support.stateful import CHANGES, FIRST, METADATA, QUERIES, put, run, session_for, tree_hash

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOTALS = "SELECT customer, SUM(qty) AS qty, MAX(qty) AS most FROM orders GROUP BY customer"
ANOTHER = "SELECT customer, COUNT(note) AS notes, SUM(qty) AS qty, MAX(qty) AS most FROM orders GROUP BY customer"


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Path:
    """Two orders under the first schema, pinned; then the schema evolved, and a third order."""
    place = tmp_path / "home"
    with lm.connect(str(place), spark=spark) as db:
        db.sql("CREATE SOURCE orders (id BIGINT, customer STRING, qty INT) WITH (compatibility = 'NONE')")
        db.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        db.insert("orders", [{"id": 1, "customer": "a", "qty": 2}, {"id": 2, "customer": "b", "qty": 3}])
        db.run()
        db.savepoint("before")
        db.sql("ALTER SOURCE orders ADD COLUMN note STRING")
        db.sql("ALTER SOURCE orders ALTER COLUMN qty TYPE BIGINT")
        db.insert("orders", [{"id": 3, "customer": "a", "qty": 2**40, "note": "large"}])
        db.run()
    return place


def totals(db: lm.Database) -> list[tuple[object, ...]]:
    return sorted(db.sql("SELECT * FROM totals").fetchall())


def test_the_state_of_a_home_is_checked_now_and_at_its_savepoints(spark: SparkSession, home: Path) -> None:
    before = tree_hash(home / "state")
    report = check_home(str(home), spark=spark)
    assert report.is_compatible
    assert {(one.place, one.relation) for one in report.traces} == {("now", "totals"), ("before", "totals")}
    kept = {(one.place, one.trace.partition(":")[0]): one for one in report.traces}
    # The values that MAX keeps were INT in the pinned runs and are BIGINT now: they are widened when they are read.
    assert kept["before", "values"].kind is Kind.AFTER_MIGRATION
    assert kept["before", "values"].rows == 2
    assert tree_hash(home / "state") == before


def test_a_damaged_run_is_found(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(laminae.spark.checkpoint.session, "started_session", lambda settings: spark)
    for place in (home / "state").rglob("*.run"):
        place.write_bytes(place.read_bytes()[:-8])
    monkeypatch.setattr("sys.argv", ["laminae", "state", "check", str(home), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = json.loads(capsys.readouterr().out)
    assert (ended.value.code, told["kind"]) == (1, "incompatible")
    assert all("bytes" in one["problem"] for one in told["traces"])


def test_a_savepoint_goes_on_in_a_changed_application(spark: SparkSession, home: Path) -> None:
    with lm.connect(str(home), spark=spark, from_savepoint="before") as db:
        assert totals(db) == [("a", 2, 2), ("b", 3, 3)]
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals AS {ANOTHER}")
        db.run()
        assert totals(db) == [("a", 1, 2**40 + 2, 2**40), ("b", 0, 3, 3)]
        assert check_home(str(home), spark=spark).is_compatible


def test_the_setting_of_a_home_enables_the_migration_of_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    query, place, inbox = QUERIES["aggregation"], str(tmp_path / "home"), tmp_path / "in"
    session, old, target = session_for(spark, query), str(tmp_path / "old"), str(tmp_path / "new")
    put(inbox, "first", FIRST)
    run(query.build(inbox, METADATA), session, old)
    new = query.build(inbox, CHANGES["all at once"])
    with lm.connect(place) as db:
        with pytest.raises(StateEvolutionDisabled):
            start(new, old, target, spark=session, home=place)
        db.sql("SET state.schema-evolution.enable = false")
        with pytest.raises(StateEvolutionDisabled):
            migrate_checkpoint(old, target, new, spark=session, home=place)
        db.sql("SET state.schema-evolution.enable = true")
        start(lambda spark: new(spark).format("noop"), old, target, spark=session, home=place).awaitTermination()
        assert check_home(place, spark=session).is_enabled
