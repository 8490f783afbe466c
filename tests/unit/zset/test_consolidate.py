"""Equal rows are one row with the sum of their weights; zeros vanish."""

import math

import pyarrow as pa
import pytest

from laminae.errors import SchemaMismatch, ValueOverflow
from laminae.zset.changelog import from_change_feed, to_change_feed
from laminae.zset.consolidate import consolidate
from laminae.zset.record import ChangelogRecord


def changes(rows, **columns):
    return pa.table({"a": [row for row, _ in rows], "_weight": [weight for _, weight in rows], **columns})


def test_weights_of_equal_rows_are_summed_and_zeros_dropped():
    found = consolidate(changes([("x", 1), ("y", 2), ("x", -1), ("y", 3), ("z", 0)]))
    assert found.to_pylist() == [{"a": "y", "_weight": 5}]


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (None, None),
        (math.nan, -math.nan),
        (0.0, -0.0),
        ([1, None], [1, None]),
        ({"b": None, "c": math.nan}, {"b": None, "c": math.nan}),
        ({"b": [0.0]}, {"b": [-0.0]}),
    ],
)
def test_rows_are_equal_as_sql_has_it(one, same):
    assert consolidate(pa.table({"a": [one, same], "_weight": [1, -1]})).num_rows == 0


@pytest.mark.parametrize(("one", "other"), [(None, math.nan), ([1], [1, None]), ([], None), ({"b": None}, None)])
def test_rows_that_differ_stay_apart(one, other):
    assert consolidate(pa.table({"a": [one, other], "_weight": [1, -1]})).num_rows == 2


def test_every_column_of_the_row_counts_and_the_latest_epoch_stays():
    table = pa.table(
        {
            "_epoch": [1, 2, 3],
            "_op": ["+I", "-U", "+U"],
            "_weight": [1, -1, 1],
            "_timestamp": [10, 30, 20],
            "a": [1, 1, 1],
            "b": ["x", "x", "y"],
        }
    )
    assert consolidate(table).to_pylist() == [
        {"_epoch": 3, "_op": "+I", "_weight": 1, "_timestamp": 20, "a": 1, "b": "y"}
    ]


def test_weights_may_come_as_operations_or_change_types():
    assert consolidate(pa.table({"a": [1, 1, 2], "_op": ["+I", "-U", "-D"]})).to_pylist() == [
        {"a": 2, "_op": "-D", "_weight": -1}
    ]
    feed = pa.table({"a": [1, 2], "_change_type": ["update_preimage", "update_postimage"]})
    assert consolidate(feed).to_pylist() == [{"a": 1, "_weight": -1}, {"a": 2, "_weight": 1}]


def test_a_row_without_columns_is_one_row():
    assert consolidate(pa.table({"_weight": [1, 2, -1]})).to_pylist() == [{"_weight": 2}]
    assert consolidate(pa.table({"_weight": pa.array([], pa.int64())})).num_rows == 0


def test_a_sum_of_weights_beyond_64_bits_is_an_error_and_coming_back_is_not():
    with pytest.raises(ValueOverflow, match="the weight"):
        consolidate(changes([("x", 2**63 - 1), ("x", 1)]))
    assert consolidate(changes([("x", 2**63 - 1), ("x", 1), ("x", -1)])).to_pylist()[0]["_weight"] == 2**63 - 1


def test_records_are_consolidated_with_the_latest_timestamp():
    before, after = ChangelogRecord.retraction({"id": 1, "n": 1}, {"id": 1, "n": 2}, 30)
    found = consolidate([ChangelogRecord.insert({"id": 1, "n": 1}, 10), before, after, ChangelogRecord("gone", 0, 5)])
    assert found == [ChangelogRecord({"id": 1, "n": 2}, 1, 30)]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pa.table({"a": [1]}), "_weight, _op and _change_type"),
        (pa.table({"a": [1], "_op": ["+X"]}), "'\\+X' is not one of"),
        (pa.table({"a": [1], "_weight": [1], "_op": ["-D"]}), "row 0 has weight 1"),
        (pa.table({"a": [1], "_weight": pa.array([None], pa.int64())}), "never NULL"),
        (pa.table({"a": [1], "_weight": [1.5]}), "a weight is an integer"),
    ],
)
def test_a_table_that_is_no_changelog_is_refused(table, told):
    with pytest.raises(SchemaMismatch, match=told):
        consolidate(table)


def test_a_changelog_becomes_a_change_feed_and_comes_back():
    table = pa.table(
        {"_epoch": [7, 8, 8, 8], "_op": ["+I", "-U", "+U", "-D"], "_weight": [2, -1, 1, 0], "a": [*"xyzq"]}
    )
    feed = to_change_feed(table)
    assert feed.select(["_commit_version", "a", "_change_type"]).to_pylist() == [
        {"_commit_version": 7, "a": "x", "_change_type": "insert"},
        {"_commit_version": 7, "a": "x", "_change_type": "insert"},
        {"_commit_version": 8, "a": "y", "_change_type": "update_preimage"},
        {"_commit_version": 8, "a": "z", "_change_type": "update_postimage"},
    ]
    back = from_change_feed(feed)
    assert back.column("_op").to_pylist() == ["+I", "+I", "-U", "+U"]
    assert back.column("_weight").to_pylist() == [1, 1, -1, 1]
    assert back.column("_epoch").to_pylist() == [7, 7, 8, 8]
