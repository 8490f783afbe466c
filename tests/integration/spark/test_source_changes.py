"""What a source that changes rows gives to those who follow it, in SQL, in Python and to sinks; rows too far ahead."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from laminae.errors import InvalidOption, UnsupportedSql


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
    with pytest.raises(InvalidOption, match="source users takes rows back"):
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
    with pytest.raises(InvalidOption, match="records have been read without it"):
        db.sql("ALTER SOURCE t SET (max_future = '9 days')")
