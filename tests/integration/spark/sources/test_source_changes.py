"""What a source that changes rows gives to those who follow it, in SQL, in Python and to sinks; rows too far ahead."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.updates import SetViewState
from laminae.errors import InvalidOption, QueryFailed, UnsupportedSql

if TYPE_CHECKING:
    import laminae as lm


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def lines(directory) -> list[dict]:
    return [json.loads(line) for file in sorted(directory.glob("*.json")) for line in file.read_text().splitlines()]


def told(directory) -> list[tuple]:
    own = ("_epoch", "_timestamp")
    return [tuple(value for name, value in line.items() if name not in own) for line in lines(directory)]


def sink(db, name: str, relation: str, path, **options: str) -> None:
    given = {"connector": "files", "format": "json", "path": str(path), **options}
    listed = ", ".join(f"{key} = '{value}'" for key, value in given.items())
    db.sql(f"CREATE SINK {name} FROM {relation} WITH ({listed})")


def test_tables_and_retractions_are_followed_as_changes(db, tmp_path):
    db.sql("CREATE SOURCE users (id INT, city STRING, PRIMARY KEY (id)) WITH (changelog = 'upsert')")
    db.sql("CREATE SOURCE moves (city STRING, act STRING) WITH (changelog = 'retract', op_field = 'act')")
    for name, relation, options in (
        ("every", "users", {}),
        ("net", "users", {"mode": "upsert"}),
        ("taken", "moves", {}),
    ):
        sink(db, name, relation, tmp_path / name, **options)
    with pytest.raises(InvalidOption, match="source users retracts rows"):
        sink(db, "no", "users", tmp_path / "no", mode="append")
    with pytest.raises(InvalidOption, match="no columns of source moves identify its rows"):
        sink(db, "no", "moves", tmp_path / "no", mode="upsert")
    with pytest.raises(UnsupportedSql, match="CHANGES OF in a materialized view"):
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT city FROM CHANGES OF users")
    assert db.changes("users").fetchall() == []
    db.insert("users", [{"id": 1, "city": "x"}])
    db.insert("moves", [{"city": "x", "act": "+I"}, {"city": "y", "act": "insert"}])
    db.run()
    db.insert("users", [{"id": 1, "city": "z"}])
    db.insert("moves", [{"city": "x", "act": "delete"}])
    db.run()
    users = [("+I", 1, 1, "x"), ("-U", -1, 1, "x"), ("+U", 1, 1, "z")]
    assert [(op, weight, *rest) for _, op, weight, _, *rest in db.changes("users").fetchall()] == users
    assert rows(db, "SELECT _op, _weight, id, city FROM CHANGES OF users") == sorted(users)
    first = db.changes("users").fetchall()[0][0]
    assert len(db.changes("users", first).fetchall()) == 2
    assert told(tmp_path / "every") == users
    assert [row[0] for row in told(tmp_path / "net")] == ["+I", "+U"]
    moves = [("+I", 1, "x", None), ("+I", 1, "y", None), ("-D", -1, "x", None)]
    assert [(op, weight, *rest) for _, op, weight, _, *rest in db.changes("moves").fetchall()] == moves
    assert rows(db, "SELECT c._op, c._weight, c.city, c.act FROM CHANGES OF moves AS c") == sorted(moves)
    assert told(tmp_path / "taken") == moves
    lags = {row["name"]: row["lag"] for row in db.status().to_pylist() if row["kind"] == "sink"}
    assert lags == {"every": 0, "net": 0, "taken": 0}


def test_rows_dated_too_far_ahead_are_dead_letters_and_do_not_move_the_watermark(db):
    db.sql(
        "CREATE SOURCE t (at TIMESTAMP, v INT, WATERMARK FOR at AS at - INTERVAL '0' SECOND) "
        "WITH (max_future = '1 hours')"
    )
    db.sql(
        "CREATE MATERIALIZED VIEW hours AS SELECT window.start AS at, SUM(v) AS v FROM t GROUP BY window(at, '1 hour')"
    )
    now = datetime.now(UTC)
    ahead = now + timedelta(days=3)
    for times in ([now, ahead], [now - timedelta(seconds=1), now + timedelta(minutes=30)]):
        db.insert("t", [{"at": at.isoformat(), "v": 1} for at in times])
        db.run()
    assert rows(db, "SELECT SUM(v) FROM hours") == [(3,)]
    assert rows(db, "SELECT COUNT(*) FROM t") == [(3,)]
    ((reason,),) = rows(db, "SELECT reason FROM laminar_catalog.dead_letters")
    assert reason.startswith(f"at is more than 1 hours ahead of the record: {ahead:%Y-%m-%d}")
    assert rows(db, "SELECT * FROM laminar_catalog.late_rows") == []
    with pytest.raises(InvalidOption, match="records have already been read without it"):
        db.sql("ALTER SOURCE t SET (max_future = '9 days')")


def test_changes_add_up_to_the_table_when_a_column_with_a_default_was_added(db: lm.Database) -> None:
    db.sql("CREATE SOURCE u (k INT NOT NULL, a INT, PRIMARY KEY (k)) WITH (changelog = 'upsert')")
    db.insert("u", [{"k": 1, "a": 1}, {"k": 2, "a": 1}])
    db.run()
    db.sql("ALTER SOURCE u ADD COLUMN c INT DEFAULT 5")
    db.insert("u", [{"k": 1, "a": 2, "c": 5}])
    db.run()
    for changes in (db.sql("SELECT _weight, k, a, c FROM CHANGES OF u"), db.changes("u")):
        net: Counter[tuple[int, int, int]] = Counter()
        for row in changes.arrow().to_pylist():
            net[row["k"], row["a"], row["c"]] += row["_weight"]
        assert +net == Counter({(1, 2, 5): 1, (2, 1, 5): 1})


def test_changes_of_views_that_show_every_column_have_the_default_of_one_that_was_added(db: lm.Database) -> None:
    db.sql("CREATE SOURCE u (k INT NOT NULL, a INT, PRIMARY KEY (k)) WITH (changelog = 'upsert')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM u WHERE a > 0")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM v WHERE k < 10")
    db.insert("u", [{"k": 1, "a": 1}, {"k": 2, "a": 1}])
    db.run()
    db.sql("ALTER SOURCE u ADD COLUMN c INT DEFAULT 5")
    db.insert("u", [{"k": 1, "a": 2, "c": 5}])
    db.run()
    queries = ("SELECT _weight, k, a, c FROM CHANGES OF v", "SELECT _weight, k, a, c FROM CHANGES OF w")
    for changes in (*map(db.sql, queries), db.changes("v"), db.changes("w")):
        net: Counter[tuple[int, int, int]] = Counter()
        for row in changes.arrow().to_pylist():
            net[row["k"], row["a"], row["c"]] += row["_weight"]
        assert {row: weight for row, weight in net.items() if weight} == {(1, 2, 5): 1, (2, 1, 5): 1}


@pytest.mark.parametrize("query", ["SELECT * FROM u", "SELECT * FROM v"])
def test_a_view_that_catches_up_reads_the_default_of_a_column_that_was_added_meanwhile(
    db: lm.Database, query: str
) -> None:
    db.sql("CREATE SOURCE u (k INT NOT NULL, a INT, PRIMARY KEY (k)) WITH (changelog = 'upsert')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM u")
    db.sql("CREATE MATERIALIZED VIEW w AS " + query)
    db.insert("u", [{"k": 1, "a": 1}])
    db.run()
    w = db._catalog.view("w")
    db._catalog.commit([SetViewState(w.id, "failed", "for a test", db._catalog.last_epoch())])
    db.insert("u", [{"k": 2, "a": 1}])
    db.run()
    db.sql("ALTER SOURCE u ADD COLUMN c INT DEFAULT 5")
    db.sql("ALTER MATERIALIZED VIEW w RESUME")
    db.run()
    assert rows(db, "SELECT * FROM w") == [(1, 1, 5), (2, 1, 5)]
    net: Counter[tuple[int, int, int]] = Counter()
    for row in db.changes("w").arrow().to_pylist():
        net[row["k"], row["a"], row["c"]] += row["_weight"]
    assert net == Counter({(1, 1, 5): 1, (2, 1, 5): 1})


def test_changes_from_before_a_rename_are_refused_with_the_epoch_to_begin_at(db: lm.Database) -> None:
    db.sql("CREATE SOURCE u (k INT NOT NULL, a INT, PRIMARY KEY (k)) WITH (changelog = 'upsert')")
    db.insert("u", [{"k": 1, "a": 1}])
    db.run()
    db.sql("ALTER SOURCE u RENAME COLUMN a TO b")
    db.insert("u", [{"k": 2, "b": 2}])
    db.run()
    with pytest.raises(QueryFailed, match="column a of u has another name since epoch 1"):
        db.changes("u")
    assert [row["b"] for row in db.changes("u", since_epoch=1).arrow().to_pylist()] == [2]


def test_a_view_that_catches_up_with_one_that_shows_no_old_rows_counts_each_row_once(db: lm.Database) -> None:
    db.sql("CREATE SOURCE o (k STRING, q INT)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(q) AS t FROM o GROUP BY k EMIT ON UPDATE")
    db.sql("CREATE MATERIALIZED VIEW whole AS SELECT COUNT(*) AS n, SUM(t) AS s FROM totals")
    db.insert("o", [{"k": "a", "q": 1}])
    db.run()
    view = db._catalog.view("whole")
    assert view is not None
    failed = SetViewState(view.id, "failed", "made to fail", db._catalog.last_epoch(), if_there=True)
    db._catalog.commit([failed])
    db.insert("o", [{"k": "a", "q": 2}])
    db.run()
    db.sql("ALTER MATERIALIZED VIEW whole RESUME")
    db.run()
    assert db.sql("SELECT n, s FROM whole").fetchall() == [(1, 3)]
    assert [row["_op"] for row in db.changes("totals").arrow().to_pylist()] == ["+I", "+U"]


def test_late_rows_are_counted_once_and_so_are_the_others(db: lm.Database) -> None:
    db.sql("CREATE SOURCE w (ts TIMESTAMP, a INT, WATERMARK FOR ts AS ts - INTERVAL '0' SECOND)")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT window.start AS st, COUNT(*) AS n FROM w GROUP BY window(ts, '1 minute')"
    )
    db.insert("w", [{"ts": "2024-01-01T00:10:00Z", "a": 1}])
    db.run()
    db.insert("w", [{"ts": f"2024-01-01T00:{minute}:10Z", "a": 2} for minute in ("00", "11", "12")])
    db.run()
    assert db.sql("SELECT rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall() == [(1,), (3,)]


def test_a_view_that_takes_nothing_hides_no_bad_record(db: lm.Database) -> None:
    db.sql("CREATE SOURCE p (a INT)")
    db.sql("CREATE MATERIALIZED VIEW pv AS SELECT a FROM p WHERE 1 = 0")
    db.insert("p", [{"a": 1}, {"a": "x"}])
    db.run()
    assert db.sql("SELECT rows, dead_letters FROM laminar_catalog.epochs").fetchall() == [(1, 1)]
