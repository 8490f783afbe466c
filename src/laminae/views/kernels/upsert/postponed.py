"""Events postponed to a later epoch: a moved row lacks values, and the delete of its old key was not read yet.

The two events of a key change are in two partitions, and either may be read first. Until the delete is read, the values
that the insert lacks are unknown, because the old row may change before its delete. So the insert waits, and with it
all later events of its key: the table looks as if they were not read yet, and never holds a row that the database did
not have. A waiting event is stored in the shard of its key.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.combine import rows_of
from laminae.trace.compaction import append
from laminae.trace.scan import scan
from laminae.trace.spec import WEIGHT
from laminae.views.kernels.upsert.keyed_table import (
    AWAITS,
    KEPT,
    MOVES,
    ORDER,
    POSTPONED,
    SEQUENCE,
    KeyedTable,
    postponed_trace,
)
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.run import Run
    from laminae.trace.store import RunStore
    from laminae.views.kernels.upsert.value_source import KeyedEvents
    from laminae.zset.wide_integers import Bools, Int64s

BETWEEN = ","
HOME = "_home"
"""The shard of an event's key."""


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """The events of an epoch: those to apply, and those that wait.

    `waiting` does not contain events that were not newer; `dropped` counts them by shard.
    """

    ready: pa.Table
    waiting: pa.Table
    dropped: Mapping[int, int] = field(default_factory=dict)


def split_events(keyed: KeyedEvents, delta: pa.Table, waits: Bools, arrived: Int64s) -> Resolved:
    """`delta` is `keyed.delta` with the values that were found; `waits` are the events whose row is not known yet."""
    if not bool(waits.any()):
        return Resolved(delta, delta.slice(0, 0))
    places, is_insert = keyed.places, keyed.moved & ~keyed.deletes
    open_places = places[is_insert & keyed.taken & waits]
    settled = np.setdiff1d(np.append(arrived, places[is_insert]), open_places)
    is_settled = np.isin(places, settled)
    # Deletes whose rows move to keys that still lack their values, or whose inserts were not read yet.
    leaves = keyed.deletes & (keyed.moved | np.isin(places, open_places)) & ~is_settled & keyed.taken
    rows = _rows_to_know(keyed, leaves)
    has_to_wait = np.zeros(len(keyed.keys), dtype=np.bool_)
    has_to_wait[keyed.key_of[rows[waits[rows] & ~keyed.deletes[rows]]]] = True
    # Events before the first waiting event of a key can be applied.
    begun = np.cumsum(waits) - np.append(0, np.cumsum(waits))[keyed.by_key.starts][keyed.key_of] > 0
    is_waiting = has_to_wait[keyed.key_of] & begun
    is_stored = is_waiting & keyed.taken & (leaves | _is_needed(keyed, rows))
    flags = {MOVES: keyed.moved & ~(keyed.deletes & is_settled), AWAITS: keyed.awaits & waits}
    ready = delta.filter(pa.array(_in_log(keyed, ~is_waiting)))
    waiting = _with_flags(delta, {name: _in_log(keyed, flag) for name, flag in flags.items()})
    dropped = delta.filter(pa.array(_in_log(keyed, is_waiting & ~keyed.taken))).column(HOME).to_pylist()
    return Resolved(ready, waiting.filter(pa.array(_in_log(keyed, is_stored))), Counter(dropped))


def postponed_events(table: KeyedTable, runs: Sequence[Run], shard: int, like: pa.Schema) -> pa.Table:
    """The postponed events of a shard, with the columns of `like`, in their order."""
    trace = postponed_trace(table)
    stored = pa.Table.from_batches(list(scan(trace, runs)), schema=trace.schema).sort_by(ORDER)
    names = [field.name for field in table.columns]
    lacks = [_numbers(text, names) for text in stored.column(KEPT).to_pylist()]
    computed = {KEPT: pa.array(lacks, like.field(KEPT).type), HOME: pa.repeat(shard, stored.num_rows)}
    columns = [computed[name] if name in computed else stored.column(name) for name in like.names]
    return pa.table(columns, names=like.names).cast(like)


def with_postponed(table: KeyedTable, manifest: Manifest, store: RunStore, events: pa.Table) -> Manifest:
    """The manifest with these events, which must all belong to its shard, as the postponed ones."""
    trace, names = postponed_trace(table), [field.name for field in table.columns]
    lacks = [
        numbers and BETWEEN.join(names[number] for number in numbers) for numbers in events.column(KEPT).to_pylist()
    ]
    own = {
        KEPT: pa.array(lacks, pa.string()),
        ORDER: pa.array(np.arange(events.num_rows)),
        WEIGHT: pa.repeat(1, events.num_rows),
    }
    rows = rows_of(trace, pa.table({name: own[name] if name in own else events[name] for name in trace.schema.names}))
    return manifest.with_runs(POSTPONED, append(store, trace, (), rows))


def awaited(events: pa.Table) -> Int64s:
    """The positions of inserts that lack values and wait for their deletes."""
    return places_of(events.filter(pc.and_(events.column(AWAITS), pc.is_valid(events.column(KEPT)))))


def places_of(events: pa.Table) -> Int64s:
    return integers(gathered(events.column(SEQUENCE), pa.int64()))


def _rows_to_know(keyed: KeyedEvents, leaves: Bools) -> Int64s:
    """The last event of each key, and the events whose rows these deletes remove, if they are of this epoch."""
    last = keyed.last()
    rows = np.concatenate([last[last >= 0], keyed.before(np.flatnonzero(leaves))])
    return rows[rows < len(leaves)]


def _is_needed(keyed: KeyedEvents, rows: Int64s) -> Bools:
    """These events, and those that hold the values they lack. So a key that waits for long stores few events."""
    needed = np.zeros(len(keyed.taken), dtype=np.bool_)
    needed[rows] = True
    for missing in keyed.lacks().values():
        sources = keyed.value_sources(missing)[rows]
        needed[sources[sources < len(needed)]] = True
    return needed


def _in_log(keyed: KeyedEvents, flags: Bools) -> Bools:
    """Reorder flags from key order to log order."""
    reordered = np.empty_like(flags)
    reordered[keyed.by_key.order] = flags
    return reordered


def _with_flags(delta: pa.Table, flags: Mapping[str, Bools]) -> pa.Table:
    for name, values in flags.items():
        delta = delta.set_column(delta.schema.get_field_index(name), delta.schema.field(name), pa.array(values))
    return delta


def _numbers(text: str | None, names: Sequence[str]) -> list[int] | None:
    """The indexes of the named columns that the table still has."""
    return [names.index(name) for name in (text or "").split(BETWEEN) if name in names] or None
