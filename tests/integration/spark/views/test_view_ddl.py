"""CREATE, REPLACE and DROP of views in the middle of an epoch: nothing missed, counted twice or resurrected."""

from __future__ import annotations

from collections import Counter

import pytest

import laminae as lm
from laminae.engine import faults

BEFORE = {
    "steady": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k",
    "kept": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k",
    "remade": "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    "gone": "SELECT k, v FROM t",
}
AFTER = {
    "fresh": "SELECT v, COUNT(*) AS n FROM t GROUP BY v",
    "kept": "SELECT k, SUM(v) AS s FROM t GROUP BY k",
    "remade": "SELECT v % 2 AS odd, COUNT(*) AS n FROM t GROUP BY v % 2",
}
EPOCHS = ([("a", 1), ("b", 2)], [("a", 3), ("c", 2)], [("b", 5), ("a", 1)])


@pytest.fixture
def home(tmp_path):
    yield str(tmp_path / "home")
    faults.clear()


@pytest.mark.parametrize("point", ["epoch planned", "rows written", "views computed", "files synced"])
def test_views_that_change_while_an_epoch_runs_have_every_row_once(spark, home, point):
    with lm.connect(home, spark=spark) as db, lm.connect(home) as other:
        db.sql("CREATE SOURCE t (k STRING, v INT) WITH (connector = 'push')")
        for name, query in BEFORE.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        insert(db, EPOCHS[0])
        db.run()
        faults.install(point, once(lambda: change(other)))
        insert(db, EPOCHS[1])
        pipeline = db.start("0 seconds")
        try:
            pipeline.process_all_available()
            assert {view.name for view in db._catalog.views()} == {"steady", *AFTER}
            db.sql("CREATE MATERIALIZED VIEW gone AS SELECT COUNT(*) AS n FROM t")
            insert(db, EPOCHS[2])
            pipeline.process_all_available()
        finally:
            pipeline.stop()
        # What the pipeline had not come to is made live.
        db.run()
        rows = [row for epoch in EPOCHS for row in epoch]
        expected = {
            "steady": Counter(
                (k, sum(k == each for each, _ in rows), sum(v for each, v in rows if each == k)) for k in "abc"
            ),
            "fresh": Counter((v, n) for v, n in Counter(v for _, v in rows).items()),
            "kept": Counter((k, sum(v for each, v in rows if each == k)) for k in "abc"),
            "remade": Counter((odd, n) for odd, n in Counter(v % 2 for _, v in rows).items()),
            "gone": Counter([(len(rows),)]),
        }
        for name, wanted in expected.items():
            assert Counter(db.sql("SELECT * FROM " + name).fetchall()) == wanted, name  # noqa: S608
            assert integrated(db, name) == wanted, name


def change(db) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW fresh AS {AFTER['fresh']}")
    for name in ("kept", "remade"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {AFTER[name]}")
    db.sql("DROP MATERIALIZED VIEW gone")


def once(act):
    waiting = [act]
    return lambda: waiting.pop()() if waiting else None


def insert(db, rows) -> None:
    db.insert("t", [{"k": k, "v": v} for k, v in rows])


def integrated(db, view: str) -> Counter:
    found: Counter[tuple] = Counter()
    for _, _, weight, _, *values in db.changes(view).fetchall():
        found[tuple(values)] += weight
        assert found[tuple(values)] >= 0
    return +found
