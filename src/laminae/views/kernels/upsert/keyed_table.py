"""A table with a primary key, as an upsert or Debezium source stores it: its columns and its traces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from laminae.trace.spec import TraceSpec

TABLE, TRUNCATED, MOVED, POSTPONED = "table", "truncated", "moved", "postponed"
ITEM, OFFSET = "item", "offset"
"""The position of an event in the log: the item, and the offset within it."""
ORDER, DELETED, SEQUENCE, KEPT, MOVES, AWAITS = "_order", "_deleted", "_sequence", "_kept", "_moves", "_awaits"
"""Columns of an event: the rank of its position in the log, whether it deletes, its sequence, the columns that it lacks
(unavailable values), whether its row also has another key (a primary key change), and whether the delete of the row
under that other key may be read in a later epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTable:
    """`columns` include the keys. `sequence` is the type of the ordering column, None if the log order decides.

    With `has_snapshots`, the sequence of a row read by a snapshot is even, and that of a change odd.
    """

    keys: tuple[str, ...]
    columns: tuple[pa.Field, ...]
    sequence: pa.DataType | None = None
    has_snapshots: bool = False


@lru_cache(maxsize=64)
def table_trace(table: KeyedTable) -> TraceSpec:
    """The row of each key. All columns are nullable, even if declared NOT NULL: a stored delete has no values."""
    keys = [field for field in table.columns if field.name in table.keys]
    non_keys = [field.with_nullable(True) for field in table.columns if field.name not in table.keys]
    if table.sequence is None:
        return TraceSpec.replace(TABLE, keys, non_keys)
    return TraceSpec.replace(TABLE, keys, [*non_keys, pa.field(SEQUENCE, table.sequence)], keeps_tombstones=True)


@lru_cache(maxsize=64)
def moved_trace(table: KeyedTable) -> TraceSpec:
    """Rows that left their key and have not arrived at another, by the sequence of the change."""
    non_keys = [field.with_nullable(True) for field in table.columns if field.name not in table.keys]
    return TraceSpec.replace(MOVED, [pa.field(SEQUENCE, table.sequence)], non_keys)


@lru_cache(maxsize=64)
def postponed_trace(table: KeyedTable) -> TraceSpec:
    """Events that wait for the delete of a moved row, by key and order. `_kept` names the columns that they lack."""
    keys = [field for field in table.columns if field.name in table.keys]
    non_keys = [field.with_nullable(True) for field in table.columns if field.name not in table.keys]
    flags = [pa.field(name, pa.bool_()) for name in (DELETED, MOVES, AWAITS)]
    payload = [*non_keys, pa.field(SEQUENCE, table.sequence), *flags, pa.field(KEPT, pa.string())]
    return TraceSpec.replace(POSTPONED, [*keys, pa.field(ORDER, pa.int64())], payload)


@lru_cache(maxsize=64)
def truncated_trace(sequence: pa.DataType) -> TraceSpec:
    """One row: the sequence of the last truncation, below which events are ignored."""
    return TraceSpec.replace(TRUNCATED, [], [pa.field(SEQUENCE, sequence)])


def keyed_traces(table: KeyedTable) -> list[TraceSpec]:
    """All traces of the table. Only tables with a sequence have more than the rows."""
    if table.sequence is None:
        return [table_trace(table)]
    return [table_trace(table), truncated_trace(table.sequence), moved_trace(table), postponed_trace(table)]
