"""Events of an epoch by key: which of them count, and which earlier row has the value that one leaves out.

Rows are numbered: events by key and, within a key, in the order of the log; behind them the old row of each key.
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
from laminae.trace.values import gathered, integers, rank_of
from laminae.views.kernels.keyed_table import DELETED, KEPT, MOVES, ORDER, SEQUENCE, KeyedTable, table_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """`delta` in the order of the log, and what the trace knows of its keys; the rest is in the order of rows.

    `taken` events are newer than all that was heard of their keys before. A `moved` one says that its row has another
    key as well: a delete that it goes on there, an insert that it comes from there.
    """

    table: KeyedTable
    delta: pa.Table
    by_key: Clusters
    keys: Wanted
    known: Latest
    deletes: Bools
    taken: Bools
    moved: Bools

    @property
    def places(self) -> Int64s:
        """What orders each event, where that is a number."""
        return integers(gathered(self.delta.column(SEQUENCE), pa.int64()))[self.by_key.order]

    def last(self) -> Int64s:
        """The last event of each key that is taken; -1 where none is."""
        row = np.where(self.taken, np.arange(len(self.taken)), -1)
        return np.maximum.reduceat(row, self.by_key.starts) if len(row) else row

    def before(self, events: Int64s) -> Int64s:
        """The rows that stood under the keys of these events until they came."""
        key = _key_of(self.by_key)[events]
        is_first = self.by_key.starts[key] == events
        return np.where(is_first, len(self.taken) + key, self._latest(self.taken)[events - 1])

    def speakers(self, lacks: Bools) -> Int64s:
        """For each row the one whose value it has, where these events leave it out.

        A row that moved has nothing of what stood under its key before it, so it speaks, if only to say nothing.
        """
        events = self._latest(self.taken & (~lacks | self.moved))
        return np.concatenate([events, len(events) + np.arange(len(self.keys))])

    def silent(self, lacks: Bools) -> Bools:
        """Rows that have no value to give: deletes, what is not there, and moved ones that leave it out."""
        return np.concatenate([self.deletes | (lacks & self.moved), ~self.known.live])

    def column(self, name: str) -> pa.Array:
        """The values of all rows, as they were sent."""
        sent = gathered(self.delta.column(name), table_trace(self.table).schema.field(name).type)
        return pa.concat_arrays([sent.take(pa.array(self.by_key.order)), self.known.payload[name]])

    def lacks(self) -> dict[str, Bools]:
        """The columns that some event says nothing of because they did not change, and which events those are."""
        payload, order = table_trace(self.table).payload, self.by_key.order
        return {name: missing[order] for name, missing in _unavailable(self.table, self.delta) if name in payload}

    def _latest(self, mask: Bools) -> Int64s:
        """For each event the last one of its key, up to itself, that the mask names; else the old row."""
        count, key = len(mask), _key_of(self.by_key)
        last = np.maximum.accumulate(np.where(mask, np.arange(count), -1))
        return np.where(last >= self.by_key.starts[key], last, count + key)


def hear(table: KeyedTable, delta: pa.Table, runs: Sequence[Run]) -> Heard:
    """`runs` have the rows before these events: those of one shard or, as no two shards share a key, of many."""
    trace = table_trace(table)
    order = integers(gathered(delta.column(ORDER), pa.int64()))
    if not bool((order[1:] >= order[:-1]).all()):
        delta = delta.take(pa.array(np.argsort(order, kind="stable")))
    hashes = integers(gathered(delta.column(HASH), pa.int64()))
    wanted = Wanted(hashes, tuple(gathered(delta.column(name), trace.schema.field(name).type) for name in trace.keys))
    found = clusters(hashes, wanted.keys)
    keys = wanted.take(found.firsts)
    known = latest(trace, runs, keys)
    taken = np.ones(len(hashes), dtype=np.bool_)
    if table.sequence is not None:
        sequences = gathered(delta.column(SEQUENCE), stored_type(table.sequence))
        taken = _is_taken(found, sequences, known, table.has_snapshots)
    deletes, moved = _flags(delta, DELETED)[found.order], _flags(delta, MOVES)[found.order]
    return Heard(table, delta, found, keys, known, deletes, taken, moved)


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
    """In the order of the clusters: is the event newer than what is stored and than all earlier ones of its key?

    A change need not be newer than a row of a snapshot: it may belong to a transaction that was under way when the
    snapshot was taken, and every change behind a snapshot comes, in order.
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
    """Of events and what is stored of their keys, each with its rank."""
    if not len(ranks):
        return np.zeros(0, dtype=np.bool_)
    # One running maximum serves all keys when each has a range of numbers of its own.
    keys, span = len(stored), int(max(ranks.max(), stored.max())) + 2
    key = _key_of(found)
    place = key * span + ranks
    highest = np.maximum.accumulate(np.maximum(place, key * span + stored[key]))
    earlier = np.empty_like(highest)
    earlier[1:] = highest[:-1]
    earlier[found.starts] = np.arange(keys) * span + stored
    return np.asarray(place > earlier)
