"""Rows whose primary key changed, by events that lack a value: it is that of the row under the old key.

Such a change is two events of one place: a delete of the old key and an insert of the new one, often of other shards.
So whoever asks here has the events of all shards at hand; that is seldom, and `HOME` says which shard each belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.lookup import Latest, Wanted, latest
from laminae.trace.values import gathered
from laminae.views.kernels.heard import hear
from laminae.views.kernels.keyed_table import KEPT, KeyedTable, moved_trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.run import Run
    from laminae.views.kernels.heard import Heard
    from laminae.zset.wide import Bools, Int64s

HOME = "_home"


def with_old_values(
    table: KeyedTable, delta: pa.Table, runs: Sequence[Run], remembered: Sequence[Run] = ()
) -> pa.Table:
    """The events of an epoch, of all shards; moved inserts among them have the values of the rows that left their keys.

    `runs` are the tables before it, `remembered` the rows that left in earlier epochs, both of all shards. What is not
    found stays marked as not sent.
    """
    heard = hear(table, delta, runs)
    delta, lacks = heard.delta, heard.lacks()
    inserts = np.flatnonzero(heard.taken & heard.moved & ~heard.deletes)
    places = heard.places[inserts]
    stored = latest(moved_trace(table), remembered, Wanted(places, (pa.array(places),)))
    old, filled = _old_rows(heard, inserts, stored), {}
    for name, missing in lacks.items():
        asks = missing[inserts]
        origin = _origins(heard, missing, inserts, np.where(asks, old, inserts))[inserts]
        is_known = np.append(~heard.silent(missing), np.ones(len(inserts), dtype=np.bool_))
        is_found = asks & is_known[origin]
        values = pa.concat_arrays([heard.column(name), stored.payload[name]]).take(pa.array(origin[is_found]))
        filled[name] = heard.by_key.order[inserts[is_found]]
        delta = _with_values(delta, name, filled[name], values)
    return _with_marks(table, delta, filled) if filled else delta


def _old_rows(heard: Heard, inserts: Int64s, stored: Latest) -> Int64s:
    """The number of the row that each insert goes on with: an old row of this epoch, or a remembered one behind all.

    The insert itself where there is none. Only a delete that is taken tells: when one is sent again its key may have
    another row, and what left it is remembered.
    """
    places = heard.places
    deletes = np.flatnonzero(heard.taken & heard.deletes)
    deletes = deletes[np.argsort(places[deletes], kind="stable")]
    first, end = (np.searchsorted(places[deletes], places[inserts], side=side) for side in ("left", "right"))
    rows = len(heard.taken) + len(heard.keys)
    old = np.where(stored.live, rows + np.arange(len(inserts)), inserts)
    is_here = end - first == 1
    old[is_here] = heard.before(deletes[first[is_here]])
    return old


def _origins(heard: Heard, lacks: Bools, inserts: Int64s, old: Int64s) -> Int64s:
    """For each row, remembered ones too, the one that has its value: a row that moves on has it from its first key."""
    speakers = heard.speakers(lacks)
    origin = np.append(speakers, len(speakers) + np.arange(len(inserts)))
    origin[inserts] = origin[old]
    # Each round halves all ways. There is no circle: the old row of an insert is always of an earlier place.
    for _ in range(len(inserts).bit_length()):
        origin = origin[origin]
    return origin


def _with_values(delta: pa.Table, name: str, events: Int64s, values: pa.Array) -> pa.Table:
    kind, rows = delta.schema.field(name).type, np.arange(delta.num_rows)
    rows[events] = len(rows) + np.arange(len(events))
    made = pa.concat_arrays([gathered(delta.column(name), kind), values.cast(kind)]).take(pa.array(rows))
    return delta.set_column(delta.schema.get_field_index(name), delta.schema.field(name), made)


def _with_marks(table: KeyedTable, delta: pa.Table, filled: Mapping[str, Int64s]) -> pa.Table:
    """The events, marked as lacking only what was not filled."""
    marks = gathered(delta.column(KEPT), pa.list_(pa.int32()))
    events, columns = np.asarray(pc.list_parent_indices(marks)), np.asarray(pc.list_flatten(marks))
    names = [field.name for field in table.columns]
    is_left = np.ones(len(events), dtype=np.bool_)
    for name, found in filled.items():
        is_left &= (columns != names.index(name)) | ~np.isin(events, found)
    sizes = np.bincount(events[is_left], minlength=len(marks))
    ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
    made = pa.ListArray.from_arrays(pa.array(ends), pa.array(columns[is_left]), mask=pa.array(sizes == 0))
    field = delta.schema.field(KEPT)
    return delta.set_column(delta.schema.get_field_index(KEPT), field, made.cast(field.type))
