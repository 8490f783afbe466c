"""Materialized views on running streams: what they show, what they emit, how they come to be and how they fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laminae.errors import ChangelogExpired, ViewNotReady

ORDERS = "CREATE SOURCE orders (id BIGINT, customer STRING, amount DOUBLE, qty INT) WITH (connector = 'push')"
TOTALS = (
    "CREATE MATERIALIZED VIEW totals AS SELECT customer, COUNT(*) AS n, SUM(qty) AS q, SUM(amount) AS a, "
    "MIN(amount) AS lo, MAX(amount) AS hi, COUNT(DISTINCT qty) AS d, AVG(qty) AS m FROM orders GROUP BY customer"
)
SIZES = "CREATE MATERIALIZED VIEW sizes AS SELECT n, COUNT(*) AS customers FROM totals GROUP BY n HAVING COUNT(*) > 0"


def order(number: int, customer: str | None, amount: float | None, qty: int | None) -> dict[str, object]:
    return {"id": number, "customer": customer, "amount": amount, "qty": qty}


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def changes(db, view: str, since: int = 0) -> list[tuple]:
    return [(op, *rest) for _, op, _, _, *rest in db.changes(view, since).fetchall()]


@pytest.fixture
def orders(db):
    db.sql(ORDERS)
    return db


def test_stacked_views_emit_exact_corrections_and_show_their_rows(orders):
    orders.sql(TOTALS)
    orders.sql(SIZES)
    orders.insert("orders", [order(1, "a", 0.1, 2), order(2, "b", 0.3, 3)])
    pipeline = orders.start("0 seconds")
    try:
        pipeline.process_all_available()
        assert changes(orders, "sizes") == [("+I", 1, 2)]
        orders.insert("orders", [order(3, "a", 0.2, None), order(4, None, None, 3)])
        pipeline.process_all_available()
    finally:
        pipeline.stop()
    assert rows(orders, "SELECT customer, n, q, a, lo, hi, d, m FROM totals") == [
        ("a", 2, 2, pytest.approx(0.3, abs=0), 0.1, 0.2, 1, 2.0)
        if 0.1 + 0.2 == 0.3
        else ("a", 2, 2, 0.1 + 0.2, 0.1, 0.2, 1, 2.0),
        ("b", 1, 3, 0.3, 0.3, 0.3, 1, 3.0),
        (None, 1, 3, None, None, None, 1, 3.0),
    ]
    last = [row for row in changes(orders, "totals") if row[1] == "a"]
    assert [row[0] for row in last] == ["+I", "-U", "+U"]
    # "a" left the customers with one order, and NULL joined them: nothing to say of n = 1.
    assert changes(orders, "sizes") == [("+I", 1, 2), ("+I", 2, 1)]
    assert rows(orders, "SELECT * FROM sizes") == [(1, 2), (2, 1)]


def test_a_view_made_on_rows_that_are_there_is_filled_and_then_follows(orders):
    orders.insert("orders", [order(1, "a", 1.0, 1)])
    orders.run()
    orders.sql("CREATE MATERIALIZED VIEW counted AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
    with pytest.raises(ViewNotReady, match="creating"):
        orders.sql("SELECT * FROM counted").fetchall()
    orders.insert("orders", [order(2, "a", 1.0, 1)])
    orders.run()
    assert changes(orders, "counted") == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]
    orders.sql("CREATE MATERIALIZED VIEW later WITH (backfill = 'false') AS SELECT COUNT(*) AS n FROM orders")
    orders.run()
    orders.insert("orders", [order(3, "b", 1.0, 1)])
    orders.run()
    assert rows(orders, "SELECT * FROM later") == [(1,)]
    assert rows(orders, "SELECT * FROM counted") == [("a", 2), ("b", 1)]


def test_an_overflow_fails_its_view_alone_and_a_resumed_one_catches_up(orders):
    orders.sql("CREATE MATERIALIZED VIEW sums AS SELECT customer, SUM(id) AS s FROM orders GROUP BY customer")
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM sums")
    orders.sql("CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM orders")
    most = 2**63 - 1
    orders.insert("orders", [order(most, "a", 1.0, 1)])
    orders.run()
    orders.insert("orders", [order(1, "a", 1.0, 1)])
    orders.run()
    found = orders.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
    states = {name: (state, problem) for name, state, problem in found}
    assert states["beside"] == ("live", None)
    assert states["sums"][0] == "failed"
    assert "9223372036854775808" in states["sums"][1]
    assert states["above"] == ("waiting", "it waits for sums")
    assert rows(orders, "SELECT * FROM beside") == [(2,)]
    orders.insert("orders", [order(-5, "a", 1.0, 1)])
    orders.run()
    orders.sql("ALTER MATERIALIZED VIEW sums RESUME")
    orders.run()
    assert rows(orders, "SELECT * FROM sums") == [("a", most - 4)]
    assert changes(orders, "sums") == [("+I", "a", most), ("-U", "a", most), ("+U", "a", most - 4)]
    assert rows(orders, "SELECT * FROM above") == [(1,)]


def test_changes_that_were_collected_are_not_passed_over(orders, monkeypatch):
    orders.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM orders")
    orders.insert("orders", [order(1, "a", 1.0, 1)])
    orders.run()
    first = orders.changes("counted").fetchall()[0][0]
    known = orders._catalog.advances(orders._engine.view("counted").id)
    gone = tuple(replace(each, files=()) if each.rows else each for each in known)
    monkeypatch.setattr(orders._catalog, "advances", lambda *_: gone)
    with pytest.raises(ChangelogExpired, match=f"the first retained epoch is {gone[-1].epoch}"):
        orders.changes("counted", first - 1)


def test_a_view_whose_expression_does_not_take_a_wider_type_fails_alone(orders):
    orders.sql(
        "CREATE MATERIALIZED VIEW days AS SELECT date_add(DATE '2024-01-01', qty) AS at, COUNT(*) AS n FROM orders "
        "GROUP BY date_add(DATE '2024-01-01', qty)"
    )
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM days")
    orders.sql("CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM orders")
    orders.insert("orders", [order(1, "a", 1.0, 5)])
    orders.run()
    orders.sql("ALTER SOURCE orders ALTER COLUMN qty TYPE BIGINT")
    orders.insert("orders", [order(2, "a", 1.0, 0)])
    orders.run()
    found = orders.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
    states = {name: (state, problem) for name, state, problem in found}
    assert states["beside"] == ("live", None)
    assert states["above"] == ("waiting", "it waits for days")
    assert states["days"][0] == "failed"
    assert "DATATYPE_MISMATCH" in states["days"][1]
    assert rows(orders, "SELECT * FROM beside") == [(2,)]


def test_windows_over_a_view_keep_the_state_of_both(db):
    db.sql("CREATE SOURCE clicks (who STRING, at TIMESTAMP)")
    db.sql("CREATE MATERIALIZED VIEW latest AS SELECT who, MAX(at) AS t, COUNT(*) AS n FROM clicks GROUP BY who")
    db.sql(
        "CREATE MATERIALIZED VIEW minutes AS SELECT window.start AS s, COUNT(*) AS n, SUM(10 DIV (n - 3)) AS q "
        "FROM latest GROUP BY window(t, '2 minutes', '1 minute')"
    )
    # The third of a's clicks is one on which an expression fails.
    for minute in range(4):
        clicks = [{"who": "a", "at": f"2026-01-01T00:0{minute}:00Z"}, {"who": f"b{minute}", "at": None}]
        db.insert("clicks", clicks)
        db.run()
        assert rows(db, "SELECT who, n FROM latest WHERE who = 'a'") == [("a", minute + 1)]
    assert rows(db, "SELECT count(*) FROM latest") == [(5,)]
    assert [(f"{start:%H:%M}", n, q) for start, n, q in rows(db, "SELECT s, n, q FROM minutes")] == [
        ("00:02", 1, 10),
        ("00:03", 1, 10),
    ]


def test_an_aggregate_without_keys_has_its_row_over_nothing(orders):
    orders.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(qty) AS q FROM orders")
    orders.sql("CREATE MATERIALIZED VIEW most AS SELECT MAX(qty) AS hi, COUNT(DISTINCT qty) AS d FROM orders")
    orders.sql("CREATE MATERIALIZED VIEW named AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer")
    orders.sql("CREATE MATERIALIZED VIEW names AS SELECT COUNT(*) AS n FROM named")
    orders.sql("CREATE MATERIALIZED VIEW none AS SELECT COUNT(*) AS n FROM orders HAVING COUNT(*) > 0")
    orders.run()
    assert rows(orders, "SELECT * FROM counted") == [(0, None)]
    assert rows(orders, "SELECT * FROM most") == [(None, 0)]
    assert rows(orders, "SELECT * FROM names") == [(0,)]
    assert rows(orders, "SELECT * FROM none") == rows(orders, "SELECT * FROM named") == []
    orders.insert("orders", [order(1, "a", 1.0, 2)])
    orders.run()
    assert changes(orders, "counted") == [("+I", 0, None), ("-U", 0, None), ("+U", 1, 2)]
    assert changes(orders, "most") == [("+I", None, 0), ("-U", None, 0), ("+U", 2, 1)]
    assert changes(orders, "names") == [("+I", 0), ("-U", 0), ("+U", 1)]
    assert changes(orders, "none") == [("+I", 1)]
