"""Reduce a changelog to upserts: for each key, at most one row to upsert or one to delete.

The order of the changes does not matter; rows that were inserted and deleted, or have their old values again, leave
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.zset.changelog import OP, WEIGHT, codes_of, data_columns, ops_of, weights_of
from laminae.zset.operation import CODES, CdcOperation
from laminae.zset.rows import row_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSERT, _UPDATE, _DELETE = (
    CODES[operation] for operation in (CdcOperation.INSERT, CdcOperation.UPDATE_AFTER, CdcOperation.DELETE)
)


def upserts(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """+I, +U or -D with weight 1 or -1, in the order of first appearance of the keys; other columns are unchanged.

    A +U without its -U stays a +U.
    """
    codes = codes_of(table)
    weights = weights_of(table, codes)
    if not table.num_rows:
        return table
    rows = row_groups(table, data_columns(table))
    net = np.add.reduceat(weights[rows.order], rows.starts)
    # The last of equal rows represents them, so that its timestamp is the latest.
    last = rows.order[np.append(rows.starts[1:], len(rows.order)) - 1]
    keys = row_groups(table, list(key)).numbers
    count = int(keys.max()) + 1
    put, gone = np.full(count, -1), np.full(count, -1)
    for places, selected in ((last[net > 0], put), (last[net < 0], gone)):
        # If a key has several rows, which it should not, take the last one.
        np.maximum.at(selected, keys[places], places)
    chosen = np.where(put >= 0, put, gone)
    is_update = (gone >= 0) | (codes[chosen] == _UPDATE)
    kinds = np.where(put >= 0, np.where(is_update, _UPDATE, _INSERT), _DELETE)
    left = chosen >= 0
    selected = table.take(pa.array(chosen[left]))
    own = {OP: ops_of(kinds[left].astype(np.int8)), WEIGHT: pa.array(np.sign(kinds[left]).astype(np.int64))}
    return pa.table({name: own.get(name, selected.column(name)) for name in selected.column_names})
