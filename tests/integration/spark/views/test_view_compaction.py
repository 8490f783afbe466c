"""A view over a log with many epochs: SELECT, `changes`, a view above it, a new sink and a restart after a merge."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.engine.retention import changelog_compaction as compaction
from laminae.engine.retention.changelog_compaction import pieces_of
from laminae.errors import ChangelogExpired
from laminae.spark.driver.gc import collect
from laminae.spark.driver.pipeline import now
from laminae.spark.driver.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

EPOCHS = 6


@pytest.fixture
def few(monkeypatch):
    """So that a handful of epochs is many."""
    monkeypatch.setattr(compaction, "LEAST_SEGMENTS", EPOCHS)


def files(db: lm.Database, view: str) -> int:
    """How many files a SELECT opens."""
    return sum(len(piece.files) for piece in pieces_of(db._catalog, db._catalog.view(view).id))


def opened(db: lm.Database, view: str) -> int:
    """The same as Spark says it."""
    return len(db.sql(f"SELECT * FROM {view}").spark().inputFiles())  # noqa: S608


def grow_old(home: Path) -> None:
    long_ago = time.time() - 3 * 24 * 3600
    for file in (home / "sources").rglob("*"):
        os.utime(file, (long_ago, long_ago))


def test_a_view_without_state_is_read_from_merged_files_and_nobody_sees_a_difference(db, few, spark, tmp_path):
    db.sql("CREATE SOURCE s (id BIGINT, v INT) WITH (connector = 'push')")
    db.sql(
        "CREATE SOURCE k (id BIGINT NOT NULL, v INT, PRIMARY KEY (id)) WITH (connector = 'push', changelog = 'upsert')"
    )
    db.sql("CREATE MATERIALIZED VIEW star AS SELECT * FROM s")
    db.sql("CREATE MATERIALIZED VIEW late WITH (backfill = 'false') AS SELECT id, v * 2 AS w FROM k")
    pipeline = db.start(trigger="1 second")
    for number in range(EPOCHS - 1):
        db.insert("s", [{"id": number, "v": number}])
        db.insert("k", [{"id": 1, "v": number}])
        pipeline.process_all_available()
    db.sql("ALTER SOURCE s RENAME COLUMN v TO w")
    db.sql("ALTER SOURCE s ADD COLUMN c INT DEFAULT 7")
    db.insert("s", [{"id": 99, "w": 99, "c": 1}])
    db.insert("k", [{"id": 1, "v": 50}, {"id": 2, "v": 60}])
    pipeline.process_all_available()
    pipeline.stop()
    # An epoch of `late` may have a file for each of two shards.
    assert opened(db, "star") == files(db, "star") == EPOCHS
    assert opened(db, "late") == files(db, "late") >= EPOCHS
    # A driver looks at all changelogs when it has started.
    db.run()
    assert (opened(db, "star"), opened(db, "late")) == (files(db, "star"), files(db, "late")) == (1, 1)
    rows = [*((number, number, 7) for number in range(EPOCHS - 1)), (99, 99, 1)]
    check(db, rows)
    changes = db.changes("late").arrow().to_pylist()
    assert len({each["_epoch"] for each in changes}) == EPOCHS
    assert sum(each["_weight"] for each in changes) == 2

    db.sql("CREATE MATERIALIZED VIEW above AS SELECT SUM(w) AS total, COUNT(*) AS n FROM star")
    db.sql(f"CREATE SINK out FROM star WITH (connector = 'files', path = '{tmp_path / 'out'}')")
    db.run()
    assert db.sql("SELECT * FROM above").fetchall() == [(sum(row[1] for row in rows), len(rows))]
    delivered = [row for file in (tmp_path / "out").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert sorted((row["id"], row["w"], row["c"]) for row in delivered) == rows

    db.savepoint("p")
    db.sql("SET changelog_retention = '1 day'")
    grow_old(tmp_path / "home")
    storage = Storage(tmp_path / "home")
    removed = collect(db._catalog, storage, now() + timedelta(hours=2), dry_run=False)
    assert not [each for each in removed if (each.source, each.kind) == ("star", "changes")]
    db.drop_savepoint("p")
    removed = collect(db._catalog, storage, now() + timedelta(hours=2), dry_run=False)
    assert {each.kind for each in removed if each.source == "star"} == {"changes"}
    with pytest.raises(ChangelogExpired):
        db.changes("star")
    check(db, rows)
    db.close()
    with lm.connect(str(tmp_path / "home"), spark=spark) as again:
        again.insert("s", [{"id": 100, "w": 1, "c": 2}])
        again.insert("k", [{"id": 2, "v": 0}])
        again.run()
        assert sorted(again.sql("SELECT * FROM star").fetchall()) == [*rows, (100, 1, 2)]
        assert sorted(again.sql("SELECT * FROM late").fetchall()) == [(1, 100), (2, 0)]
        assert again.sql("SELECT n FROM above").fetchall() == [(len(rows) + 1,)]


def check(db: lm.Database, rows: list[tuple[int, int, int]]) -> None:
    assert sorted(db.sql("SELECT * FROM star").fetchall()) == rows
    assert sorted(db.sql("SELECT * FROM late").fetchall()) == [(1, 100), (2, 120)]
    assert db.sql("SELECT COUNT(*) FROM star WHERE c = 7").fetchall() == [(EPOCHS - 1,)]
