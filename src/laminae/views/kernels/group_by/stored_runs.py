"""Open the runs of a GROUP BY and check that their contents match its current types.

Widening a column may change the type of an expression in ways that no schema shows (DECIMAL / INT has another scale
than DECIMAL / BIGINT). Then the view must fail, because its state would be misinterpreted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import StateIncompatible
from laminae.trace.scan import scan
from laminae.trace.spec import stored_type
from laminae.views.kernels.group_by.aggregates import (
    GROUPS,
    ROWS,
    Aggregate,
    ValueSet,
    groups_trace,
    state_fields,
    values_name,
)
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from laminae.trace.manifest import Manifest
    from laminae.trace.run import Run
    from laminae.trace.store import RunStore
    from laminae.zset.wide_integers import Bools


def kept_groups(aggregate: Aggregate, manifest: Manifest, store: RunStore) -> list[Run]:
    """The runs of the groups, oldest first. Raises `StateIncompatible`."""
    runs = [store.open(entry) for entry in manifest.runs(GROUPS)]
    for run in runs:
        if run.batch.schema is not groups_trace(aggregate).schema:
            _check(aggregate, run)
    return runs


def refuse_lost(
    aggregate: Aggregate, state: Mapping[str, pa.Array], is_found: Bools, fresh: Container[str] = ()
) -> None:
    """Refuse groups that have rows but no state for an accumulator, unless it is `fresh`: filled by this delta.

    A count is never NULL in a row that was written with it. Raises `StateIncompatible`.
    """
    unfound = len(is_found) - int(np.count_nonzero(is_found))
    for accumulator in aggregate.accumulators:
        count = state[state_fields(accumulator)[0].name]
        if accumulator.id in fresh or count.null_count <= unfound:
            continue
        if bool((np.asarray(count.is_null()) & is_found & (integers(state[ROWS]) > 0)).any()):
            problem = "the aggregate has no state for some groups: CREATE OR REPLACE the view"
            raise StateIncompatible(file=f"the groups of view {aggregate.view}", path=accumulator.id, problem=problem)


def without(aggregate: Aggregate, forgotten: frozenset[str], manifest: Manifest, store: RunStore) -> Manifest:
    """The manifest of a shard without the state of these accumulators, which a replaced view backfills.

    Older runs still hold the columns and values of an aggregate that an earlier definition of the view dropped. If the
    aggregate is added again and backfilled on top of them, every row counts twice. Older runs are not modified.
    """
    lost = [accumulator for accumulator in aggregate.accumulators if accumulator.id in forgotten]
    for dropped in lost:
        manifest = manifest.with_runs(values_name(dropped), ())
    names = {field.name for accumulator in lost for field in state_fields(accumulator)}
    # An accumulator of another type may have used the same id.
    starts = tuple(f"{accumulator.id}_" for accumulator in lost)
    runs = [store.open(entry) for entry in manifest.runs(GROUPS)]
    if not any(name in names or name.startswith(starts) for run in runs for name in run.batch.schema.names):
        return manifest
    left = replace(
        aggregate, accumulators=tuple(accumulator for accumulator in aggregate.accumulators if accumulator not in lost)
    )
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


def _check(aggregate: Aggregate, run: Run) -> None:
    stored = {field.name: field.type for field in run.batch.schema}
    for key in aggregate.keys:
        if key.name in stored and not _hash_alike(stored[key.name], key.type):
            problem = f"groups of {stored[key.name]} are not groups of {key.type}: CREATE OR REPLACE the view"
            raise StateIncompatible(file=run.path, path=key.name, problem=problem)
    for accumulator in aggregate.accumulators:
        names = {field.name for field in state_fields(accumulator)}
        # An accumulator with no stored column was added (`refuse_lost` checks it); MIN and MAX are recomputed from the
        # values.
        if not isinstance(accumulator, ValueSet) and 0 < len(names & stored.keys()) < len(names):
            problem = "the state of the aggregate has another type: CREATE OR REPLACE the view"
            raise StateIncompatible(file=run.path, path=accumulator.id, problem=problem)


def _hash_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether equal values of both types have equal hashes. Only top-level keys are hashed in their canonical type."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale)
    is_number = pa.types.is_integer(old) and pa.types.is_integer(new)
    return is_number or (pa.types.is_floating(old) and pa.types.is_floating(new)) or _is_within(old, new)


def _is_within(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether the types are equal, or structs that gained fields: those are NULL in old values, and no hash changes."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        new_types = {field.name: field.type for field in new}
        return all(field.name in new_types and _is_within(field.type, new_types[field.name]) for field in old)
    return bool(stored_type(old) == stored_type(new))
