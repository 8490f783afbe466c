"""A table by primary key, as an upsert or Debezium source keeps it: its columns, and the trace of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from laminae.trace.spec import TraceSpec

TABLE, TRUNCATED, MOVED = "table", "truncated", "moved"
ORDER, DELETED, SEQUENCE, KEPT, MOVES = "_order", "_deleted", "_sequence", "_kept", "_moves"


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTable:
    """`columns` hold the keys too. `sequence` is the type of what orders events, if that is not the log.

    With `has_snapshots` the sequence of a row that a snapshot has read is even, and that of a change odd.
    """

    keys: tuple[str, ...]
    columns: tuple[pa.Field, ...]
    sequence: pa.DataType | None = None
    has_snapshots: bool = False


@lru_cache(maxsize=64)
def table_trace(table: KeyedTable) -> TraceSpec:
    """The row of each key. Columns may be NULL whatever the table says: a remembered delete has no values."""
    keys = [field for field in table.columns if field.name in table.keys]
    others = [field.with_nullable(True) for field in table.columns if field.name not in table.keys]
    if table.sequence is None:
        return TraceSpec.replace(TABLE, keys, others)
    return TraceSpec.replace(TABLE, keys, [*others, pa.field(SEQUENCE, table.sequence)], keeps_tombstones=True)


@lru_cache(maxsize=64)
def moved_trace(table: KeyedTable) -> TraceSpec:
    """Rows that have left their key and not yet come to another, by the sequence of the change."""
    others = [field.with_nullable(True) for field in table.columns if field.name not in table.keys]
    return TraceSpec.replace(MOVED, [pa.field(SEQUENCE, table.sequence)], others)


@lru_cache(maxsize=64)
def truncated_trace(sequence: pa.DataType) -> TraceSpec:
    """One row: the sequence of the last truncation, below which nothing is taken any more."""
    return TraceSpec.replace(TRUNCATED, [], [pa.field(SEQUENCE, sequence)])
