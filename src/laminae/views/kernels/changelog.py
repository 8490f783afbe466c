"""Turn the old and new rows of the same keys into a changelog: at most one of +I, -U/+U and -D per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.zset.changelog import OP, WEIGHT
from laminae.zset.outcome import DELETE, INSERT, UPDATE, outcomes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide_integers import Bools

OPERATIONS = pa.array(["+I", "-D", "-U", "+U"])
INSERTED, DELETED, REPLACED, UPDATED = range(4)
"""Indexes in `OPERATIONS`. -U is the row that an update replaces, +U the row that replaces it."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One row per key; the values of rows that are not `visible` are undefined."""

    visible: Bools
    columns: Sequence[pa.Array]


def changes_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    own = pa.field(OP, pa.string(), nullable=False), pa.field(WEIGHT, pa.int64(), nullable=False)
    return pa.schema([*own, *fields])


def changes(fields: Sequence[pa.Field], old: Rows, new: Rows, unchanged: Bools) -> pa.RecordBatch:
    """The changes in key order. `unchanged` is only read where both rows are visible."""
    outcomes = outcomes_of(old.visible, new.visible, unchanged)
    is_gone, is_come = (outcomes == UPDATE) | (outcomes == DELETE), (outcomes == UPDATE) | (outcomes == INSERT)
    keys = np.repeat(np.arange(len(outcomes)), is_gone.astype(np.int64) + is_come)
    # The second row of a key, or its only row if there is no old one, is the new row.
    is_new = np.zeros(len(keys), dtype=np.bool_)
    is_new[1:] = keys[1:] == keys[:-1]
    is_new |= ~is_gone[keys]
    is_update = outcomes[keys] == UPDATE
    codes = np.where(is_new, np.where(is_update, UPDATED, INSERTED), np.where(is_update, REPLACED, DELETED))
    same, either = pa.array(keys), pa.array(keys + is_new * len(outcomes))
    columns = [
        a.take(same) if a is b else pa.concat_arrays([a, b]).take(either)
        for a, b in zip(old.columns, new.columns, strict=True)
    ]
    own = [OPERATIONS.take(pa.array(codes)), pa.array(np.where(is_new, 1, -1))]
    return pa.RecordBatch.from_arrays([*own, *columns], schema=changes_schema(fields))
