"""The runs of a GROUP BY, opened, and whether what they hold is what it keeps now.

A widened column may change the type of an expression in ways that no schema tells (DECIMAL / INT has another scale
than DECIMAL / BIGINT). Then the view must fail: its state would be read as something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import StateIncompatible
from laminae.trace.spec import stored_type
from laminae.views.kernels.aggregates import GROUPS, Aggregate, ValueSet, groups_trace, state_fields

if TYPE_CHECKING:
    from laminae.trace.manifest import Manifest
    from laminae.trace.run import Run
    from laminae.trace.store import RunStore


def kept_groups(aggregate: Aggregate, manifest: Manifest, store: RunStore) -> list[Run]:
    """Oldest first. Raises `StateIncompatible`."""
    runs = [store.open(entry) for entry in manifest.runs(GROUPS)]
    for run in runs:
        if run.batch.schema is not groups_trace(aggregate).schema:
            _check(aggregate, run)
    return runs


def _check(aggregate: Aggregate, run: Run) -> None:
    stored = {field.name: field.type for field in run.batch.schema}
    for key in aggregate.keys:
        if key.name in stored and not _hash_alike(stored[key.name], key.type):
            problem = f"groups of {stored[key.name]} are not groups of {key.type}: CREATE OR REPLACE the view"
            raise StateIncompatible(file=run.path, path=key.name, problem=problem)
    for found in aggregate.accumulators:
        names = {field.name for field in state_fields(found)}
        # One that has nothing at all was added, and has seen nothing; MIN and MAX are found among the values.
        if not isinstance(found, ValueSet) and 0 < len(names & stored.keys()) < len(names):
            problem = "what is kept of the aggregate is of another type: CREATE OR REPLACE the view"
            raise StateIncompatible(file=run.path, path=found.id, problem=problem)


def _hash_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether equal values of both types have equal hashes. Only whole keys are hashed in canonical types."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale)
    is_number = pa.types.is_integer(old) and pa.types.is_integer(new)
    return is_number or (pa.types.is_floating(old) and pa.types.is_floating(new)) or _is_within(old, new)


def _is_within(old: pa.DataType, new: pa.DataType) -> bool:
    """The same, or structs that have gained fields: these are NULL in old values, and a NULL changes no hash."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        there = {field.name: field.type for field in new}
        return all(field.name in there and _is_within(field.type, there[field.name]) for field in old)
    return bool(stored_type(old) == stored_type(new))
