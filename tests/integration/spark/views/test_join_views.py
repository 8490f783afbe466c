"""Views that join: corrected from both sides, while their sources evolve, and when they are replaced or read again."""

# ruff: noqa: S608  # the texts are made of names in this module
from __future__ import annotations

from collections import Counter

import pytest

from laminae.errors import DependentsExist

ORDERS = """CREATE SOURCE orders (id BIGINT NOT NULL, customer INT, amount INT, gone BOOLEAN, PRIMARY KEY (id))
            WITH (connector = 'push', changelog = 'upsert', deleted_by = 'gone')"""
CUSTOMERS = """CREATE SOURCE customers (customer INT NOT NULL, name STRING, PRIMARY KEY (customer))
               WITH (connector = 'push', changelog = 'upsert')"""
JOINED = "SELECT o.id, o.amount, c.name FROM orders o {kind} JOIN customers c ON o.customer = c.customer"


@pytest.fixture
def shop(db):
    db.sql(ORDERS)
    db.sql(CUSTOMERS)
    return db


def view(db, query: str, name: str = "v") -> None:
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def rows(db, name: str = "v") -> Counter:
    return Counter(db.sql(f"SELECT * FROM {name}").fetchall())


def changes(db, epoch: int, name: str = "v") -> list[tuple]:
    """(operation, row) of the changes after an epoch."""
    return [(row[1], *row[4:]) for row in db.changes(name, since_epoch=epoch).fetchall()]


def last(db) -> int:
    return db._catalog.last_epoch()


def test_left_join_is_corrected_from_both_sides(shop):
    view(shop, JOINED.format(kind="LEFT"))
    shop.insert("orders", [{"id": 1, "customer": 7, "amount": 10}, {"id": 2, "customer": None, "amount": 20}])
    shop.run()
    assert rows(shop) == Counter([(1, 10, None), (2, 20, None)])
    epoch = last(shop)
    shop.insert("customers", [{"customer": 7, "name": "Ann"}])
    shop.run()
    assert changes(shop, epoch) == [("-U", 1, 10, None), ("+U", 1, 10, "Ann")]
    epoch = last(shop)
    shop.insert("orders", [{"id": 1, "customer": 7, "amount": 15}])
    shop.run()
    assert changes(shop, epoch) == [("-U", 1, 10, "Ann"), ("+U", 1, 15, "Ann")]
    epoch = last(shop)
    shop.insert("orders", [{"id": 1, "gone": True}])
    shop.run()
    assert changes(shop, epoch) == [("-D", 1, 15, "Ann")]
    assert rows(shop) == Counter([(2, 20, None)])


def test_row_that_moves_to_another_key_without_another_result_emits_nothing(shop):
    view(shop, "SELECT o.id, o.amount FROM orders o LEFT JOIN customers c ON o.customer = c.customer")
    shop.insert("orders", [{"id": 1, "customer": 1, "amount": 10}])
    shop.run()
    epoch = last(shop)
    shop.insert("orders", [{"id": 1, "customer": 2, "amount": 10}])
    shop.run()
    assert changes(shop, epoch) == []


def test_self_join_sees_both_sides_of_one_epoch(shop):
    view(shop, "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id")
    shop.insert("orders", [{"id": number, "customer": number % 2, "amount": 1} for number in range(5)])
    shop.run()
    assert rows(shop) == Counter([(0, 2), (0, 4), (2, 4), (1, 3)])
    shop.insert("orders", [{"id": 2, "customer": 1, "amount": 1}])
    shop.run()
    assert rows(shop) == Counter([(0, 4), (1, 2), (1, 3), (2, 3)])


def test_view_over_a_join_and_join_over_a_view(shop):
    view(shop, "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer", "totals")
    view(shop, "SELECT c.name, t.total FROM customers c LEFT JOIN totals t ON c.customer = t.customer", "named")
    view(shop, "SELECT count(*) AS n, sum(total) AS total FROM named")
    shop.insert("customers", [{"customer": 1, "name": "Ann"}, {"customer": 2, "name": "Bob"}])
    shop.insert("orders", [{"id": 1, "customer": 1, "amount": 10}, {"id": 2, "customer": 1, "amount": 5}])
    shop.run()
    assert rows(shop, "named") == Counter([("Ann", 15), ("Bob", None)])
    assert rows(shop) == Counter([(2, 15)])
    shop.insert("orders", [{"id": 2, "customer": 2, "amount": 7}])
    shop.run()
    assert rows(shop, "named") == Counter([("Ann", 10), ("Bob", 7)])


def test_view_created_in_the_middle_is_backfilled_from_both_sides(shop):
    shop.insert("orders", [{"id": 1, "customer": 1, "amount": 10}])
    shop.insert("customers", [{"customer": 1, "name": "Ann"}])
    shop.run()
    view(shop, JOINED.format(kind="FULL"))
    shop.insert("customers", [{"customer": 2, "name": "Bob"}])
    shop.run()
    assert rows(shop) == Counter([(1, 10, "Ann"), (None, None, "Bob")])


def test_running_join_follows_changes_of_its_sources(shop):
    view(shop, "SELECT o.*, c.name FROM orders o JOIN customers c ON o.customer = c.customer")
    shop.insert("orders", [{"id": 1, "customer": 1, "amount": 10}])
    shop.insert("customers", [{"customer": 1, "name": "Ann"}])
    shop.run()
    shop.sql("ALTER SOURCE orders ADD COLUMN note STRING")
    shop.sql("ALTER SOURCE orders RENAME COLUMN amount TO price")
    shop.sql("ALTER SOURCE customers ALTER COLUMN customer TYPE BIGINT")
    shop.insert("orders", [{"id": 2, "customer": 2**31 - 1, "price": 20, "note": "n"}])
    shop.insert("customers", [{"customer": 2**31 - 1, "name": "Max"}])
    shop.run()
    shown = shop.sql("SELECT id, customer, price, note, name FROM v").fetchall()
    assert Counter(shown) == Counter([(1, 1, 10, None, "Ann"), (2, 2**31 - 1, 20, "n", "Max")])
    shop.insert("customers", [{"customer": 1, "name": "Anna"}])
    shop.insert("orders", [{"id": 2, "customer": 1, "price": 21, "note": None}])
    shop.run()
    shown = shop.sql("SELECT id, customer, price, note, name FROM v").fetchall()
    assert Counter(shown) == Counter([(1, 1, 10, None, "Anna"), (2, 1, 21, None, "Anna")])


def test_drop_of_a_column_that_a_join_uses_names_the_view(shop):
    view(shop, JOINED.format(kind="INNER"))
    with pytest.raises(DependentsExist, match="materialized view v"):
        shop.sql("ALTER SOURCE customers DROP COLUMN name")


def test_default_that_changes_stored_rows_of_a_join_is_refused(shop):
    view(shop, "SELECT o.*, c.name FROM orders o JOIN customers c ON o.customer = c.customer")
    with pytest.raises(DependentsExist, match="its state has whole rows"):
        shop.sql("ALTER SOURCE orders ADD COLUMN note STRING DEFAULT 'x'")


def test_keys_of_other_types_are_compared_as_spark_compares_them(db):
    db.sql("CREATE SOURCE a (k INT, x STRING) WITH (connector = 'push')")
    db.sql("CREATE SOURCE b (k DECIMAL(10, 2), y STRING) WITH (connector = 'push')")
    view(db, "SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k")
    db.insert("a", [{"k": 1, "x": "one"}, {"k": 2, "x": "two"}])
    db.insert("b", [{"k": "1.00", "y": "uno"}, {"k": "2.50", "y": "dos"}])
    db.run()
    assert rows(db) == Counter([("one", "uno"), ("two", None), (None, "dos")])


def test_replaced_join_shows_its_new_columns_and_goes_on(shop):
    view(shop, JOINED.format(kind="INNER"))
    shop.insert("orders", [{"id": 1, "customer": 1, "amount": 10}])
    shop.insert("customers", [{"customer": 1, "name": "Ann"}])
    shop.run()
    shop.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS "
        "SELECT o.id, o.amount * 2 AS twice, upper(c.name) AS name FROM orders o "
        "INNER JOIN customers c ON o.customer = c.customer"
    )
    shop.run()
    assert rows(shop) == Counter([(1, 20, "ANN")])
    shop.insert("customers", [{"customer": 1, "name": "Bea"}])
    shop.run()
    assert rows(shop) == Counter([(1, 20, "BEA")])


def test_view_over_an_append_only_join_has_every_copy_of_a_row(db):
    for name in "ab":
        db.sql(f"CREATE SOURCE {name} (k INT, x STRING) WITH (connector = 'push')")
    view(db, "SELECT a.x, b.x AS y FROM a JOIN b ON a.k = b.k", "pairs")
    db.sql("CREATE MATERIALIZED VIEW v WITH (backfill = 'false') AS SELECT x FROM pairs")
    db.run()
    db.insert("a", [{"k": 1, "x": "one"}, {"k": 1, "x": "one"}])
    db.insert("b", [{"k": 1, "x": "uno"}, {"k": 1, "x": "uno"}])
    db.run()
    assert rows(db, "pairs") == Counter({("one", "uno"): 4})
    assert rows(db) == Counter({("one",): 4})
    assert sum(weight for _, _, weight, *_ in db.changes("pairs").fetchall()) == 4
