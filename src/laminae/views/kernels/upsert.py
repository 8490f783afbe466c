"""A table by primary key as a kernel: events in the order of their log, or of a sequence, become changes of rows.

The old row always comes from the trace. With a sequence an event that is not newer is dropped, and deletes are
remembered with their sequence, so that late events cannot bring a row back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.combine import joined
from laminae.trace.compaction import append
from laminae.trace.scan import scan
from laminae.trace.spec import stored_type
from laminae.trace.values import all_same, gathered
from laminae.views.kernels.changelog import Rows, changes
from laminae.views.kernels.events import Events, is_older, last_events
from laminae.views.kernels.heard import hear
from laminae.views.kernels.keyed_table import ORDER, SEQUENCE, TABLE, KeyedTable, table_trace
from laminae.views.kernels.leaving import remember
from laminae.views.kernels.step import Counts, Step, state_rows
from laminae.views.kernels.truncation import cut, floor_of, with_floor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.zset.wide import Bools, Int64s

NOTHING = np.zeros(0, dtype=np.int64)


def step(
    table: KeyedTable,
    delta: pa.Table,
    manifest: Manifest,
    store: RunStore,
    truncate_at: pa.Scalar | None = None,
    arrived: Int64s = NOTHING,
) -> Step:
    """One epoch of one shard: `_hash`, the columns, `_order` (BIGINT), `_deleted` and, if it orders, `_sequence`.

    `truncate_at` retracts every row with a smaller sequence (without one: all that came before that `_order`), and
    `arrived` are the places of inserts of rows that left other keys. Every shard must be given both.
    """
    floor = floor_of(table, manifest, store, truncate_at)
    kept = _not_older(delta, ORDER, truncate_at) if table.sequence is None else _not_older(delta, SEQUENCE, floor)
    runs = [store.open(run) for run in manifest.runs(TABLE)]
    heard = hear(table, kept, runs)
    events = last_events(heard)
    unchanged = events.before.live & ~events.deleted & _same_row(table, events)
    shown = changes(table.columns, *_rows(table, events), unchanged)
    state = _state_of(table, events)
    trace = table_trace(table)
    if truncate_at is not None:
        rest = cut(table, runs, state, floor)
        shown = joined(shown.schema, [shown, _retracted(table, rest.gone)])
        manifest = manifest.with_runs(TABLE, append(store, trace, (), rest.state))
        manifest = with_floor(table, manifest, store, floor)
    else:
        if table.sequence is None:
            state = state.filter(pa.array(np.where(events.deleted, events.before.live, ~unchanged)))
        manifest = manifest.with_runs(TABLE, append(store, trace, manifest.runs(TABLE), state))
    moved = remember(heard, manifest, store, arrived, None if truncate_at is None else floor)
    outdated = delta.num_rows - kept.num_rows if table.sequence is not None else 0
    counts = Counts(
        rows_in=delta.num_rows,
        rows_out=shown.num_rows,
        anomalies=events.unseen + moved.unseen,
        dropped=events.dropped + outdated,
        state_rows=state_rows(moved.manifest),
    )
    return Step(shown, moved.manifest, counts)


def rows(table: KeyedTable, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """The table as it is now, in batches."""
    for batch in scan(table_trace(table), [store.open(run) for run in manifest.runs(TABLE)]):
        columns = [batch.column(field.name).cast(field.type) for field in table.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(table.columns))


def _not_older(delta: pa.Table, name: str, bound: pa.Scalar | None) -> pa.Table:
    if bound is None:
        return delta
    column = delta.column(name)
    return delta.filter(pa.array(~is_older(gathered(column, stored_type(column.type)), bound)))


def _same_row(table: KeyedTable, events: Events) -> Bools:
    names = [field.name for field in table.columns if field.name not in table.keys]
    old, new = ([found[name] for name in names] for found in (events.before.payload, events.payload))
    return all_same(old, new, len(events.keys))


def _rows(table: KeyedTable, events: Events) -> tuple[Rows, Rows]:
    keys = dict(zip(table_trace(table).keys, events.keys.keys, strict=True))
    kinds = {field.name: field.type for field in table.columns}
    same = {name: column.cast(kinds[name]) for name, column in keys.items()}
    old, new = (
        [same[name] if name in same else found[name].cast(kind) for name, kind in kinds.items()]
        for found in (events.before.payload, events.payload)
    )
    return Rows(events.before.live, old), Rows(~events.deleted, new)


def _state_of(table: KeyedTable, events: Events) -> pa.RecordBatch:
    """The rows after these events; weight 0 where the event is a delete."""
    trace = table_trace(table)
    payload = [events.payload[name] for name in trace.payload]
    weight = pa.array((~events.deleted).astype(np.int64))
    whole = [pa.array(events.keys.hashes), *events.keys.keys, *payload, weight]
    return pa.RecordBatch.from_arrays(whole, schema=trace.schema)


def _retracted(table: KeyedTable, gone: pa.RecordBatch) -> pa.RecordBatch:
    columns = [gone.column(field.name).cast(field.type) for field in table.columns]
    visible = np.ones(gone.num_rows, dtype=np.bool_)
    return changes(table.columns, Rows(visible, columns), Rows(~visible, columns), ~visible)
