"""The upsert kernel: a table with a primary key, whose events become row changes in log order or in sequence order.

The old row always comes from the trace. With a sequence, an event that is not newer is dropped, and deletes are stored
with their sequence, so that late events cannot bring a row back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.combine import joined
from laminae.trace.compaction import append
from laminae.trace.scan import scan
from laminae.trace.spec import stored_type
from laminae.views.kernels.changelog import Rows, changes
from laminae.views.kernels.step import Counts, Input, Step, state_rows
from laminae.views.kernels.upsert.departed_rows import remember
from laminae.views.kernels.upsert.event_order import Events, in_log_order, is_older, last_events
from laminae.views.kernels.upsert.keyed_table import ORDER, SEQUENCE, TABLE, KeyedTable, keyed_traces, table_trace
from laminae.views.kernels.upsert.truncation import cut, floor_of, with_floor
from laminae.views.kernels.upsert.value_source import keyed_events
from laminae.zset.comparison import all_same, gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from laminae.trace.manifest import Manifest
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore
    from laminae.views.kernels.step import ShardState
    from laminae.zset.wide_integers import Bools, Int64s

NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class UpsertKernel:
    """A table with a primary key as a `Kernel`. Events have `_hash`, their log position, the columns and `_deleted`."""

    table: KeyedTable

    inputs = (Input("events"),)

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        (events,) = deltas
        return step(self.table, in_log_order(events), state.manifest, state.store)

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        return rows(self.table, manifest, store)

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        return keyed_traces(self.table)


def step(
    table: KeyedTable,
    delta: pa.Table,
    manifest: Manifest,
    store: RunStore,
    truncate_at: pa.Scalar | None = None,
    arrived: Int64s = NOTHING,
) -> Step:
    """Apply one epoch to one shard.

    `delta` has `_hash`, the columns, `_order` (BIGINT), `_deleted` and, if the table has one, `_sequence`.
    `truncate_at` retracts every row with a smaller sequence (without a sequence: everything before that `_order`).
    `arrived` are the positions of inserts of rows that left other keys. Every shard must be passed both.
    """
    floor = floor_of(table, manifest, store, truncate_at)
    remaining = _not_older(delta, ORDER, truncate_at) if table.sequence is None else _not_older(delta, SEQUENCE, floor)
    runs = [store.open(run) for run in manifest.runs(TABLE)]
    keyed = keyed_events(table, remaining, runs)
    events = last_events(keyed)
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
    moved = remember(keyed, manifest, store, arrived, None if truncate_at is None else floor)
    outdated = delta.num_rows - remaining.num_rows if table.sequence is not None else 0
    counts = Counts(
        rows_in=delta.num_rows,
        rows_out=shown.num_rows,
        anomalies=events.unseen + moved.unseen,
        dropped=events.dropped + outdated,
        state_rows=state_rows(moved.manifest),
    )
    return Step((shown,), moved.manifest, counts)


def rows(table: KeyedTable, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """The current rows of the table, in batches."""
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
    old, new = ([payload[name] for name in names] for payload in (events.before.payload, events.payload))
    return all_same(old, new, len(events.keys))


def _rows(table: KeyedTable, events: Events) -> tuple[Rows, Rows]:
    keys = dict(zip(table_trace(table).keys, events.keys.keys, strict=True))
    kinds = {field.name: field.type for field in table.columns}
    same = {name: column.cast(kinds[name]) for name, column in keys.items()}
    old, new = (
        [same[name] if name in same else payload[name].cast(kind) for name, kind in kinds.items()]
        for payload in (events.before.payload, events.payload)
    )
    return Rows(events.before.live, old), Rows(~events.deleted, new)


def _state_of(table: KeyedTable, events: Events) -> pa.RecordBatch:
    """The state rows after these events; weight 0 where the event is a delete."""
    trace = table_trace(table)
    payload = [events.payload[name] for name in trace.payload]
    weight = pa.array((~events.deleted).astype(np.int64))
    whole = [pa.array(events.keys.hashes), *events.keys.keys, *payload, weight]
    return pa.RecordBatch.from_arrays(whole, schema=trace.schema)


def _retracted(table: KeyedTable, gone: pa.RecordBatch) -> pa.RecordBatch:
    columns = [gone.column(field.name).cast(field.type) for field in table.columns]
    visible = np.ones(gone.num_rows, dtype=np.bool_)
    return changes(table.columns, Rows(visible, columns), Rows(~visible, columns), ~visible)
