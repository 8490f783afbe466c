"""Parquet files as a stream: many schemas side by side, matched by field id or name; bad files and rows named."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.errors import SourceUnavailable
from tests.support.files import create_source, numbered, rows


def create(db, inbox, columns, **options):
    create_source(db, inbox, columns, format="parquet", **options)


def write(file, table, ids=None):
    """The table as a file, its columns numbered with field ids when there are some."""
    pq.write_table(table if ids is None else numbered(table, ids), file)


def letters(db):
    return db.sql(
        "SELECT offset, CAST(value AS STRING), reason FROM laminar_catalog.dead_letters ORDER BY partition, offset"
    ).fetchall()


def test_files_of_many_schemas_are_rows_of_one(db, inbox, spark):
    create(
        db,
        inbox,
        "id BIGINT NOT NULL, n DECIMAL(6, 2), at TIMESTAMP, wall TIMESTAMP_NTZ, "
        "place STRUCT<city: STRING, zip: BIGINT>, tags ARRAY<STRING>, note STRING DEFAULT 'none'",
    )
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901)
    place = pa.array([{"city": "Rome"}], pa.struct([("city", pa.string())]))
    write(
        inbox / "narrow.parquet",
        pa.table({"note": pa.array(["x"]).dictionary_encode(), "id": pa.array([1], pa.int8()), "place": place}),
    )
    wide = pa.table(
        {
            "id": pa.array([2], pa.uint32()),
            "n": pa.array([Decimal("1.5")], pa.decimal128(3, 1)),
            "at": pa.array([moment], pa.timestamp("ns")),
            "wall": pa.array([moment], pa.timestamp("ns")),
            "note": pa.nulls(1),
            "tags": pa.array([["a", None]], pa.large_list(pa.large_string())),
            "extra": pa.array([1.5]),
        }
    )
    write(inbox / "wide.parquet", wide)
    written = "SELECT CAST(3 AS INT) id, TIMESTAMP '2024-01-02 03:04:05' at, TIMESTAMP_NTZ '2024-01-02 03:04:05' wall"
    spark.sql(written).coalesce(1).write.parquet(str(inbox.parent / "spark"))
    next((inbox.parent / "spark").glob("*.parquet")).rename(inbox / "spark.parquet")
    write(inbox / "none.parquet", wide.slice(0, 0).rename_columns(["id", "n", "at", "wall", "note", "tags", "new"]))
    db.run()
    assert letters(db) == []
    found = rows(db, "id, n, CAST(at AS STRING), wall, place.city, place.zip, tags, note")
    assert found == [
        (1, None, None, None, "Rome", None, None, "x"),
        (2, Decimal("1.50"), "2024-01-02 03:04:05.678901", moment, None, None, ["a", None], None),
        (3, None, "2024-01-02 03:04:05", datetime(2024, 1, 2, 3, 4, 5), None, None, None, "none"),
    ]
    assert db.schema("s").names == ["id", "n", "at", "wall", "place", "tags", "note"]


def test_bad_rows_and_bad_files_are_dead_letters_and_come_back_once(db, inbox):
    create(db, inbox, "id INT NOT NULL, n TINYINT, at TIMESTAMP, name STRING")
    fine = pa.array([None, 1_700_000_000_000_000_001, 1_700_000_000_000_001_000], pa.timestamp("ns"))
    write(
        inbox / "rows.parquet",
        pa.table({"id": [1, None, 3], "n": pa.array([200, 2, 3], pa.int64()), "name": ["a", "b", "c"], "x": [1, 2, 3]}),
    )
    write(inbox / "times.parquet", pa.table({"id": [4, 5, 6], "at": fine}))
    write(inbox / "unrelated.parquet", pa.table({"id": [7, 8], "name": [True, False]}))
    write(inbox / "missing.parquet", pa.table({"name": ["x"]}))
    write(inbox / "case.parquet", pa.table({"id": [9], "NAME": ["x"]}))
    write(inbox / "whole.parquet", pa.table({"id": [10, 11]}))
    (inbox / "text.parquet").write_text("this is not Parquet")
    (inbox / "empty.parquet").write_bytes(b"")
    content = (inbox / "whole.parquet").read_bytes()
    (inbox / "truncated.parquet").write_bytes(content[: len(content) // 2])
    write(inbox / "half.parquet", pa.table({"id": [1], "h": pa.array([1.5], pa.float32()).cast(pa.float16())}))
    db.run()
    assert [row[0] for row in rows(db, "id")] == [3, 4, 6, 10, 11]
    found = {row[0]: row[1:] for row in db.sql(
        "SELECT partition, offset, CAST(value AS STRING), reason FROM laminar_catalog.dead_letters "
        "WHERE value IS NULL").fetchall()}  # fmt: skip
    reasons = {
        "unrelated": "name is BOOLEAN in the file, which cannot become STRING",
        "missing": "the file has no column id, which is NOT NULL and has no default",
        "case": "column NAME differs from name only in case",
        "text": "the file cannot be read as Parquet",
        "empty": "the file cannot be read as Parquet",
        "truncated": "the file cannot be read as Parquet",
        "half": "h is a 16-bit float, which Spark does not read",
    }
    assert {name: reason in found[str(inbox / f"{name}.parquet")][2] for name, reason in reasons.items()} == (
        dict.fromkeys(reasons, True)
    )
    assert [letter for letter in letters(db) if letter[1] is not None] == [
        (0, '{"id":1,"n":200,"name":"a","x":1}', "n cannot become TINYINT without losing its value"),
        (1, '{"id":null,"n":2,"name":"b","x":2}', "id is NULL in a NOT NULL column"),
        (1, '{"id":5,"at":null}', "at has nanoseconds, which a TIMESTAMP does not keep"),
    ]
    write(inbox / "truncated.parquet", pa.table({"id": [12, 13, 14]}))
    db.sql("ALTER SOURCE s ALTER COLUMN n TYPE INT; ALTER SOURCE s ADD COLUMN x BIGINT")
    db.sql("ALTER SOURCE s ALTER COLUMN id SET DEFAULT 99")
    replayed = db.replay_dead_letters("s")
    assert (replayed.rows, replayed.refused) == (1 + 1 + 3 + 1, 10 - 4)
    after = [(1, 200, 1), (3, 3, None), (4, None, None), (5, None, None), (6, None, None), (10, None, None)]
    after += [(11, None, None), (12, None, None), (13, None, None), (14, None, None), (99, None, None)]
    assert rows(db, "id, n, x") == after
    assert db.replay_dead_letters("s").rows == 0
    assert rows(db, "id, n, x") == after


def test_field_ids_carry_a_column_over_renames_in_one_epoch(db, inbox):
    create(db, inbox, "id BIGINT", evolve="auto")
    write(inbox / "1.parquet", pa.table({"id": [1], "amount": pa.array([10], pa.int32())}), ids=[1, 2])
    db.run()
    assert rows(db) == [(1, 10)]
    write(inbox / "2.parquet", pa.table({"cents": [2**40], "id": [2], "city": ["Rome"]}), ids=[2, 1, 3])
    write(inbox / "3.parquet", pa.table({"id": [3], "amount": pa.array([30], pa.int32())}), ids=[1, 2])
    write(inbox / "4.parquet", pa.table({"id": [4], "city": ["by name"]}))
    write(inbox / "5.parquet", pa.table({"key": [5], "cents": [50]}), ids=[1, 2])
    db.run()
    assert db.schema("s").names == ["key", "cents", "city"]
    assert db.sql("SELECT * FROM s ORDER BY key").fetchall() == [
        (1, 10, None), (2, 2**40, "Rome"), (3, 30, None), (4, None, "by name"), (5, 50, None),
    ]  # fmt: skip
    assert letters(db) == []


def test_what_the_version_in_force_says_stands_at_every_reading(db, inbox):
    create(db, inbox, "id BIGINT, n INT DEFAULT 5")
    write(inbox / "1.parquet", pa.table({"id": [1]}))
    write(inbox / "2.parquet", pa.table({"id": [2], "n": [20]}))
    db.run()
    db.sql("ALTER SOURCE s ALTER COLUMN n SET DEFAULT 6; ALTER SOURCE s RENAME COLUMN n TO m")
    write(inbox / "3.parquet", pa.table({"id": [3], "n": [30]}))
    write(inbox / "4.parquet", pa.table({"id": [4]}))
    db.run()
    assert rows(db) == [(1, 5), (2, 20), (3, 30), (4, 6)]
    write(inbox / "2.parquet", pa.table({"id": [2, 2], "n": [20, 21]}))
    with pytest.raises(SourceUnavailable, match="when it was found"):
        rows(db)


def test_wider_and_nested_columns_evolve_or_wait_for_confirmation(db, inbox, tmp_path):
    create(db, inbox, "id INT, place STRUCT<city: STRING>", evolve="auto")
    db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'parquet', path = '{tmp_path / 'out'}')")
    place = pa.array([{"city": "Rome", "zip": 185}], pa.struct([("city", pa.string()), ("zip", pa.int64())]))
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    write(inbox / "1.parquet", pa.table({"id": [2**40], "place": place, "at": [moment], "none": pa.nulls(1)}))
    db.run()
    assert [str(field.type) for field in db.schema("s")] == [
        "int64", "struct<city: string, zip: int64>", "timestamp[us, tz=UTC]",
    ]  # fmt: skip
    (delivered,) = [row for file in (tmp_path / "out").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert delivered["id"], delivered["place"] == (2**40, {"city": "Rome", "zip": 185})
    db.sql("ALTER SOURCE s SET (evolve = 'confirm')")
    write(inbox / "2.parquet", pa.table({"id": [2], "late": ["x"]}))
    db.run()
    ((change, told),) = db.sql("SELECT id, changes FROM laminar_catalog.pending_changes").fetchall()
    assert told == "late: add STRING"
    assert rows(db, "id") == [(2**40,)]
    db.sql(f"ALTER SOURCE s CONFIRM CHANGE {change}")
    write(inbox / "3.parquet", pa.table({"id": [3], "late": ["y"]}))
    db.run()
    assert rows(db, "id, late") == [(2, "x"), (3, "y"), (2**40, None)]
