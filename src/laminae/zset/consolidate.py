"""Consolidation: equal rows become one with the sum of their weights, and those that sum to zero vanish.

Summed in 128 bits, so that the order does not matter; a sum that a weight cannot hold is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from laminae.zset.aggregate.grouped import check_fits
from laminae.zset.canonical import canonical
from laminae.zset.changelog import CHANGE_TYPE, META_COLUMNS, OP, WEIGHT, data_columns, ops_of, weights_of
from laminae.zset.record import ChangelogRecord
from laminae.zset.rows import row_groups
from laminae.zset.wide import WideInts
from laminae.zset.wide_values import fits_int64, to_int64

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from laminae.zset.wide import Int64s

Row = TypeVar("Row")


def consolidate(changes: pa.Table | Iterable[ChangelogRecord[Row]]) -> pa.Table | list[ChangelogRecord[Row]]:
    """One change for each row that is left, as +I or -D of its net weight, in the order of first appearance.

    A table has its weights in `_weight`, `_op` or `_change_type`; `_epoch`, `_timestamp` and the like are those of the
    latest change, as is the timestamp of a record.
    """
    return _table(changes) if isinstance(changes, pa.Table) else _records(changes)


def _table(table: pa.Table) -> pa.Table:
    weights = weights_of(table)
    names = data_columns(table)
    groups = row_groups(table, names)
    sums = WideInts.of_int64(weights[groups.order]).sum_runs(groups.starts)
    check_fits(sums, fits_int64(sums), "the weight", pa.int64())
    net = to_int64(sums)
    left = net != 0
    rows = table.select(names).take(pa.array(groups.first[left]))
    columns = {name: rows.column(name) for name in names}
    for name in (name for name in table.column_names if name in META_COLUMNS - {OP, WEIGHT, CHANGE_TYPE}):
        columns[name] = _latest(table.column(name), groups.numbers).filter(pa.array(left))
    if OP in table.column_names:
        columns[OP] = ops_of(np.sign(net[left]).astype(np.int8))
    columns[WEIGHT] = pa.array(net[left])
    ordered = [name for name in table.column_names if name in columns]
    return pa.table({name: columns[name] for name in [*ordered, *(columns.keys() - ordered)]})


def _latest(column: pa.ChunkedArray, groups: Int64s) -> pa.ChunkedArray:
    keyed = pa.table({"group": pa.array(groups), "value": column})
    return keyed.group_by("group", use_threads=False).aggregate([("value", "max")]).sort_by("group").column("value_max")


def _records(records: Iterable[ChangelogRecord[Row]]) -> list[ChangelogRecord[Row]]:
    found: dict[Hashable, tuple[Row, int, int]] = {}
    for record in records:
        key = canonical(record.data)
        data, weight, timestamp = found.get(key, (record.data, 0, record.timestamp))
        found[key] = (data, weight + record.weight, max(timestamp, record.timestamp))
    return [ChangelogRecord(data, weight, timestamp) for data, weight, timestamp in found.values() if weight]
