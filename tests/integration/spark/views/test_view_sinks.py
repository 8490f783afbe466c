"""Sinks of materialized views: they begin with the rows that are there, then follow the changelog, each change once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from laminae.engine import faults
from laminae.errors import ChangelogExpired, DeliveryFailed

ORDERS = "CREATE SOURCE orders (customer STRING, qty INT) WITH (connector = 'push')"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer"


@pytest.fixture
def orders(db):
    db.sql(ORDERS)
    return db


def insert(db, *rows: tuple[str, int]) -> None:
    db.insert("orders", [{"customer": customer, "qty": qty} for customer, qty in rows])


def create(db, out: Path, name: str, relation: str = "totals", **options: str) -> None:
    given = {"connector": "files", "format": "json", "path": str(out / name), **options}
    told = ", ".join(f"{option} = '{value}'" for option, value in given.items())
    db.sql(f"CREATE SINK {name} FROM {relation} WITH ({told})")


def lines(out: Path, name: str) -> list[dict]:
    """Of all files in the order of their epochs."""
    files = sorted((out / name).glob("*.json")) if (out / name).exists() else []
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def told(out: Path, name: str) -> list[tuple]:
    return [(row["_op"], row["customer"], row["q"]) for row in lines(out, name)]


def test_sinks_begin_with_the_rows_of_a_view_and_follow_its_changes(orders, tmp_path):
    out = tmp_path / "out"
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    orders.sql(TOTALS)
    create(orders, out, "early")
    assert orders._catalog.sink("early").state == "creating"
    pipeline = orders.start("0 seconds")
    try:
        pipeline.process_all_available()
        insert(orders, ("a", 1), ("c", 5))
        pipeline.process_all_available()
        for name, options in {
            "later": {},
            "rest": {"snapshot": "false"},
            "keyed": {"mode": "upsert"},
            "events": {"format": "debezium-json"},
        }.items():
            create(orders, out, name, **options)
        pipeline.process_all_available()
        insert(orders, ("b", 3))
        pipeline.process_all_available()
    finally:
        pipeline.stop()
    early = told(out, "early")
    assert sorted(early[:2]) == [("+I", "a", 1), ("+I", "b", 2)]
    assert [row for row in early if row[1] == "a"] == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]
    change = [("-U", "b", 2), ("+U", "b", 5)]
    assert early[-2:] == change
    assert (sorted(told(out, "later")[:3]), told(out, "later")[3:]) == (
        [("+I", "a", 2), ("+I", "b", 2), ("+I", "c", 5)],
        change,
    )
    assert told(out, "rest") == change
    assert told(out, "keyed")[3:] == [("+U", "b", 5)]
    events = lines(out, "events")
    assert [event["op"] for event in events] == ["r", "r", "r", "u"]
    assert (events[3]["before"], events[3]["after"]) == ({"customer": "b", "q": 2}, {"customer": "b", "q": 5})
    assert events[3]["source"]["epoch"] == lines(out, "early")[-1]["_epoch"]
    at = datetime.fromisoformat(lines(out, "early")[-1]["_timestamp"])
    assert events[3]["ts_ms"] == int(at.timestamp() * 1000)


def test_a_sink_that_dies_on_its_snapshot_begins_at_the_same_epoch_again(orders, tmp_path):
    out = tmp_path / "out"
    orders.sql("CREATE MATERIALIZED VIEW large AS SELECT customer, qty AS q FROM orders WHERE qty > 1")
    insert(orders, ("a", 2), ("b", 1))
    orders.run()
    create(orders, out, "kept", "large", mode="append")

    def die() -> None:
        raise OSError("the disk is full")

    faults.install("snapshot written", die)
    try:
        with pytest.raises(DeliveryFailed, match="the disk is full"):
            orders.run()
    finally:
        faults.clear()
    placed = orders._catalog.sink("kept")
    assert (placed.state, "the disk is full" in placed.problem) == ("creating", True)
    insert(orders, ("c", 3))
    orders.run()
    assert sorted((row["customer"], row["q"]) for row in lines(out, "kept")) == [("a", 2), ("c", 3)]
    assert orders._catalog.sink("kept").began == placed.progress
    orders.run()
    assert len(lines(out, "kept")) == 2


def test_a_second_process_watches_and_a_collection_leaves_view_and_sink_whole(orders, tmp_path):
    out, home = tmp_path / "out", Path(orders.home)
    orders.sql(TOTALS)
    create(orders, out, "keyed", mode="upsert")
    command = [sys.executable, "-m", "laminae", "watch", "totals", "--json", "--since", "0", "--home", str(home)]
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(120, watch.kill)
    limit.start()
    pipeline = orders.start("0 seconds")
    try:
        for qty in (1, 2, 3):
            insert(orders, ("a", qty))
            pipeline.process_all_available()
        seen = [json.loads(watch.stdout.readline()) for _ in range(5)]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(60) == 0
    finally:
        limit.cancel()
        watch.kill()
        watch.stdout.close()
        pipeline.stop()
    assert [(row["_op"], row["q"]) for row in seen] == [("+I", 1), ("-U", 1), ("+U", 3), ("-U", 3), ("+U", 6)]
    long_ago = time.time() - 30 * 86_400
    for path in home.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    left = home / "state" / "99" / "of-a-crash.run"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (long_ago, long_ago))
    gone = orders.gc()
    assert [removal.kind for removal in gone if removal.kind != "state"] == ["changes"] * 3
    assert "state/99/of-a-crash.run" in [removal.path for removal in gone]
    assert not list(home.glob("sources/*/changes/*"))
    with pytest.raises(ChangelogExpired):
        orders.changes("totals")
    insert(orders, ("a", 4))
    orders.run()
    assert orders.sql("SELECT customer, q FROM totals").fetchall() == [("a", 10)]
    assert told(out, "keyed") == [("+I", "a", 1), ("+U", "a", 3), ("+U", "a", 6), ("+U", "a", 10)]


def test_a_replaced_view_takes_its_old_rows_back_from_its_sinks(orders, tmp_path):
    out = tmp_path / "out"
    orders.sql(TOTALS)
    create(orders, out, "every")
    create(orders, out, "net", mode="upsert")
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    insert(orders, ("a", 1))
    orders.run()
    before = len(told(out, "every"))
    # The first of the two never comes to live.
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("SUM(qty)", "MIN(qty)"))
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("SUM(qty)", "SUM(qty) * 10"))
    orders.run()
    insert(orders, ("b", 1))
    orders.run()
    after = told(out, "every")[before:]
    assert sorted(after[:4]) == [("+I", "a", 20), ("+I", "b", 20), ("-D", "a", 2), ("-D", "b", 2)]
    assert {op for op, *_ in after[:2]} == {"-D"}
    assert after[4:] == [("-U", "b", 20), ("+U", "b", 30)]
    left: Counter[tuple] = Counter()
    for row in lines(out, "every"):
        left[row["customer"], row["q"]] += row["_weight"]
    assert {row: weight for row, weight in left.items() if weight} == {("a", 20): 1, ("b", 30): 1}
    last = {row["customer"]: (row["_op"], row["q"]) for row in lines(out, "net")}
    assert last == {"a": ("+U", 20), "b": ("+U", 30)}


def put(db, query: str) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS " + query)


def left(out: Path, name: str) -> list[tuple]:
    """What is there for a reader who adds the changes up: whole rows, whatever their columns are."""
    rows: Counter[str] = Counter()
    for row in lines(out, name):
        data = {column: value for column, value in row.items() if not column.startswith("_")}
        rows[json.dumps(data, sort_keys=True)] += row["_weight"]
    return [(json.loads(row), weight) for row, weight in sorted(rows.items()) if weight]


def test_a_view_that_is_replaced_by_an_empty_one_leaves_nothing_in_its_sinks(orders, tmp_path):
    out = tmp_path / "out"
    orders.sql(TOTALS)
    create(orders, out, "every")
    create(orders, out, "net", mode="upsert")
    create(orders, out, "events", format="debezium-json")
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    put(orders, "SELECT customer, SUM(qty) AS q FROM orders WHERE qty > 100 GROUP BY customer")
    orders.run()
    assert left(out, "every") == []
    assert sorted(told(out, "net"))[2:] == [("-D", "a", 1), ("-D", "b", 2)]
    assert [event["op"] for event in lines(out, "events")] == ["c", "c", "d", "d"]
    orders.run()
    insert(orders, ("c", 101))
    orders.run()
    assert left(out, "every") == [({"customer": "c", "q": 101}, 1)]
    assert told(out, "net")[4:] == [("+I", "c", 101)]
    assert [sink.problem for sink in orders._catalog.sinks()] == [None] * 3


def test_a_view_that_is_replaced_by_one_of_another_shape_is_followed_by_its_sinks(orders, tmp_path):
    out = tmp_path / "out"
    orders.sql(TOTALS)
    create(orders, out, "every")
    create(orders, out, "net", mode="upsert")
    create(orders, out, "events", format="debezium-json")
    create(orders, out, "kept", format="parquet")
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    # A column that is gone, one that is new, and one of another type that the old values do not fit.
    put(orders, "SELECT COUNT(*) AS customer, qty % 2 AS odd, MAX(customer) AS q FROM orders GROUP BY odd")
    orders.run()
    assert [sink.problem for sink in orders._catalog.sinks()] == [None] * 4
    now = [({"customer": 1, "odd": 0, "q": "b"}, 1), ({"customer": 1, "odd": 1, "q": "a"}, 1)]
    assert left(out, "every") == now
    assert sorted((row["_op"], row["customer"]) for row in lines(out, "net")[2:]) == sorted(
        [("-D", "a"), ("-D", "b"), ("+I", 1), ("+I", 1)], key=str
    )
    events = lines(out, "events")
    assert [event["op"] for event in events] == ["c", "c", "d", "d", "c", "c"]
    assert [event["source"]["sequence"] for event in events[2:]] == [0, 1, 2, 3]
    assert events[2]["before"] == {"customer": "a", "q": 1}
    files = sorted((out / "kept").glob("*.parquet"))
    assert pq.read_schema(files[-1]).names[4:] == ["customer", "odd", "q"]
    gone = [file for file in files if set(pq.read_table(file).column("_op").to_pylist()) == {"-D"}]
    assert [pq.read_schema(file).names[4:] for file in gone] == [["customer", "q"]]


def test_the_rows_of_a_replaced_view_are_taken_back_when_its_changes_are_not_kept_any_more(orders, tmp_path):
    out = tmp_path / "out"
    orders.sql(TOTALS)
    create(orders, out, "every")
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    insert(orders, ("a", 4))
    orders.run()
    orders.sql("SET changelog_retention = '0 seconds'")
    assert "changes" in {removal.kind for removal in orders.gc()}
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("SUM(qty)", "MAX(qty)"))
    orders.run()
    assert left(out, "every") == [({"customer": "a", "q": 4}, 1), ({"customer": "b", "q": 2}, 1)]


def test_a_collection_leaves_a_replaced_view_to_the_sinks_that_have_yet_to_take_it_back(orders, tmp_path):
    out, home = tmp_path / "out", Path(orders.home)
    orders.sql(TOTALS)
    create(orders, out, "every")
    insert(orders, ("a", 1), ("b", 2))
    orders.run()
    former = home / "sources" / str(orders._catalog.view("totals").id)
    orders.sql(TOTALS.replace("CREATE", "CREATE OR REPLACE").replace("SUM(qty)", "SUM(qty) * 10"))
    long_ago = time.time() - 86_400
    for path in home.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    orders.gc()
    assert former.exists()
    orders.run()
    assert left(out, "every") == [({"customer": "a", "q": 10}, 1), ({"customer": "b", "q": 20}, 1)]
    for path in home.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    orders.gc()
    assert not former.exists()


def test_rows_with_maps_of_a_replaced_view_are_taken_back(db, tmp_path):
    out = tmp_path / "out"
    db.sql("CREATE SOURCE tagged (id INT, tags MAP<STRING, INT>, inner_tags ARRAY<STRUCT<m: MAP<STRING, INT>>>)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT * FROM tagged")
    create(db, out, "every")
    db.insert("tagged", [{"id": 1, "tags": {"a": 1}, "inner_tags": [{"m": {"x": 1}}]}, {"id": 2, "tags": None}])
    db.run()
    put(db, "SELECT id FROM tagged")
    db.run()
    assert [sink.problem for sink in db._catalog.sinks()] == [None]
    assert left(out, "every") == [({"id": 1}, 1), ({"id": 2}, 1)]
