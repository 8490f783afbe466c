"""What an Iceberg table's snapshots did, as a durable list of files that came and went. No data file is opened."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from laminae.errors import InvalidOption, SnapshotExpired, SourceUnavailable
from laminae.spark.sources.iceberg.snapshot_list import snapshot_list
from laminae.spark.sources.iceberg.table import table_settings
from tests.support.iceberg import put

COLUMNS = {"id": pa.int64(), "name": pa.string()}


@pytest.fixture
def found(lake, tmp_path):
    def opened(name="orders"):
        return snapshot_list({**lake.settings(name), "source": "orders", "directory": str(tmp_path / "log")})

    return opened


def told(listed, items):
    return [(entry.change.value, entry.schema, entry.end) for entry in listed.entries(range(items))]


def test_the_list_begins_with_the_table_and_goes_on_with_its_snapshots(lake, found):
    table = put(put(lake.table("orders", COLUMNS), id=[1, 2]), id=[3])
    listed = found()
    assert listed.items(0) == 2
    table.delete("id = 2")
    with table.update_schema() as update:
        update.rename_column("name", "title")
    put(table, id=[4], title=["x"])
    assert listed.items(2) == 5
    assert told(listed, 5) == [("added", 0, 2), ("added", 0, 2), ("removed", 0, 4), ("added", 0, 4), ("added", 1, 5)]
    entries = list(listed.entries(range(5)))
    assert entries[2].path == entries[0].path
    assert all(Path(entry.path).stat().st_size == entry.size for entry in entries)
    assert [listed.end_of(item) for item in (0, 1, 2, 3, 5)] == [0, 2, 2, 4, 5]
    assert found().items(5) == 5
    assert list(found().entries(range(5))) == entries


def test_an_empty_table_has_no_items_and_a_snapshot_without_rows_is_one(lake, found):
    table = lake.table("orders", COLUMNS)
    assert found().items(0) == 0
    put(table, id=[])
    put(table, id=[1])
    assert found().items(0) == 1
    put(table, id=[])
    assert told(found(), found().items(1)) == [("added", 0, 1), ("nothing", 0, 2)]


def test_delete_files_and_other_formats_are_refused_by_name(lake, found):
    table = put(lake.table("orders", COLUMNS), id=[1])
    listed = found()
    listed.items(0)

    def a_file(name, content, kind):
        return DataFile.from_args(
            content=content, file_path=name, file_format=kind, partition=Record(), record_count=1, file_size_in_bytes=9
        )

    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        files.append_data_file(a_file("/x.orc", DataFileContent.DATA, FileFormat.ORC))
        files.append_data_file(a_file("s3://bucket/x.parquet", DataFileContent.DATA, FileFormat.PARQUET))
        files.append_data_file(a_file("/x-deletes.parquet", DataFileContent.POSITION_DELETES, FileFormat.PARQUET))
    assert listed.items(1) == 4
    entries = list(listed.entries(range(1, 4)))
    assert [entry.change.value for entry in entries] == ["refused"] * 3
    assert "of format ORC" in entries[0].reason
    assert "outside the local file system" in entries[1].reason
    assert "merge-on-read" in entries[2].reason


def test_expired_snapshots_are_named_and_only_those_that_were_not_read(lake, found):
    table = put(lake.table("orders", COLUMNS), id=[1])
    listed = found()
    listed.items(0)
    put(table, id=[2])
    read = table.metadata.snapshots[0].snapshot_id
    table.maintenance.expire_snapshots().by_id(read).commit()
    assert listed.items(1) == 2
    put(put(table, id=[3]), id=[4])
    read, missed = (snapshot.snapshot_id for snapshot in table.metadata.snapshots[:2])
    table.maintenance.expire_snapshots().by_id(missed).commit()
    with pytest.raises(SnapshotExpired, match="does not descend from it"):
        listed.items(2)
    table.maintenance.expire_snapshots().by_id(read).commit()
    with pytest.raises(SnapshotExpired, match="snapshots that came after it have expired"):
        listed.items(2)


def test_a_table_that_was_rolled_back_is_named(lake, found):
    table = put(put(lake.table("orders", COLUMNS), id=[1]), id=[2])
    listed = found()
    listed.items(0)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    with pytest.raises(SnapshotExpired, match="does not descend from it"):
        listed.items(2)


def test_a_catalog_that_cannot_be_asked_is_waited_for(lake, found, tmp_path):
    with pytest.raises(SourceUnavailable, match="Table does not exist"):
        found("nothing").items(0)
    (tmp_path / "catalog.db").rename(tmp_path / "away.db")
    with pytest.raises(SourceUnavailable, match=r"table shop\.orders of catalog lake"):
        found().items(0)


def test_the_list_survives_a_writer_that_died(lake, found, tmp_path):
    put(lake.table("orders", COLUMNS), id=[1])
    assert found().items(0) == 1
    with (tmp_path / "log" / "000000000000.jsonl").open("ab") as out:
        out.write(b'{"path": "half')
    put(lake.load("orders"), id=[2])
    assert found().items(1) == 2
    lines = (tmp_path / "log" / "000000000000.jsonl").read_text().splitlines()
    assert [json.loads(line)["end"] for line in lines] == [1, 2]


@pytest.mark.parametrize(("given", "problem"), [({}, "it is missing"), ({"table": "orders"}, "has no namespace")])
def test_options_must_name_a_table(given, problem):
    with pytest.raises(InvalidOption, match=problem):
        table_settings(given, "orders")
