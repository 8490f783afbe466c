"""Iceberg tables as streams: rows that come and go, columns that change in the table while the stream runs."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType, StringType

from laminae.errors import EvolutionRejected, PipelineFailed, RecordRefused, SnapshotExpired
from tests.support.iceberg import both_catalogs, put

COLUMNS = {"id": pa.int64(), "amount": pa.int32(), "note": pa.string()}


def create(db, lake, columns="id BIGINT, amount INT, note STRING", **options):
    db.sql(f"CREATE SOURCE s ({columns}) WITH {lake.options('orders', **options)}")


def rows(db, columns="*", relation="s"):
    return db.sql(f"SELECT {columns} FROM {relation} ORDER BY ALL").fetchall()  # noqa: S608  # fixed by each test


def letters(db):
    return [row[0] for row in db.sql("SELECT reason FROM laminar_catalog.dead_letters ORDER BY reason").fetchall()]


def epochs(db):
    return db.sql("SELECT rows, version FROM laminar_catalog.epochs ORDER BY epoch").fetchall()


@both_catalogs
def test_a_table_that_changes_its_columns_is_followed_while_the_stream_runs(db, lake):
    table = put(put(lake.table("orders", COLUMNS), id=[1], amount=[10], note=["a"]), id=[2], amount=[None])
    create(db, lake)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM s WHERE id > 0")
    pipeline = db.start("100 milliseconds")
    try:
        pipeline.process_all_available()
        (before,) = pipeline.status()
        assert rows(db) == [(1, 10, "a"), (2, None, None)]
        with table.update_schema() as update:
            update.update_column("amount", LongType()).rename_column("amount", "cents")
            update.add_column("city", StringType())
        put(table, id=[3], cents=[2**40], city=["Rome"])
        pipeline.process_all_available()
        with table.update_schema() as update:
            update.delete_column("note")
        put(table, id=[4], city=["Pisa"])
        pipeline.process_all_available()
        (after,) = pipeline.status()
    finally:
        pipeline.stop()
    assert before.run_id == after.run_id
    expected = [(1, 10, "a", None), (2, None, None, None), (3, 2**40, None, "Rome"), (4, None, None, "Pisa")]
    assert rows(db, "id, cents, note, city") == rows(db, "id, cents, note, city", "v") == expected
    assert epochs(db) == [(2, 2), (1, 3), (1, 3)]
    # A column that a view reads does not go with the table's, and one that loses values waits for a person.
    assert db.schema("s").names == ["id", "cents", "note", "city"]
    db.sql("DROP MATERIALIZED VIEW v")
    assert db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0] == "waiting"
    ((change_id,),) = db.sql("SELECT id FROM laminar_catalog.pending_changes").fetchall()
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change_id}")
    assert rows(db)[0] == (1, 10, None)
    assert letters(db) == []


@both_catalogs
def test_nested_columns_are_read_by_their_field_ids(db, lake):
    place = pa.struct([("city", pa.string()), ("zip", pa.int32())])
    kinds = {"id": pa.int64(), "place": place, "tags": pa.list_(place), "rates": pa.map_(pa.string(), place)}
    table = lake.table("orders", kinds)
    rome = {"city": "Rome", "zip": 1}
    put(table, id=[1], place=[rome], tags=[[rome]], rates=[[("a", rome)]])
    inner = "STRUCT<city: STRING, zip: INT>"
    create(db, lake, f"id BIGINT, place {inner}, tags ARRAY<{inner}>, rates MAP<STRING, {inner}>")
    db.run()
    with table.update_schema() as update:
        for parent in ("place", "tags.element", "rates.value"):
            update.rename_column(f"{parent}.city", "town").update_column(f"{parent}.zip", LongType())
    pisa = {"town": "Pisa", "zip": 2**40}
    put(table, id=[2], place=[pisa], tags=[[pisa]], rates=[[("a", pisa)]])
    db.run()
    assert rows(db, "id, place.town, tags[0].town, rates['a'].zip") == [
        (1, "Rome", "Rome", 1), (2, "Pisa", "Pisa", 2**40),
    ]  # fmt: skip


@both_catalogs
@pytest.mark.parametrize(("mark", "kind"), [("op_field", "STRING"), ("weight_field", "SMALLINT")])
def test_rows_of_files_that_go_are_taken_back(db, lake, mark, kind):
    table = put(put(lake.table("orders", COLUMNS), id=[1, 2, 3], amount=[10, 20, 30]), id=[4], amount=[40])
    create(db, lake, f"id BIGINT, amount INT, note STRING, mark {kind}", changelog="retract", **{mark: "mark"})
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(amount) AS total FROM s")
    db.run()
    assert rows(db, relation="v") == [(4, 100)]
    table.delete("id = 2")
    table.overwrite(put_amount(table, 5), overwrite_filter="id = 4")
    db.run()
    assert rows(db, "id, amount") == [(1, 10), (3, 30), (5, 50)]
    assert rows(db, relation="v") == [(3, 90)]
    put(table, id=[6], amount=[60])
    table.delete("id = 6")
    db.sql("ALTER SOURCE s RENAME COLUMN mark TO what")
    db.run()
    assert rows(db, relation="v") == [(3, 90)]
    assert letters(db) == []
    # What came and went is not read again: its files may be gone.
    for file in files_of(lake) - {task.file.file_path for task in lake.load("orders").scan().plan_files()}:
        os.unlink(file.removeprefix("file://"))
    assert rows(db, "id, amount") == [(1, 10), (3, 30), (5, 50)]
    with pytest.raises(SnapshotExpired, match="is gone"):
        db.changes("s").fetchall()


def put_amount(table, number):
    schema = table.schema().as_arrow()
    return pa.Table.from_pylist([{"id": number, "amount": number * 10}], schema=schema)


def files_of(lake):
    return {str(file) for file in Path(lake.place).rglob("*.parquet")}


@both_catalogs
def test_a_table_by_key_follows_overwrites(db, lake):
    table = put(lake.table("orders", COLUMNS, required=["id"]), id=[1, 2, 3], amount=[10, 20, 30])
    create(
        db,
        lake,
        "id BIGINT NOT NULL, amount INT, note STRING, gone BOOLEAN, PRIMARY KEY (id)",
        changelog="upsert",
        deleted_by="gone",
    )
    db.run()
    table.delete("id = 2")
    changed = [{"id": 3, "amount": 33}, {"id": 4, "amount": 44}]
    table.upsert(pa.Table.from_pylist(changed, schema=table.schema().as_arrow()), ["id"])
    db.run()
    assert rows(db, "id, amount") == [(1, 10), (3, 33), (4, 44)]
    assert letters(db) == []


def test_what_a_source_cannot_take_back_is_a_dead_letter_with_the_way_out(db, lake):
    table = put(lake.table("orders", COLUMNS), id=[1, 2], amount=[10, 20])
    create(db, lake)
    db.run()
    table.delete("id = 2")
    db.run()
    assert rows(db, "id, amount") == [(1, 10), (1, 10), (2, 20)]
    (reason,) = letters(db)
    assert "and the source cannot retract rows: that needs changelog = 'retract'" in reason
    assert (db.replay_dead_letters("s").rows, len(letters(db))) == (0, 2)
    db.sql("ALTER SOURCE s SET (on_error = 'fail')")
    table.delete("id = 1")
    with pytest.raises(RecordRefused, match="cannot retract rows"):
        db.run()


def test_bad_rows_and_files_are_dead_letters_and_come_back_with_what_they_do(db, lake):
    table = lake.table("orders", {"id": pa.int64(), "amount": pa.int64()})
    put(put(table, id=[1, 2], amount=[10, 2**40]), id=[3], amount=[30])
    create(db, lake, "id BIGINT, amount INT, op STRING", changelog="retract", op_field="op")
    broken = next(file for file in files_of(lake) if pq.read_table(file)["id"].to_pylist() == [3])
    content = Path(broken).read_bytes()
    Path(broken).write_bytes(content[:20])
    db.run()
    assert rows(db, "id, amount") == [(1, 10)]
    assert len(letters(db)) == 2
    Path(broken).write_bytes(content)
    db.sql("ALTER SOURCE s ALTER COLUMN amount TYPE BIGINT")
    replayed = db.replay_dead_letters("s")
    assert (replayed.rows, replayed.refused) == (2, 0)
    assert rows(db, "id, amount") == [(1, 10), (2, 2**40), (3, 30)]
    table.delete("id = 2")
    db.run()
    assert rows(db, "id, amount") == [(1, 10), (3, 30)]


def test_an_epoch_ends_where_a_snapshot_does(db, lake):
    table = put(lake.table("orders", COLUMNS), id=[1, 2])
    create(db, lake, max_files_per_epoch="1")
    db.run()
    for number in (3, 4):
        put(table, id=[number])
    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        for file in lake.load("orders").scan().plan_files():
            files.append_data_file(file.file)
    db.run()
    assert epochs(db) == [(2, 2), (1, 2), (1, 2), (4, 2)]


def test_a_rejected_change_stops_the_source_where_it_is_told_to(db, lake):
    table = put(lake.table("orders", COLUMNS), id=[1], amount=[1])
    create(db, lake, compatibility="FULL", on_rejected="stop")
    db.run()
    with table.update_schema() as update:
        update.update_column("amount", LongType())
    put(table, id=[2], amount=[2])
    with pytest.raises(EvolutionRejected, match="amount: widen type"):
        db.run()
    db.sql("ALTER SOURCE s SET COMPATIBILITY = BACKWARD")
    db.run()
    assert rows(db, "id, amount") == [(1, 1), (2, 2)]
    assert str(db.schema("s").field("amount").type) == "int64"


def test_a_new_view_takes_what_is_left_of_a_table_only_if_it_says_so(db, lake):
    put(put(lake.table("orders", COLUMNS), id=[1]), id=[2])
    create(db, lake)
    db.run()
    (first,) = [path for path in files_of(lake) if pq.read_table(path.removeprefix("file://"))["id"].to_pylist() == [1]]
    os.unlink(first.removeprefix("file://"))
    with pytest.raises(SnapshotExpired, match="is gone"):
        rows(db, "id")
    db.sql("CREATE MATERIALIZED VIEW whole AS SELECT id FROM s")
    db.sql("CREATE MATERIALIZED VIEW rest WITH (backfill = 'available') AS SELECT id FROM s")
    db.run()
    states = db.sql("SELECT name, state FROM laminar_catalog.views ORDER BY name").fetchall()
    assert states == [("rest", "live"), ("whole", "failed")]
    assert rows(db, "id", relation="rest") == [(2,)]


@both_catalogs
def test_snapshots_that_expired_unread_stop_the_source_by_name(db, lake):
    table = put(lake.table("orders", COLUMNS), id=[1])
    create(db, lake)
    db.run()
    put(put(table, id=[2]), id=[3])
    for snapshot in table.metadata.snapshots[:2]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    with pytest.raises((PipelineFailed, SnapshotExpired), match="SNAPSHOT_EXPIRED"):
        db.run()
    assert rows(db, "id") == [(1,)]
