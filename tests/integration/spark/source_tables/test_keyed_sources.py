"""Sources that keep a table by their primary key: which record counts, what they show, what views see of them."""

from __future__ import annotations

import json

import pytest

from laminae.spark.views.reading.relation import relation_changes

USERS = "CREATE SOURCE users (id INT, name STRING, city STRING, gone BOOLEAN, PRIMARY KEY (id)) WITH ({})"
UPSERT = "changelog = 'upsert', deleted_by = 'gone'"
CITIES = "CREATE MATERIALIZED VIEW cities AS SELECT city, COUNT(*) AS n FROM users GROUP BY city"


def user(number: int | None, name: str | None, city: str | None = None, gone: bool | None = None) -> dict[str, object]:
    return {"id": number, "name": name, "city": city, "gone": gone}


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def ops(db, view: str) -> list[tuple]:
    return [(op, *rest) for _, op, _, _, *rest in db.changes(view).fetchall()]


def told(db, source: str) -> list[tuple[int, int, int]]:
    """(rows, anomalies, dropped) of each epoch of a source's table."""
    found = db._catalog.advances(db._engine.source(source).id)
    return [(each.rows, each.anomalies, each.dropped) for each in found]


def write_lines(path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_upserts_of_a_push_source_reach_views_as_changes_of_rows(db):
    db.sql(USERS.format(UPSERT))
    db.sql(CITIES)
    db.insert("users", [user(1, "a", "x"), user(2, "b", "x"), user(1, "c", "y"), user(None, "d", "x")])
    db.run()
    assert rows(db, "SELECT id, name, city FROM users") == [(1, "c", "y"), (2, "b", "x")]
    assert rows(db, "SELECT * FROM cities") == [("x", 1), ("y", 1)]
    letters = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert letters == [("id is NULL and part of the PRIMARY KEY",)]
    # Two inserts in one epoch: the later one counts. A delete of what was never there is told.
    db.insert("users", [user(2, "b", "y"), user(7, None, gone=True)])
    db.insert("users", [user(2, "b", "z"), user(1, None, gone=True)])
    db.run()
    assert rows(db, "SELECT id, name, city FROM users") == [(2, "b", "z")]
    assert sorted(ops(db, "cities"))[:2] == [("+I", "x", 1), ("+I", "y", 1)]
    assert rows(db, "SELECT * FROM cities") == [("z", 1)]
    assert told(db, "users") == [(2, 0, 0), (3, 1, 0)]
    # A later view is filled from the table.
    db.sql("CREATE MATERIALIZED VIEW named AS SELECT name, COUNT(*) AS n FROM users GROUP BY name")
    db.run()
    assert rows(db, "SELECT * FROM named") == [("b", 1)]
    last = db._catalog.last_epoch()
    changes = relation_changes(db._on_spark().spark, db._catalog, db._on_spark().storage, "users", 0, last)
    assert sum(row["_weight"] for row in changes.collect()) == 1


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_last_line_of_the_last_file_counts(db, inbox, kind):
    options = f"connector = 'files', format = '{kind}', path = '{inbox}', changelog = 'upsert'"
    db.sql(f"CREATE SOURCE users (id INT, name STRING, PRIMARY KEY (id)) WITH ({options})")
    for number in (2, 1):
        named = (
            [{"id": i % 50, "name": f"{number}-{i}"} for i in range(500)]
            if number == 2
            else [{"id": 3, "name": "late"}]
        )
        path = inbox / f"part-{3 - number}.{kind}"
        if kind == "json":
            write_lines(path, named)
        else:
            path.write_text("id,name\n" + "".join(f'{row["id"]},"{row["name"]}"\n' for row in named))
    db.run()
    expected = {i: f"2-{450 + i}" for i in range(50)} | {3: "late"}
    assert dict(rows(db, "SELECT id, name FROM users")) == expected


def test_a_sequence_orders_events_and_drops_those_that_come_late(db):
    db.sql(
        "CREATE SOURCE users (id INT, seq BIGINT, name STRING, gone BOOLEAN, PRIMARY KEY (id)) "
        "WITH (changelog = 'upsert', sequence_by = 'seq', deleted_by = 'gone')"
    )
    event = {"id": 1, "gone": False}
    db.insert("users", [{**event, "seq": 5, "name": "e"}, {**event, "seq": 4, "name": "d"}])
    db.run()
    assert rows(db, "SELECT name FROM users") == [("e",)]
    db.insert("users", [{**event, "seq": 9, "gone": True}, {**event, "seq": 8, "name": "h"}])
    db.run()
    db.sql("ALTER SOURCE users RENAME COLUMN seq TO place")
    db.sql("ALTER SOURCE users RENAME COLUMN name TO called")
    db.insert("users", [{"id": 1, "place": 7, "called": "g"}, {"id": 2, "place": 1, "called": "b"}])
    db.run()
    assert rows(db, "SELECT id, place, called FROM users") == [(2, 1, "b")]
    assert told(db, "users") == [(1, 0, 1), (1, 0, 1), (1, 0, 1)]


def test_retractions_take_rows_back_by_weight_or_operation(db):
    db.sql("CREATE SOURCE moves (city STRING, w INT) WITH (changelog = 'retract', weight_field = 'w')")
    db.sql("CREATE SOURCE events (city STRING, _op STRING) WITH (changelog = 'retract', op_field = '_op')")
    db.sql("CREATE MATERIALIZED VIEW moves_by_city AS SELECT city, COUNT(*) AS n FROM moves GROUP BY city")
    db.sql("CREATE MATERIALIZED VIEW events_by_city AS SELECT city, COUNT(*) AS n FROM events GROUP BY city")
    db.insert("moves", [{"city": "x", "w": 3}, {"city": "y", "w": -1}, {"city": "z", "w": 0}, {"city": "x", "w": -1}])
    operations = ["+I", "-U", "insert", "update_postimage", "replace", None]
    db.insert("events", [{"city": "x", "_op": operation} for operation in operations])
    db.run()
    assert rows(db, "SELECT * FROM moves_by_city") == [("x", 2)]
    assert rows(db, "SELECT * FROM events_by_city") == [("x", 2)]
    assert rows(db, "SELECT city, w FROM moves") == [("x", None), ("x", None)]
    assert rows(db, "SELECT reason FROM laminar_catalog.dead_letters") == [
        ("_op is not an operation: replace",),
        ("_op, which holds the change of the record, is NULL",),
    ]
    # What was taken back before it came is not forgotten, neither by a view nor by one that is made later.
    db.sql("CREATE MATERIALIZED VIEW later AS SELECT city, COUNT(*) AS n FROM moves GROUP BY city")
    db.insert("moves", [{"city": "y", "w": 2}])
    db.run()
    assert rows(db, "SELECT * FROM later") == rows(db, "SELECT * FROM moves_by_city") == [("x", 2), ("y", 1)]


def envelope(op: str, lsn: int | None, after=None, before=None) -> dict[str, object]:
    return {"op": op, "before": before, "after": after, "source": {"lsn": lsn, "db": "shop"}, "ts_ms": 1}


def test_debezium_events_keep_the_table_by_their_own_order(db, inbox):
    db.sql(
        "CREATE SOURCE users (id INT NOT NULL, name STRING, credit DECIMAL(20, 4), PRIMARY KEY (id)) "
        f"WITH (connector = 'files', path = '{inbox}', format = 'debezium-json')"
    )
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(credit) AS c FROM users")
    events = [
        envelope("r", 10, {"id": 1, "name": "a"}),
        envelope("c", 11, {"id": 2, "name": "b"}),
        {"schema": {"type": "struct"}, "payload": envelope("u", 13, {"id": 1, "name": "c"})},
        envelope("u", 12, {"id": 1, "name": "late"}),
        envelope("d", 14, before={"id": 2, "name": None}),
        envelope("c", 15, {"id": 3, "name": "x"}),
        envelope("m", 16),
        None,
        envelope("z", 17, {"id": 4, "name": "x"}),
        envelope("c", None, {"id": 4, "name": "x"}),
        envelope("c", 18, {"id": "four", "name": "x"}),
    ]
    exact = '{"op":"c","after":{"id":5,"credit":1234567890123456.7890},"source":{"lsn":19}}'
    lines = [*map(json.dumps, events), exact, '{"op": "c", "after"']
    (inbox / "1.json").write_text("\n".join(lines) + "\n")
    db.run()
    assert rows(db, "SELECT id, name, CAST(credit AS STRING) FROM users") == [
        (1, "c", None),
        (3, "x", None),
        (5, None, "1234567890123456.7890"),
    ]
    assert rows(db, "SELECT n FROM total") == [(3,)]
    # One event was late, one a message, one a tombstone.
    assert told(db, "users") == [(3, 0, 3)]
    found = db.sql("SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters").fetchall()
    reasons = dict(found)
    assert reasons[json.dumps(events[8])] == "op is not one of c, r, u, d, t and m: z"
    assert reasons[json.dumps(events[9])] == "source.lsn, which orders events, is missing"
    assert "id" in reasons[json.dumps(events[10])]
    assert len(found) == 4
    more = [envelope("t", 30), envelope("c", 31, {"id": 7, "name": "new"}), envelope("u", 29, {"id": 1, "name": "old"})]
    write_lines(inbox / "2.json", more)
    db.run()
    assert rows(db, "SELECT id, name FROM users") == [(7, "new")]
    assert rows(db, "SELECT n FROM total") == [(1,)]
