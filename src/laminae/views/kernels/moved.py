"""Rows whose primary key changed, by events that lack a value: it is that of the row under the old key.

Such a change is two events of one place: a delete of the old key and an insert of the new one, often of other shards.
So whoever asks here has the events of all shards at hand; that is seldom, and `HOME` says which shard each belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.cluster import clusters
from laminae.trace.lookup import Wanted, latest
from laminae.trace.run import Run
from laminae.trace.scan import everything as everything_in
from laminae.trace.spec import HASH, WEIGHT
from laminae.trace.values import gathered, integers
from laminae.views.kernels.events import last_events, unavailable
from laminae.views.kernels.keyed_table import DELETED, KEPT, SEQUENCE, KeyedTable, table_trace
from laminae.views.kernels.upsert import state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from laminae.zset.wide import Int64s

HOME = "_home"


def with_old_values(
    table: KeyedTable,
    inserts: pa.Table,
    everything: pa.Table,
    runs_of: Callable[[int], Sequence[Run]],
    states: Sequence[Sequence[Run]] = (),
) -> pa.Table:
    """Inserts that lack a value, with those of the rows that left their keys at the same place.

    `everything` are the events of the epoch, also those of other shards; `runs_of` gives the state before it, by shard.
    `states` are those of all shards: a row that left its key in an earlier epoch is remembered there.
    """
    places = _numbers(inserts, SEQUENCE)
    is_leaving = np.isin(_numbers(everything, SEQUENCE), places) & np.asarray(everything.column(DELETED))
    leaving = everything.filter(pa.array(is_leaving))
    parts = [_remembered(table, places, runs) for runs in states]
    if leaving.num_rows:
        parts.append({**_old_rows(table, leaving, everything, runs_of), SEQUENCE: leaving.column(SEQUENCE)})
    found = {name: _joined([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    left = integers(gathered(found[SEQUENCE], pa.int64())) if found else places[:0]
    if not len(left):
        return inserts
    order = np.argsort(left, kind="stable")
    # The last of them: what the epoch itself says is newer than what was remembered.
    pair = order[np.searchsorted(left[order], places, side="right") - 1]
    is_paired = left[pair] == places
    for name, missing in unavailable(table, inserts):
        rows = np.where(missing & is_paired, pair + inserts.num_rows, np.arange(inserts.num_rows))
        column = gathered(inserts.column(name), found[name].type)
        made = pa.concat_arrays([column, found[name]]).take(pa.array(rows))
        inserts = inserts.set_column(inserts.schema.get_field_index(name), name, made)
    kept = gathered(inserts.column(KEPT), pa.list_(pa.int32()))
    marks = pc.if_else(pa.array(is_paired), pa.scalar(None, kept.type), kept)
    return inserts.set_column(inserts.schema.get_field_index(KEPT), KEPT, marks)


def _remembered(table: KeyedTable, places: Int64s, runs: Sequence[Run]) -> dict[str, pa.Array]:
    """Rows of a shard's state that left their keys at these places."""
    trace = table_trace(table)
    found = []
    for batch in everything_in(trace, runs):
        is_gone = integers(batch.column(WEIGHT)) == 0
        found.append(batch.filter(pa.array(is_gone & np.isin(integers(batch.column(SEQUENCE)), places))))
    whole = pa.Table.from_batches(found, schema=trace.schema)
    return {name: gathered(whole.column(name), trace.schema.field(name).type) for name in trace.payload}


def _joined(parts: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    kind = parts[0].type
    return pa.concat_arrays([gathered(part, kind) for part in parts])


def _old_rows(
    table: KeyedTable, leaving: pa.Table, everything: pa.Table, runs_of: Callable[[int], Sequence[Run]]
) -> dict[str, pa.Array]:
    """What stood under each of the keys that are left, before they were."""
    homes = _numbers(leaving, HOME)
    rows, parts = [], []
    for home in np.unique(homes):
        own = np.flatnonzero(homes == home)
        events = everything.filter(pc.equal(everything.column(HOME), int(home)))
        rows.append(own)
        parts.append(_old_rows_of(table, leaving.take(pa.array(own)), events, runs_of(int(home))))
    order = pa.array(np.argsort(np.concatenate(rows)))
    return {name: pa.concat_arrays([part[name] for part in parts]).take(order) for name in parts[0]}


def _old_rows_of(table: KeyedTable, leaving: pa.Table, events: pa.Table, runs: Sequence[Run]) -> dict[str, pa.Array]:
    trace, count = table_trace(table), leaving.num_rows
    whole = pa.concat_tables([leaving, events])
    keys = tuple(gathered(whole.column(name), trace.schema.field(name).type) for name in trace.keys)
    wanted = Wanted(_numbers(whole, HASH), keys)
    member = clusters(wanted.hashes, wanted.keys).members()
    until = np.full(len(member), np.iinfo(np.int64).min)
    np.maximum.at(until, member[:count], _numbers(leaving, SEQUENCE))
    before = events.filter(pa.array(_numbers(events, SEQUENCE) < until[member[count:]]))
    if before.num_rows:
        runs = [*runs, Run.of("the events", state_of(table, last_events(table, before, runs)))]
    return latest(trace, runs, wanted.take(np.arange(count))).payload


def _numbers(rows: pa.Table, name: str) -> Int64s:
    return integers(gathered(rows.column(name), pa.int64()))
