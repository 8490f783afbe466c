"""Net changes for a table with a key: one row to put or to delete for each key, whatever order the changes have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laminae.zset.upserts import upserts


def table(*changes):
    ops, keys, values = zip(*changes, strict=True) if changes else ((), (), ())
    weights = [1 if op[0] == "+" else -1 for op in ops]
    return pa.table(
        {
            "_op": pa.array(ops, pa.string()),
            "_weight": pa.array(weights, pa.int64()),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(values, pa.float64()),
        }
    )


def net(*changes, key=("k",)):
    return [tuple(row.values()) for row in upserts(table(*changes), key).to_pylist()]


def test_each_key_has_one_change_in_the_order_of_its_first():
    found = net(("-U", "a", 1.0), ("+U", "a", 2.0), ("+I", None, 5.0), ("-D", "c", 3.0))
    assert found == [("+U", 1, "a", 2.0), ("+I", 1, None, 5.0), ("-D", -1, "c", 3.0)]


@pytest.mark.parametrize(
    "changes",
    [
        [("+I", "a", 1.0), ("-D", "a", 1.0)],
        [("-U", "a", 1.0), ("+U", "a", 2.0), ("-U", "a", 2.0), ("+U", "a", 1.0)],
        [("+I", "a", float("nan")), ("-D", "a", float("nan"))],
        [],
    ],
    ids=["came and went", "as it was", "NaN", "nothing"],
)
def test_what_is_as_it_was_leaves_nothing(changes):
    assert net(*changes) == []


def test_steps_on_the_way_are_left_out_in_any_order():
    changes = [("-U", "a", 1.0), ("+U", "a", 2.0), ("-U", "a", 2.0), ("+U", "a", 3.0)]
    assert net(*changes) == net(*changes[::-1]) == [("+U", 1, "a", 3.0)]


def test_an_update_without_its_old_row_is_one():
    assert net(("+U", "a", 2.0)) == [("+U", 1, "a", 2.0)]


def test_a_table_of_one_row_has_the_empty_key():
    assert net(("-U", None, 1.0), ("+U", None, 2.0), key=()) == [("+U", 1, None, 2.0)]
