"""Old rows and new rows of the same keys into changes: at most one of +I, -U/+U and -D for each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide import Bools

OP, WEIGHT = "_op", "_weight"
OPERATIONS = pa.array(["+I", "-D", "-U", "+U"])
_INSERT, _DELETE, _BEFORE, _AFTER = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One row for each key; what is not `visible` holds anything."""

    visible: Bools
    columns: Sequence[pa.Array]


def changes_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    own = pa.field(OP, pa.string(), nullable=False), pa.field(WEIGHT, pa.int64(), nullable=False)
    return pa.schema([*own, *fields])


def changes(fields: Sequence[pa.Field], old: Rows, new: Rows, unchanged: Bools) -> pa.RecordBatch:
    """In the order of the keys. `unchanged` is asked only where both rows are visible."""
    stays = old.visible & new.visible & unchanged
    is_gone, is_come = old.visible & ~stays, new.visible & ~stays
    keys = np.repeat(np.arange(len(stays)), is_gone.astype(np.int64) + is_come)
    # A key's second row, or its only one when nothing goes, is the new one.
    is_new = np.zeros(len(keys), dtype=np.bool_)
    is_new[1:] = keys[1:] == keys[:-1]
    is_new |= ~is_gone[keys]
    is_update = old.visible[keys] & new.visible[keys]
    codes = np.where(is_new, np.where(is_update, _AFTER, _INSERT), np.where(is_update, _BEFORE, _DELETE))
    same, either = pa.array(keys), pa.array(keys + is_new * len(stays))
    columns = [
        a.take(same) if a is b else pa.concat_arrays([a, b]).take(either)
        for a, b in zip(old.columns, new.columns, strict=True)
    ]
    own = [OPERATIONS.take(pa.array(codes)), pa.array(np.where(is_new, 1, -1))]
    return pa.RecordBatch.from_arrays([*own, *columns], schema=changes_schema(fields))
