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
    gone, come = np.flatnonzero(old.visible & ~stays), np.flatnonzero(new.visible & ~stays)
    order = np.argsort(np.concatenate([gone * 2, come * 2 + 1]), kind="stable")
    codes = np.concatenate(
        [np.where(new.visible[gone], _BEFORE, _DELETE), np.where(old.visible[come], _AFTER, _INSERT)]
    )[order]
    before, after, merged = pa.array(gone), pa.array(come), pa.array(order)
    columns = [
        pa.concat_arrays([a.take(before), b.take(after)]).take(merged)
        for a, b in zip(old.columns, new.columns, strict=True)
    ]
    weights = np.where((codes == _DELETE) | (codes == _BEFORE), -1, 1)
    own = [OPERATIONS.take(pa.array(codes)), pa.array(weights)]
    return pa.RecordBatch.from_arrays([*own, *columns], schema=changes_schema(fields))
