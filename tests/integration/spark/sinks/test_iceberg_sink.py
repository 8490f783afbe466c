"""Iceberg tables as sinks of running streams: what the view or the source says, once, under columns that follow."""

import pyarrow as pa
import pytest

from laminae.engine import faults
from tests.support.crashing import crash_at
from tests.support.iceberg import both_catalogs, put


@pytest.fixture
def orders(db):
    db.sql("CREATE SOURCE orders (id BIGINT, customer STRING, amount INT)")
    yield db
    faults.clear()


def held(lake, name, *columns):
    found = lake.load(name).scan(selected_fields=columns or ("*",)).to_arrow()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


@both_catalogs
def test_a_view_by_key_is_a_table_that_follows_it(orders, lake):
    orders.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    orders.sql(f"CREATE SINK k FROM totals WITH {lake.options('totals', mode='upsert')}")
    orders.insert("orders", [{"customer": "a", "amount": 1}, {"customer": "b", "amount": 2}, {"amount": 5}])
    orders.run()
    assert held(lake, "totals") == [("a", 1), ("b", 2), (None, 5)]
    orders.insert("orders", [{"customer": "a", "amount": 10}, {"amount": 5}, {"customer": "c", "amount": 3}])
    orders.run()
    assert held(lake, "totals") == [("a", 11), ("b", 2), ("c", 3), (None, 10)]


@both_catalogs
def test_columns_that_the_source_takes_on_reach_the_table_in_their_epoch(orders, lake):
    orders.sql(f"CREATE SINK k FROM orders WITH {lake.options('out')}")
    pipeline = orders.start("100 milliseconds")
    try:
        orders.insert("orders", [{"id": 1, "amount": 1}])
        pipeline.process_all_available()
        orders.sql("ALTER SOURCE orders ADD COLUMN city STRING DEFAULT 'Rome'")
        orders.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
        orders.sql("ALTER SOURCE orders RENAME COLUMN amount TO cents")
        orders.insert("orders", [{"id": 2, "cents": 2**40, "city": "Pisa"}, {"id": 3}])
        pipeline.process_all_available()
    finally:
        pipeline.stop()
    assert held(lake, "out", "id", "cents", "city") == [(1, 1, None), (2, 2**40, "Pisa"), (3, None, "Rome")]


@both_catalogs
@pytest.mark.parametrize(
    ("mode", "point"),
    [
        ("append", "snapshot written"),
        ("append", "part in place"),
        ("upsert", "part in place"),
        ("upsert", "segment delivered"),
    ],
)
def test_a_crash_at_any_step_of_a_delivery_changes_nothing(orders, lake, monkeypatch, mode, point):
    # Only `run` itself delivers, so that the crash is raised here and not in a thread.
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", 60.0)
    relation = "orders"
    if mode == "upsert":
        relation = "v"
        orders.sql("CREATE MATERIALIZED VIEW v AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id")
    orders.insert("orders", [{"id": 1}, {"id": 2}])
    orders.run()
    orders.sql(f"CREATE SINK k FROM {relation} WITH {lake.options('out', mode=mode)}")
    if point == "segment delivered":
        # Its beginning, a snapshot, is behind it.
        orders.run()
    orders.insert("orders", [{"id": 1}])
    with crash_at(point):
        orders.run()
    orders.insert("orders", [{"id": 3}])
    orders.run()
    expected = {"append": [(1,), (1,), (2,), (3,)], "upsert": [(1, 2), (2, 1), (3, 1)]}
    assert held(lake, "out", *{"append": ("id",), "upsert": ("id", "n")}[mode]) == expected[mode]


@both_catalogs
def test_from_table_to_table_and_back_to_a_savepoint(orders, lake):
    """A table is read as a stream and the view of it is a table again; both go back together."""
    table = put(lake.table("sales", {"id": pa.int64(), "amount": pa.int64()}), id=[1, 2, 3], amount=[1, 1, 2])
    given = lake.options("sales", changelog="retract", op_field="op")
    orders.sql(f"CREATE SOURCE sales (id BIGINT, amount BIGINT, op STRING) WITH {given}")
    orders.sql("CREATE MATERIALIZED VIEW v AS SELECT amount, COUNT(*) AS n FROM sales GROUP BY amount")
    orders.sql(f"CREATE SINK k FROM v WITH {lake.options('counts', mode='upsert')}")
    orders.run()
    orders.savepoint("before")
    table.delete("id = 3")
    put(table, id=[4], amount=[1])
    orders.run()
    assert held(lake, "counts") == [(1, 3)]
    orders.restore("before")
    orders.run()
    assert held(lake, "counts") == [(1, 3)]
