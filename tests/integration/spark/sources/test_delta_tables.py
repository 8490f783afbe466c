"""Delta tables as streams and as sinks of streams: the change data feed, columns that come, every epoch once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laminae.errors import SnapshotExpired

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "a {table}"


def create(db, place, columns, **options):
    given = {"connector": "delta", "path": str(place), **options}
    listed = ", ".join(f"{name} = '{value}'" for name, value in given.items())
    db.sql(f"CREATE SOURCE s ({columns}) WITH ({listed})")


def rows(db, columns="*", relation="s"):
    return db.sql(f"SELECT {columns} FROM {relation} ORDER BY ALL").fetchall()  # noqa: S608  # fixed by each test


def letters(db):
    return [row[0] for row in db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()]


def held(place):
    return sorted((tuple(row.values()) for row in DeltaTable(place).to_pyarrow_table().to_pylist()), key=str)


def test_the_change_feed_is_a_stream_of_changes_and_columns_that_come_are_followed(db, place):
    parts = pa.table({"id": [1, 2, 3], "amount": [10, 20, 30], "day": ["a b", "a b", None]})
    write_deltalake(place, parts, partition_by=["day"], configuration=FEED)
    create(db, place, "id BIGINT, amount INT, day STRING, op STRING", changelog="retract", op_field="op")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT day, SUM(amount) AS total FROM s GROUP BY day")
    db.run()
    assert rows(db, relation="v") == [(None, 30), ("a b", 30)]
    table = DeltaTable(place)
    table.delete("id = 2")
    table.update(predicate="id = 3", updates={"amount": "33"})
    more = pa.table({"id": [4], "amount": [40], "day": ["c"], "city": ["Rome"]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    DeltaTable(place).optimize.compact()
    db.run()
    assert rows(db, "id, amount, day, city") == [(1, 10, "a b", None), (3, 33, None, None), (4, 40, "c", "Rome")]
    assert rows(db, relation="v") == [(None, 33), ("a b", 10), ("c", 40)]
    assert letters(db) == []


def test_a_table_by_key_follows_the_feed_and_one_that_only_adds_says_what_it_cannot(db, place):
    write_deltalake(place, pa.table({"id": [1, 2, 3], "n": [1, 2, 3]}), configuration=FEED)
    columns = "id BIGINT NOT NULL, n BIGINT, gone BOOLEAN, PRIMARY KEY (id)"
    create(db, place, columns, changelog="upsert", deleted_by="gone")
    db.sql(f"CREATE SOURCE a (id BIGINT, n BIGINT) WITH (connector = 'delta', path = '{place}')")
    db.run()
    DeltaTable(place).update(predicate="id = 2", updates={"n": "22"})
    DeltaTable(place).delete("id = 1")
    db.run()
    assert rows(db, "id, n") == [(2, 22), (3, 3)]
    assert rows(db, relation="a") == [(1, 1), (2, 2), (3, 3)]
    assert sorted(letter.split(",")[0] for letter in letters(db)) == [
        "the row says delete", "the row says update_postimage", "the row says update_preimage",
    ]  # fmt: skip


def test_a_new_view_takes_what_is_left_of_a_table_only_if_it_says_so(db, place):
    for number in (1, 2):
        write_deltalake(place, pa.table({"id": [number]}), mode="append")
    create(db, place, "id BIGINT")
    db.sql("CREATE MATERIALIZED VIEW before AS SELECT count(*) AS n FROM s")
    db.run()
    (first,) = [path for path in place.glob("*.parquet") if pq.read_table(path)["id"].to_pylist() == [1]]
    first.unlink()
    with pytest.raises(SnapshotExpired, match="is gone"):
        rows(db)
    db.sql("CREATE MATERIALIZED VIEW whole AS SELECT id FROM s")
    db.sql("CREATE MATERIALIZED VIEW rest WITH (backfill = 'available') AS SELECT id FROM s")
    db.run()
    states = rows(db, "name, state, problem", "laminar_catalog.views")
    assert [state[:2] for state in states] == [("before", "live"), ("rest", "live"), ("whole", "failed")]
    assert "is gone" in states[2][2]
    assert rows(db, relation="rest") == [(2,)]
    write_deltalake(place, pa.table({"id": [3]}), mode="append")
    db.run()
    assert (rows(db, relation="rest"), rows(db, relation="before")) == ([(2,), (3,)], [(3,)])


def test_a_view_by_key_is_merged_and_a_source_appended_with_its_new_columns(db, tmp_path):
    db.sql("CREATE SOURCE orders (id BIGINT, customer STRING, amount INT)")
    db.sql("CREATE MATERIALIZED VIEW t AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    db.sql(f"CREATE SINK k FROM t WITH (connector = 'delta', mode = 'upsert', path = '{tmp_path}/totals')")
    db.sql(f"CREATE SINK l FROM orders WITH (connector = 'delta', path = '{tmp_path}/orders')")
    db.insert("orders", [{"id": 1, "customer": "a", "amount": 1}, {"id": 2, "amount": 5}])
    db.run()
    db.sql("ALTER SOURCE orders ADD COLUMN city STRING")
    db.insert("orders", [{"id": 3, "customer": "a", "amount": 10, "city": "Rome"}, {"id": 4, "amount": 5}])
    db.run()
    assert held(tmp_path / "totals") == [("a", 11), (None, 10)]
    assert [(row[0], row[3]) for row in held(tmp_path / "orders")] == [(1, None), (2, None), (3, "Rome"), (4, None)]
