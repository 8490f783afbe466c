"""Rows on which an expression of a view fails: set aside with their reason, while the view and the stream go on."""

from __future__ import annotations

import json

import pytest

ORDERS = "CREATE SOURCE orders (id BIGINT, customer STRING, amount STRING, qty INT) WITH (connector = 'push')"


def order(number: int, customer: str | None, amount: str | None, qty: int | None) -> dict[str, object]:
    return {"id": number, "customer": customer, "amount": amount, "qty": qty}


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def states(db) -> dict[str, tuple]:
    found = db.sql("SELECT name, state, problem FROM laminar_catalog.views").fetchall()
    return {name: (state, problem) for name, state, problem in found}


def letters(db) -> list[tuple]:
    query = "SELECT view_name, source_name, CAST(value AS STRING), weight, reason FROM laminar_catalog.dead_letters"
    return [(view, source, json.loads(row), *rest) for view, source, row, *rest in rows(db, query)]


@pytest.fixture
def orders(db):
    db.sql(ORDERS)
    return db


def test_a_row_that_fails_goes_to_the_dead_letters_and_the_views_go_on(orders):
    orders.sql("CREATE MATERIALIZED VIEW ratios AS SELECT id, 10 DIV qty AS share FROM orders WHERE id > 0")
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT COUNT(*) AS n FROM ratios")
    orders.sql("CREATE MATERIALIZED VIEW sums AS SELECT customer, SUM(CAST(amount AS INT)) AS s FROM orders GROUP BY 1")
    orders.sql("CREATE MATERIALIZED VIEW beside AS SELECT COUNT(*) AS n FROM orders")
    orders.insert("orders", [order(1, "a", "1", 5)])
    orders.run()
    orders.insert("orders", [order(2, "a", "x", 0), order(3, "b", "3", 2), order(-4, "b", "4", 0)])
    orders.run()
    assert states(orders) == dict.fromkeys(["ratios", "above", "sums", "beside"], ("live", None))
    assert rows(orders, "SELECT * FROM ratios") == [(1, 2), (3, 5)]
    # What is not asked for is not there either.
    assert rows(orders, "SELECT id FROM ratios") == [(1,), (3,)]
    assert rows(orders, "SELECT * FROM above") == [(2,)]
    assert rows(orders, "SELECT * FROM sums") == [("a", 1), ("b", 7)]
    assert rows(orders, "SELECT * FROM beside") == [(4,)]
    bad = order(2, "a", "x", 0)
    assert letters(orders) == [
        ("ratios", "orders", bad, 1, "10 DIV qty of view ratios cannot be computed: DIVIDE_BY_ZERO"),
        ("sums", "orders", bad, 1, "CAST(amount AS INT) of view sums cannot be computed: CAST_INVALID_INPUT"),
    ]
    counted = orders.sql("SELECT rows, dead_letters FROM laminar_catalog.epochs ORDER BY epoch").fetchall()
    assert counted == [(1, 0), (3, 0)]


def test_what_fails_is_filled_and_taken_back_alike_and_a_mended_view_has_the_row(db):
    db.sql(
        "CREATE SOURCE moves (k STRING, q INT, w INT) "
        "WITH (connector = 'push', changelog = 'retract', weight_field = 'w')"
    )
    db.insert("moves", [{"k": k, "q": q, "w": w} for k, q, w in [("a", 1, 1), ("b", 0, 1), ("c", 0, 1), ("d", 5, 0)]])
    db.run()
    db.sql("CREATE MATERIALIZED VIEW parts AS SELECT k, 6 DIV q AS part FROM moves")
    db.sql(
        "CREATE MATERIALIZED VIEW shares AS SELECT k, COUNT(*) AS n FROM (SELECT k, q, 1 DIV q AS unused FROM moves) "
        "GROUP BY k HAVING 12 DIV SUM(q) > 1"
    )
    db.run()
    assert rows(db, "SELECT * FROM parts") == [("a", 6)]
    assert rows(db, "SELECT * FROM shares") == [("a", 1)]
    # Taken back, put right, and made to fail where it did not.
    again = [("b", 0, -1), ("c", 3, 1), ("a", -1, 1)]
    db.insert("moves", [{"k": k, "q": q, "w": w} for k, q, w in again])
    db.run()
    assert states(db) == dict.fromkeys(["parts", "shares"], ("live", None))
    assert rows(db, "SELECT * FROM parts") == [("a", -6), ("a", 6), ("c", 2)]
    assert rows(db, "SELECT * FROM shares") == [("c", 2)]
    changes = [(op, *rest) for _, op, _, _, *rest in db.changes("shares").fetchall()]
    assert sorted(changes) == [("+I", "a", 1), ("+I", "c", 2), ("-D", "a", 1)]
    reason = "12 DIV SUM(q) > 1 of view shares cannot be computed: DIVIDE_BY_ZERO"
    found = [letter for letter in letters(db) if letter[0] == "shares"]
    assert {letter[4] for letter in found} == {reason}
    assert [(letter[1], letter[2]["k"], letter[2]["SUM(q)"], letter[3]) for letter in found] == [
        ("shares", "a", 0, 1),
        ("shares", "b", 0, -1),
        ("shares", "b", 0, 1),
        ("shares", "c", 0, -1),
        ("shares", "c", 0, 1),
    ]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW parts AS SELECT k, try_divide(6, q) AS part FROM moves")
    db.run()
    assert rows(db, "SELECT * FROM parts") == [("a", -6.0), ("a", 6.0), ("c", 2.0), ("c", None)]
    assert {letter[0] for letter in letters(db)} == {"shares"}


def test_records_that_cannot_be_read_beside_rows_that_fail_are_both_set_aside(db, inbox):
    db.sql(f"CREATE SOURCE t (k STRING, q INT) WITH (connector = 'files', format = 'json', path = '{inbox}')")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, COUNT(*) AS n, SUM(10 DIV q) AS s FROM t GROUP BY k")
    lines = ['{"k":"a","q":5}', '{"k":"a","q":0}', '{"k":"a","q":"x"}', '{"k":"b","q":2}']
    (inbox / "1.json").write_text("\n".join(lines) + "\n")
    db.run()
    assert rows(db, "SELECT * FROM sums") == [("a", 1, 2), ("b", 1, 5)]
    assert db.sql("SELECT rows, dead_letters FROM laminar_catalog.epochs").fetchall() == [(3, 1)]
    assert [(view, source, weight) for view, source, _, weight, _ in letters(db)] == [
        ("sums", "t", 1),
        (None, "t", None),
    ]
    # The state lacks the row, so a view without the expression must not go on with it.
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW sums AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    db.run()
    assert rows(db, "SELECT * FROM sums") == [("a", 2), ("b", 1)]


def test_a_time_that_fails_inside_a_window_is_a_dead_letter_of_its_row_alone(orders):
    orders.sql(
        "CREATE MATERIALIZED VIEW hops AS SELECT window.end AS e, SUM(10 DIV qty) AS n FROM orders WHERE id > 0 "
        "GROUP BY window(to_timestamp(amount, 'yyyy-MM-dd HH:mm'), '10 minutes', '5 minutes')"
    )
    orders.sql(
        "CREATE MATERIALIZED VIEW days AS SELECT window.start AS s, COUNT(*) AS n FROM orders WHERE id < 3 "
        "GROUP BY TUMBLE(amount, INTERVAL '1' DAY)"
    )
    at = "2026-01-01 00:07"
    orders.insert("orders", [order(1, "a", at, 5), order(2, "a", "never", 5), order(-3, "a", "nor", 1)])
    orders.insert("orders", [order(4, "b", at, 0), order(5, "b", None, 1)])
    orders.run()
    assert states(orders) == {"hops": ("live", None), "days": ("live", None)}
    found = [(f"{end:%H:%M}", n) for end, n in rows(orders, "SELECT e, n FROM hops")]
    assert found == [("00:10", 2), ("00:15", 2)]
    assert [n for _, n in rows(orders, "SELECT s, n FROM days")] == [1]
    time = "TO_TIMESTAMP(amount, 'yyyy-MM-dd HH:mm') of view hops cannot be computed: CANNOT_PARSE_TIMESTAMP"
    cast = "CAST(amount AS TIMESTAMP) of view days cannot be computed: CAST_INVALID_INPUT"
    assert letters(orders) == [
        ("days", "orders", order(-3, "a", "nor", 1), 1, cast),
        ("days", "orders", order(2, "a", "never", 5), 1, cast),
        ("hops", "orders", order(2, "a", "never", 5), 1, time),
        ("hops", "orders", order(4, "b", at, 0), 1, "10 DIV qty of view hops cannot be computed: DIVIDE_BY_ZERO"),
    ]
