"""Views over sources that change under them: they follow, and go on with the state they have."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from laminae.errors import DependentsExist
from laminae.spark.views import backfill as advance

ORDERS = (
    "CREATE SOURCE orders (id BIGINT, customer STRING, amount DOUBLE, qty INT, price DECIMAL(6, 2), part FLOAT) "
    "WITH (connector = 'push', compatibility = 'NONE')"
)


def order(number: int, customer: str, **more: object) -> dict[str, object]:
    return {"id": number, "customer": customer, "amount": 1.5, "qty": number, "price": "1.25", "part": 0.5, **more}


def rows(db, text: str) -> list[tuple]:
    return sorted(db.sql(text).fetchall(), key=repr)


def changes(db, view: str) -> list[tuple]:
    return [(op, *rest) for _, op, _, _, *rest in db.changes(view).fetchall()]


@pytest.fixture
def orders(db):
    db.sql(ORDERS)
    return db


@contextmanager
def running(db):
    pipeline = db.start("0 seconds")
    try:
        yield pipeline
    finally:
        pipeline.stop()


@pytest.fixture
def never_filled(monkeypatch):
    """From here on, a view that is filled from what its relations hold fails the test."""

    def refuse() -> None:
        def filling(*_: object) -> None:
            raise AssertionError("a relation was read from the beginning")

        monkeypatch.setattr(advance, "relation_filling", filling)

    return refuse


def test_views_follow_renamed_added_widened_and_moved_columns_with_the_state_they_have(orders, never_filled):
    orders.sql("CREATE MATERIALIZED VIEW plain AS SELECT amount, qty + 1 AS more FROM orders WHERE amount > 0")
    orders.sql("CREATE MATERIALIZED VIEW everything AS SELECT * EXCEPT (part, price) FROM orders")
    orders.sql(
        "CREATE MATERIALIZED VIEW totals AS SELECT qty, SUM(amount) AS a, SUM(qty) AS q, MAX(qty) AS hi, "
        "SUM(part) AS f, SUM(price) AS p, COUNT(*) AS n FROM orders GROUP BY qty"
    )
    orders.sql(
        "CREATE MATERIALIZED VIEW above AS SELECT customer, COUNT(amount) AS n FROM everything GROUP BY customer"
    )
    orders.sql("CREATE MATERIALIZED VIEW kinds AS SELECT DISTINCT * EXCEPT (id) FROM orders")
    with running(orders) as pipeline:
        orders.insert("orders", [order(1, "a"), order(2, "b")])
        pipeline.process_all_available()
        never_filled()
        orders.sql("ALTER SOURCE orders RENAME COLUMN amount TO total")
        orders.sql("ALTER SOURCE orders ADD COLUMN amount STRING")
        orders.sql("ALTER SOURCE orders ALTER COLUMN qty TYPE BIGINT")
        orders.sql("ALTER SOURCE orders ALTER COLUMN part TYPE DOUBLE")
        orders.sql("ALTER SOURCE orders ALTER COLUMN price TYPE DECIMAL(9, 2)")
        later = {"id": 3, "customer": "a", "total": 2.0, "qty": 1, "price": "1000.00", "part": 0.1, "amount": "new"}
        orders.insert("orders", [later, {**later, "id": 4, "customer": "b", "total": 1.5, "qty": 2, "amount": None}])
        pipeline.process_all_available()
    assert rows(orders, "SELECT amount, more FROM plain") == [(1.5, 2), (1.5, 3), (1.5, 3), (2.0, 2)]
    assert orders.sql("SELECT * FROM everything").columns == ["id", "customer", "total", "qty", "amount"]
    assert rows(orders, "SELECT id, total, amount FROM everything") == [
        (1, 1.5, None),
        (2, 1.5, None),
        (3, 2.0, "new"),
        (4, 1.5, None),
    ]
    found = rows(orders, "SELECT qty, a, q, hi, f, CAST(p AS STRING), n FROM totals")
    assert found == [(1, 3.5, 2, 1, 0.6, "1001.25", 2), (2, 3.0, 4, 2, 0.6, "1001.25", 2)]
    assert [op for op, *_ in changes(orders, "totals")] == ["+I", "+I", "-U", "+U", "-U", "+U"]
    assert rows(orders, "SELECT * FROM above") == [("a", 2), ("b", 2)]
    # The rows of before are rows with NULL in the new column: no row is lost, and none is there twice.
    assert len(rows(orders, "SELECT * FROM kinds")) == 4
    assert [op for op, *_ in changes(orders, "kinds")] == ["+I"] * 4


def test_a_change_that_a_view_cannot_bear_is_refused_with_its_name(orders):
    orders.sql("CREATE MATERIALIZED VIEW some AS SELECT customer, qty FROM orders")
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT qty, COUNT(*) AS n FROM some GROUP BY qty")
    with pytest.raises(DependentsExist, match="materialized view some"):
        orders.sql("ALTER SOURCE orders DROP COLUMN qty")
    with pytest.raises(DependentsExist, match=r"materialized view above.* old type"):
        orders.sql("ALTER SOURCE orders ALTER COLUMN qty TYPE DOUBLE")
    orders.sql("CREATE MATERIALIZED VIEW kinds AS SELECT DISTINCT * FROM orders")
    with pytest.raises(DependentsExist, match=r"materialized view kinds.* default"):
        orders.sql("ALTER SOURCE orders ADD COLUMN region STRING DEFAULT 'eu'")
    with pytest.raises(DependentsExist, match="materialized view kinds"):
        orders.sql("ALTER SOURCE orders DROP COLUMN part")
    orders.sql("CREATE MATERIALIZED VIEW twice AS SELECT *, amount AS total FROM orders")
    with pytest.raises(DependentsExist, match=r"materialized view twice.* two columns"):
        orders.sql("ALTER SOURCE orders RENAME COLUMN price TO total")


def test_a_replaced_view_goes_on_with_the_aggregates_that_are_the_same(orders, never_filled):
    orders.sql("CREATE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q, MIN(amount) AS lo FROM orders GROUP BY 1")
    with running(orders) as pipeline:
        orders.insert("orders", [order(1, "a"), order(2, "b")])
        pipeline.process_all_available()
        never_filled()
        orders.sql(
            "CREATE OR REPLACE MATERIALIZED VIEW v AS "
            "SELECT customer AS who, SUM(qty) * 10 AS ten, COUNT(*) AS n FROM orders GROUP BY customer"
        )
        orders.insert("orders", [order(5, "a")])
        pipeline.process_all_available()
    assert rows(orders, "SELECT * FROM v") == [("a", 60, 2), ("b", 20, 1)]
    assert sorted(changes(orders, "v")[:2]) == [("+I", "a", 10, 1), ("+I", "b", 20, 1)]
    assert changes(orders, "v")[2:] == [("-U", "a", 10, 1), ("+U", "a", 60, 2)]


TOTALS = "SELECT customer, SUM(qty) AS q{more} FROM orders GROUP BY customer"
MORE = (
    ", COUNT(DISTINCT part) AS d, MAX(amount) AS hi, SUM(amount) AS a, SUM(price) AS p, COUNT(qty) AS n, AVG(id) AS i"
)


def test_aggregates_that_a_replaced_view_adds_are_filled_beside_those_it_has(orders):
    query = TOTALS.format(more=MORE)
    orders.sql(f"CREATE MATERIALIZED VIEW v AS {TOTALS.format(more='')}")
    with running(orders) as pipeline:
        orders.insert("orders", [order(1, "a"), order(2, "b", amount=7.25, part=None), order(3, "a", price=None)])
        pipeline.process_all_available()
        said = orders.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}").fetchall()
        orders.insert("orders", [order(5, "a", part=2.5), order(6, "c")])
        pipeline.process_all_available()
    assert "continues with its state, and backfills the new aggregates" in str(said)
    wanted = rows(orders, query)
    assert rows(orders, "SELECT * FROM v") == wanted
    shown = {row[1:] for row in changes(orders, "v") if row[0] in ("+I", "+U")}
    shown -= {row[1:] for row in changes(orders, "v") if row[0] in ("-U", "-D")}
    assert sorted(shown, key=repr) == wanted


def test_what_a_source_no_longer_has_stays_in_the_aggregates_that_are_kept(orders, monkeypatch):
    """As with a topic whose beginning has expired: what was added up is not added up anew."""
    orders.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q, MIN(id) AS lo FROM orders GROUP BY customer"
    )
    orders.insert("orders", [order(1, "a"), order(2, "a"), order(3, "b")])
    orders.run()
    filling = advance.relation_filling
    monkeypatch.setattr(advance, "relation_filling", lambda *given: filling(*given).where("id > 1"))
    orders.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT customer, SUM(qty) AS q, COUNT(*) AS n, MIN(id) AS lo, MAX(id) AS hi, SUM(amount) AS a "
        "FROM orders GROUP BY customer"
    )
    orders.run()
    assert rows(orders, "SELECT * FROM v") == [("a", 3, 2, 1, 2, 1.5), ("b", 3, 1, 3, 3, 1.5)]
    assert changes(orders, "v")[0][0] == "+I"
    assert len(changes(orders, "v")) == 2


def test_an_aggregate_that_was_given_up_and_comes_back_counts_every_row_once(orders):
    """The runs of the state hold it still: its columns in the groups, its values beside them."""
    texts = [TOTALS.format(more=MORE), TOTALS.format(more=", MIN(id) AS lo"), TOTALS.format(more=MORE)]
    for number, text in enumerate(texts):
        orders.sql(f"CREATE {'OR REPLACE ' if number else ''}MATERIALIZED VIEW v AS {text}")
        orders.insert("orders", [order(number, "a", part=number / 2), order(10 + number, "b")])
        orders.run()
        assert rows(orders, "SELECT * FROM v") == rows(orders, text)


def test_a_view_goes_on_though_what_only_its_former_text_read_is_gone(orders):
    orders.sql("CREATE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q, MAX(part) AS p FROM orders GROUP BY 1")
    orders.insert("orders", [order(1, "a")])
    orders.run()
    orders.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer")
    orders.sql("ALTER SOURCE orders DROP COLUMN part")
    orders.run()
    assert rows(orders, "SELECT * FROM v") == [("a", 1)]


def test_a_replaced_view_is_filled_again_where_its_state_does_not_tell(orders):
    orders.sql("CREATE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer")
    orders.sql("CREATE MATERIALIZED VIEW above AS SELECT SUM(q) AS q FROM v")
    orders.insert("orders", [order(1, "a"), order(2, "b")])
    orders.run()
    orders.sql("ALTER SOURCE orders RENAME COLUMN qty TO pieces")
    orders.sql("ALTER SOURCE orders ADD COLUMN qty INT")
    # The same text, and another column.
    orders.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT customer, SUM(qty) AS q FROM orders GROUP BY customer")
    orders.insert("orders", [{"id": 3, "customer": "a", "pieces": 7, "qty": 100}])
    orders.run()
    assert rows(orders, "SELECT * FROM v") == [("a", 100), ("b", None)]
    assert rows(orders, "SELECT * FROM above") == [(100,)]
    orders.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT customer, SUM(qty) AS q, MAX(pieces) AS m FROM orders GROUP BY customer"
    )
    orders.run()
    assert rows(orders, "SELECT * FROM v") == [("a", 100, 7), ("b", None, 2)]
