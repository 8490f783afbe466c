"""The multiset kernel: a table without a primary key (a bag), in which each row has a weight.

A row is shown as many times as its weight, and not at all while the weight is negative. The name of the trace contains
a hash of its schema: after a column change, every stored row is read and rewritten once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import clusters
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, weights
from laminae.trace.scan import scan
from laminae.trace.spec import HASH, WEIGHT, TraceSpec, stored_type
from laminae.views.kernels.changelog import DELETED, INSERTED, OPERATIONS, changes_schema
from laminae.views.kernels.multiset.truncation import (
    effective_truncations,
    is_taken,
    positions_of,
    progress_trace,
    with_progress,
)
from laminae.views.kernels.step import Counts, Input, Step, state_rows
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.views.kernels.multiset.truncation import PartitionProgress
    from laminae.views.kernels.step import ShardState
    from laminae.zset.wide_integers import Int64s

BAG = "bag"
SHOWN, BASE = "_shown", "_base"
"""Of a row in the state before an epoch: how many times it was shown, and its weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Multiset:
    """The columns of a table without a primary key."""

    columns: tuple[pa.Field, ...]


CHANGED, TRUNCATED, IGNORED, STORED, COMPLETE = range(5)
"""Inputs: changes of the multiset, truncations, events without effect, the stored rows, and a marker that all stored
rows of the shard are part of the input."""


@dataclass(frozen=True, slots=True, eq=False)
class MultisetKernel:
    """A table without a primary key as a `Kernel`. `partitions` is the progress of every partition before the epoch.

    `is_rewritten`: the input includes all stored rows of the shard, which are stored again under the current columns.
    """

    bag: Multiset
    partitions: tuple[PartitionProgress, ...] = ()
    is_rewritten: bool = False

    inputs = tuple(map(Input, ("changed", "truncated", "ignored", "stored", "complete")))

    def step(self, deltas: tuple[pa.Table, ...], state: ShardState) -> Step:
        events, store = deltas[CHANGED], state.store
        truncations = positions_of(deltas[TRUNCATED])
        cuts = effective_truncations(truncations, self.partitions)
        earlier_cuts = [partition.cut for partition in self.partitions if partition.cut is not None]
        taken = events.filter(pa.array(is_taken(events, [*earlier_cuts, *cuts])))
        base = deltas[STORED] if self.is_rewritten else None
        result = step(self.bag, taken, state.manifest, store, base, bool(cuts))
        manifest = with_progress(result.manifest, store, self.partitions, taken, cuts)
        # Every shard gets every truncation, so one shard counts those without effect.
        without_effect = len(truncations) - len(cuts) if state.shard == 0 else 0
        dropped = events.num_rows - taken.num_rows + deltas[IGNORED].num_rows + without_effect
        return Step(result.slices, manifest, replace(result.counts, dropped=dropped))

    def rows(self, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
        return rows(self.bag, manifest, store)

    def traces(self, manifests: Iterable[Manifest]) -> list[TraceSpec]:
        return [*kept_traces(self.bag, manifests), progress_trace()]


def bag_trace(bag: Multiset) -> TraceSpec:
    """The weight of each row."""
    spec = TraceSpec.sum(BAG, bag.columns, ())
    shape = hashlib.blake2b(bytes(spec.schema.serialize()), digest_size=8).hexdigest()
    return replace(spec, name=f"{BAG} {shape}")


def kept_traces(bag: Multiset, manifests: Iterable[Manifest]) -> list[TraceSpec]:
    """The trace of the current columns and the stored traces of earlier columns, as `rows` reads them."""
    trace, late = bag_trace(bag), _late_trace(bag)
    names = {name for manifest in manifests for name, _ in manifest.traces if _is_bag(name)}
    return [trace, *(replace(late, name=name) for name in sorted(names - {trace.name}))]


def has_current_columns(bag: Multiset, manifest: Manifest) -> bool:
    """Whether all stored rows have the current columns."""
    names = {name for name, _ in manifest.traces if _is_bag(name)}
    return names <= {bag_trace(bag).name}


def step(
    bag: Multiset,
    delta: pa.Table,
    manifest: Manifest,
    store: RunStore,
    base: pa.Table | None = None,
    is_cut: bool = False,
) -> Step:
    """Apply one epoch to one shard.

    `delta` has `_hash`, the columns and `_weight`: positive for inserts, negative for deletes. `base` holds all rows of
    the previous state with `_base` and `_shown`; it is passed when the runs of the manifest do not have the current
    columns. With `is_cut` (TRUNCATE) every row of the previous state is removed, whatever the delta holds.
    """
    trace = bag_trace(bag)
    runs = manifest.runs(trace.name)
    if base is None and is_cut:
        base = _whole(bag, manifest, store)
    rows = delta if base is None else pa.concat_tables([_rows(bag, delta, (WEIGHT,)), _rows(bag, base, (BASE, SHOWN))])
    distinct = _Gathered.of(bag, rows)
    delta_weights = distinct.sums(WEIGHT)
    if base is None:
        was = weights(trace, [store.open(run) for run in runs], distinct.rows)
        shown, lacked = np.maximum(was, 0), (was < 0).astype(np.int64)
    else:
        was, shown, lacked = distinct.sums(BASE), distinct.sums(SHOWN), distinct.negatives(BASE)
    now = delta_weights if is_cut else was + delta_weights
    added = delta_weights if base is None else now
    state = pa.RecordBatch.from_arrays(
        [pa.array(distinct.rows.hashes), *distinct.rows.keys, pa.array(added)], schema=trace.schema
    ).filter(pa.array(added != 0))
    if base is not None:
        manifest, runs = _without_rows(manifest), ()
    manifest = manifest.with_runs(trace.name, append(store, trace, runs, state))
    changes = _changes(bag, distinct.rows, np.maximum(now, 0) - shown)
    lacks = (now < 0).astype(np.int64) - lacked
    counts = Counts(
        rows_in=delta.num_rows,
        rows_out=changes.num_rows,
        anomalies=int(np.maximum(lacks, 0).sum()),
        recovered=int(np.maximum(-lacks, 0).sum()),
        state_rows=state_rows(manifest),
    )
    return Step((changes,), manifest, counts)


def rows(bag: Multiset, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """Every row with its `_weight`, including negative ones, under the current columns.

    Rows come in batches, and the same row may occur in several of them.
    """
    trace = _late_trace(bag)
    for name, runs in manifest.traces:
        if _is_bag(name):
            for batch in scan(trace, [store.open(run) for run in runs]):
                columns = [batch.column(field.name).cast(field.type) for field in bag.columns]
                yield pa.RecordBatch.from_arrays([*columns, batch.column(WEIGHT)], schema=rows_schema(bag))


def rows_schema(bag: Multiset) -> pa.Schema:
    return pa.schema([*(field.with_nullable(True) for field in bag.columns), pa.field(WEIGHT, pa.int64())])


def _whole(bag: Multiset, manifest: Manifest, store: RunStore) -> pa.Table:
    """The stored state in the form of a `base` table."""
    trace = bag_trace(bag)
    batches = list(scan(trace, [store.open(run) for run in manifest.runs(trace.name)]))
    whole = pa.Table.from_batches(batches, trace.schema)
    weight = whole.column(WEIGHT)
    shown = pa.array(np.maximum(integers(gathered(weight, pa.int64())), 0))
    return whole.drop_columns([WEIGHT]).append_column(BASE, weight).append_column(SHOWN, shown)


def _rows(bag: Multiset, table: pa.Table, weights: Sequence[str]) -> pa.Table:
    """The rows of a delta or of a base, with 0 in the weight columns that only the other one has."""
    nothing = pa.array(np.zeros(table.num_rows, dtype=np.int64))
    kinds = {HASH: pa.int64(), **{field.name: stored_type(field.type) for field in bag.columns}}
    own = {name: gathered(table.column(name), kind) for name, kind in kinds.items()}
    for name in (WEIGHT, BASE, SHOWN):
        own[name] = gathered(table.column(name), pa.int64()) if name in weights else nothing
    return pa.table(own)


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """The distinct rows of a table, sorted by hash; `members[i]` is the index in `rows` of row i of the table."""

    table: pa.Table
    rows: Wanted
    members: Int64s

    @classmethod
    def of(cls, bag: Multiset, table: pa.Table) -> _Gathered:
        hashes = integers(gathered(table.column(HASH), pa.int64()))
        keys = tuple(gathered(table.column(field.name), stored_type(field.type)) for field in bag.columns)
        equal_rows = clusters(hashes, keys)
        return cls(table, Wanted(hashes, keys).take(equal_rows.firsts), equal_rows.members())

    def sums(self, name: str) -> Int64s:
        return self._added(self._numbers(name))

    def negatives(self, name: str) -> Int64s:
        """How many weights are negative, per distinct row.

        Rows that differed only in a dropped column are now one row, but were counted as separate anomalies.
        """
        return self._added(self._numbers(name) < 0)

    def _numbers(self, name: str) -> Int64s:
        return integers(gathered(self.table.column(name), pa.int64()))

    def _added(self, numbers: np.ndarray) -> Int64s:
        sums = np.zeros(len(self.rows), dtype=np.int64)
        np.add.at(sums, self.members, numbers)
        return sums


def _changes(bag: Multiset, rows: Wanted, weight: Int64s) -> pa.RecordBatch:
    is_changed = weight != 0
    changed, weight = rows.take(is_changed), weight[is_changed]
    ops = OPERATIONS.take(pa.array(np.where(weight > 0, INSERTED, DELETED)))
    columns = [column.cast(field.type) for field, column in zip(bag.columns, changed.keys, strict=True)]
    schema = changes_schema([field.with_nullable(True) for field in bag.columns])
    return pa.RecordBatch.from_arrays([ops, pa.array(weight), *columns], schema=schema)


def _without_rows(manifest: Manifest) -> Manifest:
    for name, _ in manifest.traces:
        if _is_bag(name):
            manifest = manifest.with_runs(name, ())
    return manifest


def _late_trace(bag: Multiset) -> TraceSpec:
    trace = bag_trace(bag)
    return replace(trace, late=trace.keys)


def _is_bag(name: str) -> bool:
    return name.startswith(f"{BAG} ")
