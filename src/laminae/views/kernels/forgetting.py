"""The state of a GROUP BY as if some accumulators had never been: for aggregates that a replaced view takes up anew.

A view that gave an aggregate up has its columns and values in older runs still. Filled on top of them, every row would
count twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.trace.scan import scan
from laminae.trace.values import gathered
from laminae.views.kernels.aggregates import GROUPS, Aggregate, groups_trace, state_fields, values_name
from laminae.views.kernels.kept import kept_groups

if TYPE_CHECKING:
    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore


def without(aggregate: Aggregate, forgotten: frozenset[str], manifest: Manifest, store: RunStore) -> Manifest:
    """The state of a shard with nothing of these accumulators in it. Older runs are left as they are."""
    lost = [found for found in aggregate.accumulators if found.id in forgotten]
    for found in lost:
        manifest = manifest.with_runs(values_name(found), ())
    names = {field.name for found in lost for field in state_fields(found)}
    # One of another type may have had the same id.
    starts = tuple(f"{found.id}_" for found in lost)
    runs = [store.open(entry) for entry in manifest.runs(GROUPS)]
    if not any(name in names or name.startswith(starts) for run in runs for name in run.batch.schema.names):
        return manifest
    left = replace(aggregate, accumulators=tuple(each for each in aggregate.accumulators if each not in lost))
    groups = list(scan(groups_trace(left), kept_groups(left, manifest, store)))
    if not groups:
        return manifest.with_runs(GROUPS, ())
    whole, spec = pa.Table.from_batches(groups), groups_trace(aggregate)
    columns = [
        pa.nulls(whole.num_rows, field.type) if field.name in names else gathered(whole.column(field.name), field.type)
        for field in spec.schema
    ]
    rewritten = pa.RecordBatch.from_arrays(columns, schema=spec.schema)
    return manifest.with_runs(GROUPS, (store.write(spec, rewritten),))
