"""Changelogs as Arrow tables: the columns that describe a change, in laminae's format and in Spark's.

laminae uses `_weight` and `_op` with `_epoch` and `_timestamp`; change feeds of Delta and Iceberg use `_change_type`
with `_commit_version` and `_commit_timestamp`. There, a weight of n copies is n rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.errors import SchemaMismatch
from laminae.zset.operation import CODES, OF_CHANGE_TYPE, OF_CODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.zset.wide_integers import Codes, Int64s

EPOCH, OP, WEIGHT, TIMESTAMP = "_epoch", "_op", "_weight", "_timestamp"
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
COMMIT_COLUMNS = {EPOCH: COMMIT_VERSION, TIMESTAMP: COMMIT_TIMESTAMP}
OUR_COLUMNS = {commit: own for own, commit in COMMIT_COLUMNS.items()}
META_COLUMNS = frozenset({EPOCH, OP, WEIGHT, TIMESTAMP, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP})

# Indexed by code + 2; no operation has code 0.
_SHORT_FORMS, _CHANGE_TYPES = (
    np.array([getattr(OF_CODE.get(code), name, "") for code in range(-2, 3)]) for name in ("value", "change_type")
)
_CODES_OF_OP = {operation.value: code for operation, code in CODES.items()}
_CODES_OF_CHANGE_TYPE = {name: CODES[operation] for name, operation in OF_CHANGE_TYPE.items()}


def data_columns(table: pa.Table) -> list[str]:
    """The data columns, without changelog metadata."""
    return [name for name in table.column_names if name not in META_COLUMNS]


def codes_of(table: pa.Table) -> Codes:
    """The operation code of each row: from `_op` or `_change_type`, otherwise from the sign of `_weight`."""
    if OP in table.column_names:
        return _looked_up(table, OP, _CODES_OF_OP)
    if CHANGE_TYPE in table.column_names:
        return _looked_up(table, CHANGE_TYPE, _CODES_OF_CHANGE_TYPE)
    if WEIGHT in table.column_names:
        return np.where(_stored_weights(table) < 0, -1, 1).astype(np.int8)
    raise SchemaMismatch(path="the changelog", problem=f"it has none of the columns {WEIGHT}, {OP} and {CHANGE_TYPE}")


def weights_of(table: pa.Table, known_codes: Codes | None = None) -> Int64s:
    """The weight of each row: `_weight` if the table has it, otherwise that of the operation."""
    codes = codes_of(table) if known_codes is None else known_codes
    if WEIGHT not in table.column_names:
        return np.sign(codes).astype(np.int64)
    weights = _stored_weights(table)
    differs = (weights != 0) & ((weights < 0) != (codes < 0))
    if bool(differs.any()):
        row = int(np.argmax(differs))
        problem = f"row {row} has weight {weights[row]} and an operation of the other sign"
        raise SchemaMismatch(path=WEIGHT, problem=problem)
    return weights


def to_change_feed(table: pa.Table) -> pa.Table:
    """Convert to a change feed with Spark's columns: one row per copy, none for weight 0."""
    codes = codes_of(table)
    copies = np.abs(weights_of(table, codes))
    places = np.repeat(np.arange(table.num_rows), copies)
    feed = table.select([name for name in table.column_names if name not in (OP, WEIGHT, CHANGE_TYPE)]).take(places)
    feed = feed.rename_columns([COMMIT_COLUMNS.get(name, name) for name in feed.column_names])
    return feed.append_column(CHANGE_TYPE, pa.array(_CHANGE_TYPES[codes[places] + 2], pa.string()))


def from_change_feed(table: pa.Table) -> pa.Table:
    """Convert a change feed to laminae's columns: `_op` and `_weight` instead of `_change_type`."""
    codes = _looked_up(table, CHANGE_TYPE, _CODES_OF_CHANGE_TYPE)
    changelog = table.drop_columns([CHANGE_TYPE])
    changelog = changelog.rename_columns([OUR_COLUMNS.get(name, name) for name in changelog.column_names])
    return changelog.append_column(OP, ops_of(codes)).append_column(WEIGHT, pa.array(np.sign(codes).astype(np.int64)))


def ops_of(codes: Codes) -> pa.Array:
    """The short names of operations, as in an `_op` column."""
    return pa.array(_SHORT_FORMS[codes + 2], pa.string())


def _stored_weights(table: pa.Table) -> Int64s:
    column = required(table, WEIGHT)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise SchemaMismatch(path=WEIGHT, problem=f"a weight is an integer and never NULL, here it is {column.type}")
    return np.asarray(column.cast(pa.int64()), dtype=np.int64)


def _looked_up(table: pa.Table, name: str, codes: Mapping[str, int]) -> Codes:
    column = required(table, name)
    known = pa.array(list(codes))
    indexes = pc.index_in(column.cast(pa.string()), value_set=known)
    if indexes.null_count:
        unknown = column.filter(pc.is_null(indexes))[0].as_py()
        raise SchemaMismatch(path=name, problem=f"{unknown!r} is not one of {', '.join(codes)}")
    return np.asarray(np.array(list(codes.values()), dtype=np.int8)[np.asarray(indexes)])


def required(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise SchemaMismatch(path=name, problem="the changelog does not have this column")
    return table.column(name)
