"""Consolidation: equal rows are merged into one with the sum of their weights, and rows with sum 0 are removed.

Weights are summed in 128 bits, so the result does not depend on their order; a sum that does not fit is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from laminae.zset.canonical import canonical
from laminae.zset.changelog import CHANGE_TYPE, META_COLUMNS, OP, WEIGHT, data_columns, ops_of, weights_of
from laminae.zset.record import ChangelogRecord
from laminae.zset.rows import row_groups
from laminae.zset.wide_conversion import check_fits, fits_int64, to_int64
from laminae.zset.wide_integers import WideInts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from laminae.zset.rows import RowGroups
    from laminae.zset.wide_integers import Int64s

Row = TypeVar("Row")


def consolidate(changes: pa.Table | Iterable[ChangelogRecord[Row]]) -> pa.Table | list[ChangelogRecord[Row]]:
    """One change per remaining row, as +I or -D with its net weight, in the order of first appearance.

    A table has its weights in `_weight`, `_op` or `_change_type`; `_epoch`, `_timestamp` and other metadata columns are
    those of the latest change, as is the timestamp of a record.
    """
    return _table(changes) if isinstance(changes, pa.Table) else _records(changes)


def net_weights(table: pa.Table, names: Sequence[str], weights: Int64s) -> tuple[RowGroups, Int64s]:
    """The groups of rows that are equal in these columns, and the sum of the weights of each group."""
    groups = row_groups(table, names)
    sums = WideInts.of_int64(weights[groups.order]).sum_runs(groups.starts)
    check_fits(sums, fits_int64(sums), "the weight", pa.int64())
    return groups, to_int64(sums)


def _table(table: pa.Table) -> pa.Table:
    weights = weights_of(table)
    names = data_columns(table)
    groups, net = net_weights(table, names, weights)
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
    merged: dict[Hashable, tuple[Row, int, int]] = {}
    for record in records:
        key = canonical(record.data)
        data, weight, timestamp = merged.get(key, (record.data, 0, record.timestamp))
        merged[key] = (data, weight + record.weight, max(timestamp, record.timestamp))
    return [ChangelogRecord(data, weight, timestamp) for data, weight, timestamp in merged.values() if weight]
