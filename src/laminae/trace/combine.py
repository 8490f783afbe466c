"""Merge rows of a trace into one sorted run: how REPLACE and SUM combine the rows of one identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.cluster import Clusters, clusters
from laminae.trace.spec import HASH, WEIGHT, Discipline, TraceSpec
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.wide_integers import Int64s


def rows_of(spec: TraceSpec, table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """The columns of `spec`, by name, in the types that runs store."""
    columns = [gathered(table.column(field.name), field.type) for field in spec.schema]
    return pa.RecordBatch.from_arrays(columns, schema=spec.schema)


def combined(spec: TraceSpec, batches: Sequence[pa.RecordBatch], *, is_oldest: bool) -> pa.RecordBatch:
    """Merge batches, given oldest first, into one run. Tombstones stay while an older run may hold what they delete."""
    whole = joined(spec.schema, batches)
    by_identity = clusters(
        integers(whole.column(HASH)),
        [whole.column(name) for name in spec.keys],
        [whole.column(name) for name in spec.values],
    )
    match spec.discipline:
        case Discipline.REPLACE:
            rows = by_identity.lasts
            if is_oldest and not spec.keeps_tombstones:
                rows = rows[integers(whole.column(WEIGHT))[rows] != 0]
            return taken(whole, rows)
        case Discipline.SUM:
            return _added(spec, whole, by_identity)


def joined(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def taken(batch: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    if len(places) == batch.num_rows and bool((places == np.arange(len(places))).all()):
        return batch
    return batch.take(pa.array(places))


def _added(spec: TraceSpec, whole: pa.RecordBatch, found: Clusters) -> pa.RecordBatch:
    names = (*spec.payload, WEIGHT)
    sums = [integers(whole.column(name))[found.order] for name in names]
    if not found.are_single:
        sums = [np.add.reduceat(column, found.starts) for column in sums]
    left = np.logical_or.reduce([column != 0 for column in sums])
    rows = found.firsts if bool(left.all()) else found.firsts[left]
    first = taken(whole.select(spec.schema.names[: -len(names)]), rows)
    columns = [*first.columns, *(pa.array(column[left]) for column in sums)]
    return pa.RecordBatch.from_arrays(columns, schema=spec.schema)
