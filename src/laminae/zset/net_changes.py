"""Net changes: what remains of a change feed for each row when intermediate states are skipped.

Rows are identified by their id; a row that was inserted and deleted, or has its old values again, leaves no change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import SchemaMismatch
from laminae.zset.changelog import CHANGE_TYPE, COMMIT_VERSION, codes_of, data_columns, required
from laminae.zset.operation import CdcOperation
from laminae.zset.rows import row_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide_integers import Int64s


def net_changes(table: pa.Table, row_id: Sequence[str], compute_updates: bool = True) -> pa.Table:
    """At most one insert, one delete, or one pair of update images per id, with the columns of the input.

    An id names one row at a time, as in change feeds of Delta and Iceberg. Within a commit, deletes and preimages are
    applied before inserts and postimages, however the feed orders them. Without `compute_updates` a pair is a delete
    and an insert.
    """
    required(table, CHANGE_TYPE)
    for name in row_id:
        required(table, name)
    if not table.num_rows:
        return table
    codes, versions = codes_of(table), _versions(table)
    numbers = row_groups(table, row_id).numbers
    order = np.lexsort((np.arange(table.num_rows), codes > 0, versions, numbers))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
    has_before, has_after = codes[first] < 0, codes[last] > 0
    whole_rows = row_groups(table, data_columns(table)).numbers
    is_back = has_before & has_after & (whole_rows[first] == whole_rows[last])
    before, after = np.flatnonzero(has_before & ~is_back), np.flatnonzero(has_after & ~is_back)
    is_pair = has_before & has_after
    ids = np.concatenate([before, after])
    places = np.concatenate([first[before], last[after]])
    is_after = np.repeat([False, True], [len(before), len(after)])
    labels = np.where(
        is_pair[ids] & compute_updates,
        np.where(is_after, CdcOperation.UPDATE_AFTER.change_type, CdcOperation.UPDATE_BEFORE.change_type),
        np.where(is_after, CdcOperation.INSERT.change_type, CdcOperation.DELETE.change_type),
    )
    # Ordered by the commit that last changed the row; the two images of an update are adjacent.
    shown = np.lexsort((is_after, ids, versions[last][ids]))
    rows = table.take(pa.array(places[shown]))
    where = rows.column_names.index(CHANGE_TYPE)
    return rows.set_column(where, table.schema.field(where), pa.array(labels[shown], pa.string()))


def _versions(table: pa.Table) -> Int64s:
    column = required(table, COMMIT_VERSION)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise SchemaMismatch(path=COMMIT_VERSION, problem="a commit version is an integer and never NULL")
    return np.asarray(column.cast(pa.int64()), dtype=np.int64)
