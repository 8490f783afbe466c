"""What a Delta table's commits did, as a durable list of files; and its schema, followed. No data file is opened."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import laminae as lm
from laminae.errors import SnapshotExpired, SourceUnavailable
from laminae.spark.sources.delta.commits import commit_list
from tests.support.following import followed

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "a table"


@pytest.fixture
def found(place, tmp_path):
    return lambda: commit_list({"source": "orders", "directory": str(tmp_path / "log"), "path": str(place)})


def told(listed, items):
    return [(entry.change.value, entry.snapshot, entry.schema, entry.end) for entry in listed.entries(range(items))]


def commit(place, version, *actions):
    """A commit as another writer would make it."""
    lines = [{"commitInfo": {"timestamp": 1_700_000_000_000}}, *actions]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (place / "_delta_log" / f"{version:020}.json").write_text(text)


def schema_of(*fields):
    """The action that sets a schema with column mapping: (id, name, type) of each column."""
    made = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"},
        }
        for number, name, kind in fields
    ]
    return {
        "metaData": {
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": made}),
            "partitionColumns": [],
            "configuration": {},
        }
    }


def test_the_list_begins_with_the_table_and_goes_on_with_its_commits(place, found):
    with pytest.raises(SourceUnavailable, match="a table"):
        found().items(0)
    write_deltalake(place, pa.table({"id": [1, 2]}), configuration=FEED)
    write_deltalake(place, pa.table({"id": [3]}), mode="append")
    listed = found()
    assert listed.items(0) == 2
    DeltaTable(place).delete("id = 2")
    write_deltalake(place, pa.table({"id": [4], "city": ["Rome"]}), mode="append", schema_mode="merge")
    DeltaTable(place).optimize.compact()
    write_deltalake(place, pa.table({"id": [5], "city": ["x"]}), mode="overwrite")
    items = listed.items(2)
    assert told(listed, items) == [
        ("added", 1, 1, 2), ("added", 1, 1, 2), ("said", 2, 1, 3), ("added", 3, 3, 4), ("nothing", 4, 3, 5),
        ("removed", 5, 3, 7), ("added", 5, 3, 7),
    ]  # fmt: skip
    entries = list(listed.entries(range(items)))
    assert all(Path(entry.path).stat().st_size == entry.size for entry in entries if entry.path)
    assert list(found().entries(range(items))) == entries


def test_partitions_are_told_as_text(place, found):
    rows = pa.table({"id": [1, 2], "d": pa.array(["a b", None]), "k": pa.array([1, 2], pa.int32())})
    write_deltalake(place, rows, partition_by=["d", "k"])
    listed = found()
    listed.items(0)
    write_deltalake(place, rows, partition_by=["d", "k"], mode="append")
    entries = list(listed.entries(range(listed.items(2))))
    told = sorted((dict(entry.partition) for entry in entries), key=lambda values: values["k"])
    assert told == [{"d": "a b", "k": "1"}] * 2 + [{"d": None, "k": "2"}] * 2
    assert all(Path(entry.path).exists() for entry in entries)


def test_deletion_vectors_and_other_places_are_refused_by_name(place, found):
    write_deltalake(place, pa.table({"id": [1]}))
    listed = found()
    listed.items(0)
    vector = {"path": "x.parquet", "size": 1, "dataChange": True, "deletionVector": {"storageType": "u"}}
    commit(place, 1, {"add": vector}, {"add": {"path": "s3://bucket/x.parquet", "size": 1, "dataChange": True}})
    assert listed.items(1) == 3
    reasons = [entry.reason for entry in listed.entries(range(1, 3))]
    assert "by a deletion vector" in reasons[0]
    assert "outside the local file system" in reasons[1]


def test_commits_that_are_gone_and_tables_that_were_replaced_are_named(place, found):
    write_deltalake(place, pa.table({"id": [1]}))
    write_deltalake(place, pa.table({"id": [2]}), mode="append")
    listed = found()
    listed.items(0)
    for number in (3, 4):
        write_deltalake(place, pa.table({"id": [number]}), mode="append")
    DeltaTable(place).create_checkpoint()
    (place / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(SnapshotExpired, match="version 2, which follows it, is no longer in the log"):
        listed.items(2)
    for file in (place / "_delta_log").iterdir():
        file.unlink()
    write_deltalake(place, pa.table({"id": [1]}))
    with pytest.raises(SnapshotExpired, match="the table is at version 0 again"):
        listed.items(2)


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as database:
        yield database


def test_columns_are_followed_by_name_and_with_column_mapping_by_id(db, place):
    write_deltalake(place, pa.table({"id": [1], "amount": pa.array([1], pa.int32())}))
    db.sql(f"CREATE SOURCE s (id BIGINT, amount INT) WITH (connector = 'delta', path = '{place}')")
    assert followed(db, 0) == "NoChange"
    write_deltalake(place, pa.table({"id": [1], "city": ["x"]}), mode="append", schema_mode="merge")
    assert followed(db, 1) == "Applied"
    assert db.schema("s").names == ["id", "amount", "city"]
    commit(place, 2, schema_of((1, "id", "long"), (2, "amount", "integer"), (3, "city", "string")))
    assert followed(db, 2) == "Applied"
    commit(place, 3, schema_of((1, "id", "long"), (2, "cents", "long"), (3, "city", "string"), (4, "zip", "string")))
    assert followed(db, 3) == "Applied"
    assert {field.name: str(field.type) for field in db.schema("s")} == {
        "id": "int64", "cents": "int64", "city": "string", "zip": "string",
    }  # fmt: skip
    commit(place, 4, schema_of((1, "id", "long"), (2, "cents", "long"), (4, "zip", "string")))
    assert followed(db, 4) == "NeedsConfirmation"
    commit(place, 5)
    assert followed(db, 5) is None


def test_refresh_takes_what_the_table_has_now(db, place):
    db.sql(f"CREATE SOURCE s (id INT, own STRING) WITH (connector = 'delta', path = '{place}')")
    with pytest.raises(SourceUnavailable):
        db.sql("ALTER SOURCE s REFRESH SCHEMA")
    write_deltalake(place, pa.table({"id": [1], "place": [{"city": "x"}]}))
    assert db.sql("ALTER SOURCE s REFRESH SCHEMA").fetchall()[0][0] == "applied"
    assert {field.name: str(field.type) for field in db.schema("s")} == {
        "id": "int64", "place": "struct<city: string>", "own": "string",
    }  # fmt: skip
