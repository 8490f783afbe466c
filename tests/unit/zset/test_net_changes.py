"""Net changes of a change feed: the first state and the last one, nothing between."""

import pyarrow as pa
import pytest

from laminae.errors import SchemaMismatch
from laminae.zset.net_changes import net_changes

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"


def feed(*rows):
    """Rows of (change type, version, id, value)."""
    kinds, versions, ids, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array(values, pa.string()),
            "_change_type": pa.array(kinds, pa.string()),
            "_commit_version": pa.array(versions, pa.int64()),
            "_commit_timestamp": pa.array([v * 1000 for v in versions], pa.timestamp("ms")),
        }
    )


def net(*rows, **options):
    found = net_changes(feed(*rows), row_id=["id"], **options)
    columns = ("_change_type", "_commit_version", "id", "v")
    return list(zip(*(found.column(name).to_pylist() for name in columns), strict=True))


def test_insert_then_delete_leaves_nothing():
    assert net((INSERT, 1, 1, "a"), (DELETE, 2, 1, "a")) == []


def test_delete_then_insert_of_an_equal_row_leaves_nothing():
    assert net((DELETE, 1, 1, "a"), (INSERT, 2, 1, "a")) == []


def test_delete_then_insert_of_another_row_is_an_update():
    assert net((DELETE, 1, 1, "a"), (INSERT, 2, 1, "b")) == [(BEFORE, 1, 1, "a"), (AFTER, 2, 1, "b")]


def test_insert_then_updates_is_an_insert_of_the_last_state():
    steps = [(INSERT, 1, 1, "a"), (BEFORE, 2, 1, "a"), (AFTER, 2, 1, "b"), (BEFORE, 3, 1, "b"), (AFTER, 3, 1, "c")]
    assert net(*steps) == [(INSERT, 3, 1, "c")]


def test_several_updates_are_one_from_the_first_to_the_last():
    steps = [(BEFORE, 2, 1, "a"), (AFTER, 2, 1, "b"), (BEFORE, 3, 1, "b"), (AFTER, 3, 1, "c")]
    assert net(*steps) == [(BEFORE, 2, 1, "a"), (AFTER, 3, 1, "c")]
    assert net(*steps, (BEFORE, 4, 1, "c"), (AFTER, 4, 1, "a")) == []


def test_updates_then_delete_is_a_delete_of_the_first_state():
    assert net((BEFORE, 2, 1, "a"), (AFTER, 2, 1, "b"), (DELETE, 3, 1, "b")) == [(DELETE, 2, 1, "a")]


def test_without_computed_updates_a_pair_is_a_delete_and_an_insert():
    steps = [(BEFORE, 2, 1, "a"), (AFTER, 2, 1, "b")]
    assert net(*steps, compute_updates=False) == [(DELETE, 2, 1, "a"), (INSERT, 2, 1, "b")]


def test_the_order_of_the_feed_does_not_matter():
    steps = [(BEFORE, 2, 1, "a"), (AFTER, 2, 1, "b"), (INSERT, 3, 2, "x"), (BEFORE, 3, 1, "b"), (AFTER, 3, 1, "c")]
    assert sorted(net(*reversed(steps))) == sorted(net(*steps))


def test_a_delete_that_carries_only_its_key_still_cancels_the_insert():
    assert net((INSERT, 1, 1, "a"), (DELETE, 2, 1, None)) == []


def test_rows_are_told_apart_by_all_id_columns_and_null_is_an_id():
    table = feed((INSERT, 1, None, "a"), (DELETE, 2, None, "a"), (INSERT, 1, 1, "x"), (DELETE, 2, 1, "y"))
    assert net_changes(table, row_id=["id"]).num_rows == 0
    assert net_changes(table, row_id=["id", "v"]).column("v").to_pylist() == ["x", "y"]


def test_the_columns_come_out_as_they_went_in():
    table = feed((INSERT, 1, 1, "a"))
    assert net_changes(table, row_id=["id"]).equals(table)
    assert net_changes(feed(), row_id=["id"]).schema == table.schema


@pytest.mark.parametrize("missing", ["_change_type", "_commit_version", "id"])
def test_a_missing_column_is_named(missing):
    with pytest.raises(SchemaMismatch, match=missing):
        net_changes(feed((INSERT, 1, 1, "a")).drop_columns([missing]), row_id=["id"])


def test_an_unknown_change_type_is_named():
    with pytest.raises(SchemaMismatch, match="upsert"):
        net(("upsert", 1, 1, "a"))
