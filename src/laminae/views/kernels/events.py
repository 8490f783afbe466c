"""Which event of each key counts: the last one of the log, or the first of those with the highest sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import Clusters, clusters
from laminae.trace.lookup import Latest, Wanted, latest
from laminae.trace.spec import HASH, stored_type
from laminae.trace.values import before, gathered, integers, rank_of
from laminae.views.kernels.keyed_table import DELETED, ORDER, SEQUENCE, KeyedTable, table_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    chosen, dropped = found.lasts, 0
    if table.sequence is not None:
        sequences = gathered(delta.column(SEQUENCE), stored_type(table.sequence))
        is_taken = _is_taken(found, sequences, known)
        chosen, dropped = _last_taken(found, is_taken), int(np.count_nonzero(~is_taken))
        heard = chosen >= 0
        chosen, keys, known = chosen[heard], keys.take(heard), known.take(heard)
    rows = pa.array(chosen)
    payload = {name: gathered(delta.column(name), trace.schema.field(name).type).take(rows) for name in trace.payload}
    return Events(keys, known, payload, deletes[chosen], dropped, unseen)


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


def _is_taken(found: Clusters, sequences: pa.Array, known: Latest) -> Bools:
    """In the order of the clusters: is the event newer than what is stored and than all earlier ones of its key?"""
    keys = len(found.starts)
    ranked = rank_of(pa.concat_arrays([known.payload[SEQUENCE], sequences]))
    _, ranked = np.unique(ranked, return_inverse=True)
    stored = np.where(known.found, ranked[:keys] + 1, 0)
    # One running maximum serves all keys when each has a range of numbers of its own.
    span = len(ranked) + 2
    key = np.repeat(np.arange(keys), np.diff(np.append(found.starts, len(found.order))))
    place = key * span + ranked[keys:][found.order] + 1
    highest = np.maximum.accumulate(np.maximum(place, (key * span + stored[key]))) if len(place) else place
    earlier = np.empty_like(highest)
    earlier[1:] = highest[:-1]
    earlier[found.starts] = np.arange(keys) * span + stored
    return np.asarray(place > earlier)


def _last_taken(found: Clusters, is_taken: Bools) -> Int64s:
    """The row of the last event that was taken for each key, -1 where none was."""
    place = np.where(is_taken, np.arange(len(is_taken)), -1)
    last = np.maximum.reduceat(place, found.starts) if len(place) else place
    return np.where(last >= 0, found.order[last], -1) if len(place) else place
