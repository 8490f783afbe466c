"""A bag of rows as a kernel: a table without a key, in which equal rows count, and the changes that a delta makes.

A row is shown as often as its weight says, and not at all while that is below zero. What is kept of rows is under a
name that says which columns they have: of a bag whose columns have changed every row is read and written once.
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
from laminae.trace.values import gathered, integers
from laminae.views.kernels.changelog import OPERATIONS, changes_schema
from laminae.views.kernels.step import Counts, Step, state_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.zset.wide import Int64s

BAG = "bag"
SHOWN, BASE = "_shown", "_base"
"""Of a row that was there before an epoch: how often it was shown, and what it weighed."""
_INSERT, _DELETE = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """The columns of the rows."""

    columns: tuple[pa.Field, ...]


def bag_trace(bag: Bag) -> TraceSpec:
    """The weight of each row."""
    spec = TraceSpec.sum(BAG, bag.columns, ())
    shape = hashlib.blake2b(bytes(spec.schema.serialize()), digest_size=8).hexdigest()
    return replace(spec, name=f"{BAG} {shape}")


def kept_traces(bag: Bag, manifests: Iterable[Manifest]) -> list[TraceSpec]:
    """The trace of the columns of now, and those of older ones that are kept, as `rows` reads them."""
    trace, late = bag_trace(bag), _late_trace(bag)
    names = {name for manifest in manifests for name, _ in manifest.traces if _is_bag(name)}
    return [trace, *(replace(late, name=name) for name in sorted(names - {trace.name}))]


def is_settled(bag: Bag, manifest: Manifest) -> bool:
    """Whether all that is kept has the columns of now."""
    names = {name for name, _ in manifest.traces if _is_bag(name)}
    return names <= {bag_trace(bag).name}


def step(
    bag: Bag, delta: pa.Table, manifest: Manifest, store: RunStore, base: pa.Table | None = None, is_cut: bool = False
) -> Step:
    """One epoch of one shard: `_hash`, the columns and `_weight` of rows that come, and of those that go.

    `base` is all that was there before, with `_base` and `_shown` beside, where the runs of the manifest do not say it
    in the columns of now. With `is_cut` nothing of what was there before stays, whatever the delta brings.
    """
    trace = bag_trace(bag)
    kept = manifest.runs(trace.name)
    if base is None and is_cut:
        base = _whole(bag, manifest, store)
    rows = delta if base is None else pa.concat_tables([_rows(bag, delta, (WEIGHT,)), _rows(bag, base, (BASE, SHOWN))])
    found = _Gathered.of(bag, rows)
    came = found.sums(WEIGHT)
    if base is None:
        was = weights(trace, [store.open(run) for run in kept], found.rows)
        shown, lacked = np.maximum(was, 0), (was < 0).astype(np.int64)
    else:
        was, shown, lacked = found.sums(BASE), found.sums(SHOWN), found.negatives(BASE)
    now = came if is_cut else was + came
    added = came if base is None else now
    state = pa.RecordBatch.from_arrays(
        [pa.array(found.rows.hashes), *found.rows.keys, pa.array(added)], schema=trace.schema
    ).filter(pa.array(added != 0))
    if base is not None:
        manifest, kept = _without_rows(manifest), ()
    manifest = manifest.with_runs(trace.name, append(store, trace, kept, state))
    changes = _changes(bag, found.rows, np.maximum(now, 0) - shown)
    lacks = (now < 0).astype(np.int64) - lacked
    counts = Counts(
        rows_in=delta.num_rows,
        rows_out=changes.num_rows,
        anomalies=int(np.maximum(lacks, 0).sum()),
        recovered=int(np.maximum(-lacks, 0).sum()),
        state_rows=state_rows(manifest),
    )
    return Step(changes, manifest, counts)


def rows(bag: Bag, manifest: Manifest, store: RunStore) -> Iterator[pa.RecordBatch]:
    """Every row with `_weight`, also below zero, under the columns of now: in batches, and a row perhaps in several."""
    trace = _late_trace(bag)
    for name, runs in manifest.traces:
        if _is_bag(name):
            for batch in scan(trace, [store.open(run) for run in runs]):
                columns = [batch.column(field.name).cast(field.type) for field in bag.columns]
                yield pa.RecordBatch.from_arrays([*columns, batch.column(WEIGHT)], schema=rows_schema(bag))


def rows_schema(bag: Bag) -> pa.Schema:
    return pa.schema([*(field.with_nullable(True) for field in bag.columns), pa.field(WEIGHT, pa.int64())])


def _whole(bag: Bag, manifest: Manifest, store: RunStore) -> pa.Table:
    """What is kept, as a base."""
    trace = bag_trace(bag)
    found = list(scan(trace, [store.open(run) for run in manifest.runs(trace.name)]))
    whole = pa.Table.from_batches(found, trace.schema)
    weight = whole.column(WEIGHT)
    shown = pa.array(np.maximum(integers(gathered(weight, pa.int64())), 0))
    return whole.drop_columns([WEIGHT]).append_column(BASE, weight).append_column(SHOWN, shown)


def _rows(bag: Bag, table: pa.Table, weights: Sequence[str]) -> pa.Table:
    """The rows of a delta or of a base, with nothing in the weights of the other."""
    nothing = pa.array(np.zeros(table.num_rows, dtype=np.int64))
    kinds = {HASH: pa.int64(), **{field.name: stored_type(field.type) for field in bag.columns}}
    own = {name: gathered(table.column(name), kind) for name, kind in kinds.items()}
    for name in (WEIGHT, BASE, SHOWN):
        own[name] = gathered(table.column(name), pa.int64()) if name in weights else nothing
    return pa.table(own)


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """The rows of a table, each once and sorted by hash; `members[i]` is the place of row i among them."""

    table: pa.Table
    rows: Wanted
    members: Int64s

    @classmethod
    def of(cls, bag: Bag, table: pa.Table) -> _Gathered:
        hashes = integers(gathered(table.column(HASH), pa.int64()))
        keys = tuple(gathered(table.column(field.name), stored_type(field.type)) for field in bag.columns)
        found = clusters(hashes, keys)
        return cls(table, Wanted(hashes, keys).take(found.firsts), found.members())

    def sums(self, name: str) -> Int64s:
        return self._added(self._numbers(name))

    def negatives(self, name: str) -> Int64s:
        """How many are below zero: rows that differed in a column that went were counted one by one."""
        return self._added(self._numbers(name) < 0)

    def _numbers(self, name: str) -> Int64s:
        return integers(gathered(self.table.column(name), pa.int64()))

    def _added(self, numbers: np.ndarray) -> Int64s:
        found = np.zeros(len(self.rows), dtype=np.int64)
        np.add.at(found, self.members, numbers)
        return found


def _changes(bag: Bag, rows: Wanted, weight: Int64s) -> pa.RecordBatch:
    is_changed = weight != 0
    changed, weight = rows.take(is_changed), weight[is_changed]
    ops = OPERATIONS.take(pa.array(np.where(weight > 0, _INSERT, _DELETE)))
    columns = [column.cast(field.type) for field, column in zip(bag.columns, changed.keys, strict=True)]
    schema = changes_schema([field.with_nullable(True) for field in bag.columns])
    return pa.RecordBatch.from_arrays([ops, pa.array(weight), *columns], schema=schema)


def _without_rows(manifest: Manifest) -> Manifest:
    for name, _ in manifest.traces:
        if _is_bag(name):
            manifest = manifest.with_runs(name, ())
    return manifest


def _late_trace(bag: Bag) -> TraceSpec:
    trace = bag_trace(bag)
    return replace(trace, late=trace.keys)


def _is_bag(name: str) -> bool:
    return name.startswith(f"{BAG} ")
