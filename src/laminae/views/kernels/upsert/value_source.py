"""Events of an epoch by key: which of them are applied, and which earlier row has the value that an event omits.

Rows are numbered: first the events, by key and within a key in log order; then the stored row of each key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.cluster import Clusters, clusters
from laminae.trace.lookup import Latest, Wanted, latest
from laminae.trace.spec import HASH, stored_type
from laminae.views.kernels.upsert.keyed_table import (
    AWAITS,
    DELETED,
    KEPT,
    MOVES,
    ORDER,
    SEQUENCE,
    KeyedTable,
    table_trace,
)
from laminae.zset.comparison import gathered, integers, rank_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide_integers import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class KeyedEvents:
    """`delta` in log order, and the stored rows of its keys; the arrays are in row order (see the module docstring).

    `taken` events are newer than everything seen of their keys before. The row of a `moved` event has another key as
    well: for a delete the key it moves to, for an insert the key it comes from. If that row is not known, an insert
    that `awaits` its delete may get its values in a later epoch.
    """

    table: KeyedTable
    delta: pa.Table
    by_key: Clusters
    keys: Wanted
    known: Latest
    deletes: Bools
    taken: Bools
    moved: Bools
    awaits: Bools

    @property
    def key_of(self) -> Int64s:
        """The number of each event's key."""
        return _key_of(self.by_key)

    @property
    def places(self) -> Int64s:
        """The position of each event: its sequence, where that is a number."""
        return integers(gathered(self.delta.column(SEQUENCE), pa.int64()))[self.by_key.order]

    def last(self) -> Int64s:
        """The last taken event of each key; -1 where there is none."""
        row = np.where(self.taken, np.arange(len(self.taken)), -1)
        return np.maximum.reduceat(row, self.by_key.starts) if len(row) else row

    def before(self, events: Int64s) -> Int64s:
        """The rows that the keys of these events had immediately before them."""
        key = self.key_of[events]
        is_first = self.by_key.starts[key] == events
        return np.where(is_first, len(self.taken) + key, self._latest(self.taken)[events - 1])

    def value_sources(self, lacks: Bools) -> Int64s:
        """For each row, the row that supplies its value in a column that the events in `lacks` omit.

        A moved row takes nothing from the previous row of its key, so it is its own source, even if it supplies only
        NULL.
        """
        events = self._latest(self.taken & (~lacks | self.moved))
        return np.concatenate([events, len(events) + np.arange(len(self.keys))])

    def has_no_value(self, lacks: Bools) -> Bools:
        """Rows without a value: deletes, missing rows, and moved rows that omit it."""
        return np.concatenate([self.deletes | (lacks & self.moved), ~self.known.live])

    def column(self, name: str) -> pa.Array:
        """The values of all rows in a column: as sent for events, as stored for old rows."""
        sent = gathered(self.delta.column(name), table_trace(self.table).schema.field(name).type)
        return pa.concat_arrays([sent.take(pa.array(self.by_key.order)), self.known.payload[name]])

    def lacks(self) -> dict[str, Bools]:
        """The columns that some events omit because they did not change (unavailable values), and those events."""
        payload, order = table_trace(self.table).payload, self.by_key.order
        return {name: missing[order] for name, missing in _unavailable(self.table, self.delta) if name in payload}

    def _latest(self, mask: Bools) -> Int64s:
        """For each event, the last event of its key, up to itself, where `mask` is set; else the stored row."""
        count, key = len(mask), self.key_of
        last = np.maximum.accumulate(np.where(mask, np.arange(count), -1))
        return np.where(last >= self.by_key.starts[key], last, count + key)


def keyed_events(table: KeyedTable, delta: pa.Table, runs: Sequence[Run]) -> KeyedEvents:
    """Group the events by key and look up their stored rows in `runs`.

    The runs may be those of one shard or, because no two shards share a key, of several.
    """
    trace = table_trace(table)
    order = integers(gathered(delta.column(ORDER), pa.int64()))
    if not bool((order[1:] >= order[:-1]).all()):
        delta = delta.take(pa.array(np.argsort(order, kind="stable")))
    hashes = integers(gathered(delta.column(HASH), pa.int64()))
    wanted = Wanted(hashes, tuple(gathered(delta.column(name), trace.schema.field(name).type) for name in trace.keys))
    by_key = clusters(hashes, wanted.keys)
    keys = wanted.take(by_key.firsts)
    known = latest(trace, runs, keys)
    taken = np.ones(len(hashes), dtype=np.bool_)
    if table.sequence is not None:
        sequences = gathered(delta.column(SEQUENCE), stored_type(table.sequence))
        taken = _is_taken(by_key, sequences, known, table.has_snapshots)
    deletes, moved, awaits = (_flags(delta, name)[by_key.order] for name in (DELETED, MOVES, AWAITS))
    return KeyedEvents(table, delta, by_key, keys, known, deletes, taken, moved, awaits)


def _flags(delta: pa.Table, name: str) -> Bools:
    if name not in delta.column_names:
        return np.zeros(delta.num_rows, dtype=np.bool_)
    return np.asarray(gathered(delta.column(name), pa.bool_()).fill_null(False))


def _unavailable(table: KeyedTable, delta: pa.Table) -> Iterator[tuple[str, Bools]]:
    if KEPT not in delta.column_names:
        return
    marks = gathered(delta.column(KEPT), pa.list_(pa.int32()))
    if marks.null_count == len(marks):
        return
    events, columns = np.asarray(pc.list_parent_indices(marks)), np.asarray(pc.list_flatten(marks))
    for column in np.unique(columns):
        missing = np.zeros(len(marks), dtype=np.bool_)
        missing[events[columns == column]] = True
        yield table.columns[column].name, missing


def _key_of(found: Clusters) -> Int64s:
    """The number of each event's key."""
    return np.repeat(np.arange(len(found.starts)), np.diff(np.append(found.starts, len(found.order))))


def _is_taken(found: Clusters, sequences: pa.Array, known: Latest, has_snapshots: bool) -> Bools:
    """In cluster order: is the event newer than the stored row and than all earlier events of its key?

    A change need not be newer than a row of a snapshot: it may belong to a transaction that was in progress when the
    snapshot was taken, and every change after a snapshot is delivered, in order.
    """
    keys = len(found.starts)
    stored_at = known.payload[SEQUENCE]
    ranked = rank_of(pa.concat_arrays([stored_at, sequences]))
    _, ranked = np.unique(ranked, return_inverse=True)
    stored = np.where(known.found, ranked[:keys] + 1, 0)
    event = ranked[keys:][found.order] + 1
    newest = _is_newer(found, event, stored)
    if not has_snapshots:
        return newest
    is_change = (integers(sequences) & 1 == 1)[found.order]
    stored = np.where(integers(stored_at) & 1 == 1, stored, 0)
    return np.where(is_change, _is_newer(found, np.where(is_change, event, 0), stored), newest)


def _is_newer(found: Clusters, ranks: Int64s, stored: Int64s) -> Bools:
    """Which events have a higher rank than the stored row and all earlier events of their key."""
    if not len(ranks):
        return np.zeros(0, dtype=np.bool_)
    # Each key gets a separate range of numbers, so that one running maximum serves all keys.
    keys, span = len(stored), int(max(ranks.max(), stored.max())) + 2
    key = _key_of(found)
    place = key * span + ranks
    highest = np.maximum.accumulate(np.maximum(place, key * span + stored[key]))
    earlier = np.empty_like(highest)
    earlier[1:] = highest[:-1]
    earlier[found.starts] = np.arange(keys) * span + stored
    return np.asarray(place > earlier)
