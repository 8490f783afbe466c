"""Primary key changes by events that lack a value: the value is that of the row under the old key.

Such a change is two events with one position: a delete of the old key and an insert of the new one, often in different
shards and in partitions that are read at different times. So `resolve` must be passed the events of all shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.lookup import Latest, Wanted, latest
from laminae.trace.spec import stored_type
from laminae.views.kernels.upsert.event_order import is_older
from laminae.views.kernels.upsert.keyed_table import KEPT, SEQUENCE, KeyedTable, moved_trace
from laminae.views.kernels.upsert.postponed import Resolved, split_events
from laminae.views.kernels.upsert.value_source import keyed_events
from laminae.zset.comparison import gathered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.run import Run
    from laminae.views.kernels.upsert.value_source import KeyedEvents
    from laminae.zset.wide_integers import Bools, Int64s


def resolve(
    table: KeyedTable,
    delta: pa.Table,
    runs: Sequence[Run],
    remembered: Sequence[Run] = (),
    arrived: Sequence[int] | Int64s = (),
    floor: pa.Scalar | None = None,
) -> Resolved:
    """Fill the values that moved inserts lack from the rows that left their keys; split off the events that must wait.

    `delta` holds the events of an epoch of all shards, including those postponed earlier. `runs` are the tables before
    it, `remembered` the rows that left in earlier epochs, both of all shards. `arrived` are the positions of moved
    inserts, including those that are not in `delta`; events below `floor` are ignored. A value that is not found and
    can no longer arrive stays marked as not sent.
    """
    keyed = _above(keyed_events(table, delta, runs), floor)
    delta, lacks = keyed.delta, keyed.lacks()
    inserts = np.flatnonzero(keyed.taken & keyed.moved & ~keyed.deletes)
    places = keyed.places[inserts]
    stored = latest(moved_trace(table), remembered, Wanted(places, (pa.array(places),)))
    old = _old_rows(keyed, inserts, stored)
    is_early = keyed.awaits[inserts] & (old == inserts)
    waits = np.zeros(len(keyed.taken), dtype=np.bool_)
    filled = {}
    for name, missing in lacks.items():
        lacks_value = missing[inserts]
        origins = _origins(keyed, missing, inserts, np.where(lacks_value, old, inserts))
        origin = origins[inserts]
        is_known = np.append(~keyed.has_no_value(missing), np.ones(len(inserts), dtype=np.bool_))
        is_found = lacks_value & is_known[origin]
        values = pa.concat_arrays([keyed.column(name), stored.payload[name]]).take(pa.array(origin[is_found]))
        filled[name] = keyed.by_key.order[inserts[is_found]]
        delta = _with_values(delta, name, filled[name], values)
        waits |= np.isin(origins[: len(waits)], inserts[lacks_value & is_early])
    if filled:
        delta = _with_marks(table, delta, filled)
    return split_events(keyed, delta, waits, np.asarray(arrived, dtype=np.int64))


def _above(keyed: KeyedEvents, floor: pa.Scalar | None) -> KeyedEvents:
    if floor is None:
        return keyed
    sequences = gathered(keyed.delta.column(SEQUENCE), stored_type(keyed.delta.column(SEQUENCE).type))
    return replace(keyed, taken=keyed.taken & ~is_older(sequences, floor)[keyed.by_key.order])


def _old_rows(keyed: KeyedEvents, inserts: Int64s, stored: Latest) -> Int64s:
    """The row that each insert continues: an old row of this epoch, or a remembered one (numbered after all others).

    It is the insert itself where there is none. Only a delete that is taken counts: when a delete is delivered again,
    its key may hold another row, and the row that left it is remembered.
    """
    places = keyed.places
    deletes = np.flatnonzero(keyed.taken & keyed.deletes)
    deletes = deletes[np.argsort(places[deletes], kind="stable")]
    first, end = (np.searchsorted(places[deletes], places[inserts], side=side) for side in ("left", "right"))
    rows = len(keyed.taken) + len(keyed.keys)
    old = np.where(stored.live, rows + np.arange(len(inserts)), inserts)
    is_here = end - first == 1
    old[is_here] = keyed.before(deletes[first[is_here]])
    return old


def _origins(keyed: KeyedEvents, lacks: Bools, inserts: Int64s, old: Int64s) -> Int64s:
    """For each row, including remembered ones, the row that holds its value; after several moves, the first one."""
    value_sources = keyed.value_sources(lacks)
    origin = np.append(value_sources, len(value_sources) + np.arange(len(inserts)))
    origin[inserts] = origin[old]
    # Pointer doubling: each round halves the remaining path length. There is no cycle, because the old row of an insert
    # always has an earlier position.
    for _ in range(len(inserts).bit_length()):
        origin = origin[origin]
    return origin


def _with_values(delta: pa.Table, name: str, events: Int64s, values: pa.Array) -> pa.Table:
    kind, rows = delta.schema.field(name).type, np.arange(delta.num_rows)
    rows[events] = len(rows) + np.arange(len(events))
    column = pa.concat_arrays([gathered(delta.column(name), kind), values.cast(kind)]).take(pa.array(rows))
    return delta.set_column(delta.schema.get_field_index(name), delta.schema.field(name), column)


def _with_marks(table: KeyedTable, delta: pa.Table, filled: Mapping[str, Int64s]) -> pa.Table:
    """The events, marked as lacking only the values that were not filled."""
    marks = gathered(delta.column(KEPT), pa.list_(pa.int32()))
    events, columns = np.asarray(pc.list_parent_indices(marks)), np.asarray(pc.list_flatten(marks))
    names = [field.name for field in table.columns]
    is_left = np.ones(len(events), dtype=np.bool_)
    for name, rows in filled.items():
        is_left &= (columns != names.index(name)) | ~np.isin(events, rows)
    sizes = np.bincount(events[is_left], minlength=len(marks))
    ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
    remaining = pa.ListArray.from_arrays(pa.array(ends), pa.array(columns[is_left]), mask=pa.array(sizes == 0))
    field = delta.schema.field(KEPT)
    return delta.set_column(delta.schema.get_field_index(KEPT), field, remaining.cast(field.type))
