"""Which event of each key wins: the last one in the log, or the first of those with the highest sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.views.kernels.upsert.keyed_table import ITEM, OFFSET, ORDER, table_trace
from laminae.zset.comparison import before, gathered

if TYPE_CHECKING:
    from laminae.trace.lookup import Latest, Wanted
    from laminae.views.kernels.upsert.value_source import KeyedEvents
    from laminae.zset.wide_integers import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """The winning event of each key that has one: the stored row of the key, and the new payload.

    `dropped` counts events that were not newer; `unseen` counts deletes of missing rows and omitted values that are
    unknown.
    """

    keys: Wanted
    before: Latest
    payload: dict[str, pa.Array]
    deleted: Bools
    dropped: int
    unseen: int


def in_log_order(events: pa.Table) -> pa.Table:
    """The events with `_order`, their rank by position in the log, instead of that position."""
    by_position = pc.sort_indices(events, sort_keys=[(ITEM, "ascending"), (OFFSET, "ascending")])
    order = np.empty(events.num_rows, dtype=np.int64)
    order[np.asarray(by_position)] = np.arange(events.num_rows)
    return events.drop_columns([ITEM, OFFSET]).append_column(ORDER, pa.array(order))


def last_events(keyed: KeyedEvents) -> Events:
    """The winning events, sorted by the hash of their key."""
    trace, last = table_trace(keyed.table), keyed.last()
    has_one, unseen = last >= 0, _unseen(keyed)
    last = last[has_one]
    rows = pa.array(keyed.by_key.order[last])
    payload = {
        name: gathered(keyed.delta.column(name), trace.schema.field(name).type).take(rows) for name in trace.payload
    }
    deleted = keyed.deletes[last]
    for name, lacks in keyed.lacks().items():
        payload[name], is_unknown = values_at(keyed, name, lacks, last)
        unseen += int(np.count_nonzero(is_unknown & ~deleted))
    keys, known = keyed.keys.take(has_one), keyed.known.take(has_one)
    return Events(keys, known, payload, deleted, int(np.count_nonzero(~keyed.taken)), unseen)


def values_at(keyed: KeyedEvents, name: str, lacks: Bools, rows: Int64s) -> tuple[pa.Array, Bools]:
    """The values of these rows in a column that events omit, and where the value is NULL because it is unknown."""
    value_sources = keyed.value_sources(lacks)[rows]
    is_unknown = keyed.has_no_value(lacks)[value_sources]
    return keyed.column(name).take(pa.array(value_sources, mask=is_unknown)), is_unknown


def is_older(column: pa.Array, bound: pa.Scalar) -> Bools:
    """Whether values are smaller than the bound; NULL is smaller than anything."""
    bounds = pa.repeat(bound, len(column)).cast(column.type)
    return np.asarray(column.is_null()) | before([column], [bounds], len(column))


def _unseen(keyed: KeyedEvents) -> int:
    """Count deletes of missing rows; with a sequence, deletes of keys never seen before (deletes are stored then)."""
    is_known = np.ones(len(keyed.deletes), dtype=np.bool_)
    if keyed.table.sequence is None:
        is_known[1:] = ~keyed.deletes[:-1]
    is_known[keyed.by_key.starts] = keyed.known.live if keyed.table.sequence is None else keyed.known.found
    return int(np.count_nonzero(keyed.deletes & ~is_known))
