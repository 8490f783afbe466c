"""Which event of each key counts: the last one of the log, or the first of those with the highest sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.cluster import Clusters, clusters
from laminae.trace.lookup import Latest, Wanted, latest
from laminae.trace.spec import HASH, stored_type
from laminae.trace.values import before, gathered, integers, rank_of
from laminae.views.kernels.keyed_table import DELETED, KEPT, MOVES, ORDER, SEQUENCE, KeyedTable, table_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """One event for each key that has one: what the trace knows of the key, and the new payload.

    `dropped` events were not newer, `unseen` ones delete what was not there.
    """

    keys: Wanted
    before: Latest
    payload: dict[str, pa.Array]
    deleted: Bools
    dropped: int
    unseen: int


def last_events(table: KeyedTable, delta: pa.Table, runs: Sequence[Run]) -> Events:
    """The events that decide, sorted by the hash of their key."""
    trace = table_trace(table)
    order = integers(gathered(delta.column(ORDER), pa.int64()))
    if not bool((order[1:] >= order[:-1]).all()):
        delta = delta.take(pa.array(np.argsort(order, kind="stable")))
    hashes = integers(gathered(delta.column(HASH), pa.int64()))
    wanted = Wanted(hashes, tuple(gathered(delta.column(name), trace.schema.field(name).type) for name in trace.keys))
    found = clusters(hashes, wanted.keys)
    keys = wanted.take(found.firsts)
    known = latest(trace, runs, keys)
    deletes = np.asarray(gathered(delta.column(DELETED), pa.bool_()).fill_null(False))
    unseen = _unseen(table, found, deletes, known)
    is_taken = np.ones(len(deletes), dtype=np.bool_)
    if table.sequence is not None:
        sequences = gathered(delta.column(SEQUENCE), stored_type(table.sequence))
        is_taken = _is_taken(found, sequences, known, table.has_snapshots)
    last = _last_taken(found, is_taken)
    heard = last >= 0
    last, keys, known = last[heard], keys.take(heard), known.take(heard)
    chosen = found.order[last]
    rows = pa.array(chosen)
    columns = {name: gathered(delta.column(name), trace.schema.field(name).type) for name in trace.payload}
    payload = {name: column.take(rows) for name, column in columns.items()}
    for name, missing in _missing(table, delta):
        if name in columns:
            said = _last_said(is_taken & ~missing[found.order], last, found.starts[heard])
            payload[name] = _as_before(columns[name], found.order, said, known.payload[name])
            unseen += int(np.count_nonzero((said < 0) & ~known.live & ~deletes[chosen]))
    return Events(keys, known, payload, deletes[chosen], int(np.count_nonzero(~is_taken)), unseen)


def _missing(table: KeyedTable, delta: pa.Table) -> Iterator[tuple[str, Bools]]:
    """The columns whose values are those of the row before, by event; a row that moves is remembered whole."""
    found = dict(unavailable(table, delta))
    if MOVES in delta.column_names:
        moves = np.asarray(gathered(delta.column(MOVES), pa.bool_()).fill_null(False))
        if moves.any():
            found = {field.name: found.get(field.name, False) | moves for field in table.columns}
    yield from found.items()


def unavailable(table: KeyedTable, delta: pa.Table) -> Iterator[tuple[str, Bools]]:
    """The columns that some event says nothing of because they did not change, and which events those are."""
    if KEPT not in delta.column_names:
        return
    marks = gathered(delta.column(KEPT), pa.list_(pa.int32()))
    if marks.null_count == len(marks):
        return
    events, places = np.asarray(pc.list_parent_indices(marks)), np.asarray(pc.list_flatten(marks))
    for place in np.unique(places):
        missing = np.zeros(len(marks), dtype=np.bool_)
        missing[events[places == place]] = True
        yield table.columns[place].name, missing


def is_older(column: pa.Array, bound: pa.Scalar) -> Bools:
    """Smaller than the bound; NULL is smaller than anything."""
    bounds = pa.repeat(bound, len(column)).cast(column.type)
    return np.asarray(column.is_null()) | before([column], [bounds], len(column))


def _unseen(table: KeyedTable, found: Clusters, deletes: Bools, known: Latest) -> int:
    """Deletes of rows that are not there; where deletes are remembered, of keys that nothing was heard of before."""
    in_order = deletes[found.order]
    is_known = np.ones(len(in_order), dtype=np.bool_)
    if table.sequence is None:
        is_known[1:] = ~in_order[:-1]
    is_known[found.starts] = known.live if table.sequence is None else known.found
    return int(np.count_nonzero(in_order & ~is_known))


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
    key = np.repeat(np.arange(keys), np.diff(np.append(found.starts, len(found.order))))
    place = key * span + ranks
    highest = np.maximum.accumulate(np.maximum(place, key * span + stored[key]))
    earlier = np.empty_like(highest)
    earlier[1:] = highest[:-1]
    earlier[found.starts] = np.arange(keys) * span + stored
    return np.asarray(place > earlier)


def _last_taken(found: Clusters, is_taken: Bools) -> Int64s:
    """The place, in the order of the clusters, of the last event that was taken for each key; -1 where none was."""
    place = np.where(is_taken, np.arange(len(is_taken)), -1)
    return np.maximum.reduceat(place, found.starts) if len(place) else place


def _last_said(is_said: Bools, last: Int64s, starts: Int64s) -> Int64s:
    """For each key the place of the last event, up to the one that counts, that says a value; -1 where none does."""
    place = np.maximum.accumulate(np.where(is_said, np.arange(len(is_said)), -1))[last]
    return np.where(place >= starts, place, -1)


def _as_before(column: pa.Array, order: Int64s, said: Int64s, old: pa.Array) -> pa.Array:
    """The values of these places, and of the old rows where there is none."""
    rows = np.where(said >= 0, order[said], np.arange(len(said)) + len(column))
    return pa.concat_arrays([column, old]).take(pa.array(rows))
