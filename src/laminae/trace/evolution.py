"""Read rows of an older run under a newer spec: nullable columns added, reordered, renamed by id, widened or dropped.

The rules are those of FLIP-527 (SPEC section 6). Only the requested rows are projected; no file is rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import StateIncompatible
from laminae.schema.column import columns_of, dotted
from laminae.schema.diff import match_siblings
from laminae.schema.projection import Cast, ColumnProjection, Fill, Keep, Nest, Step, projection_between
from laminae.schema.widening import MAP_LAYOUTS, TypeRelation, relation

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.schema.column import Columns
    from laminae.trace.spec import TraceSpec

_READABLE = (TypeRelation.SAME, TypeRelation.PHYSICAL, TypeRelation.WIDER)


def projection_onto(spec: TraceSpec, stored: pa.Schema, file: str) -> ColumnProjection | None:
    """The projection from the columns of a run to those of `spec`; None if equal. Raises `StateIncompatible`."""
    if columns_of(stored) == columns_of(spec.schema):
        return None
    projection = projection_between(stored, spec.schema)
    for step in projection.steps:
        if isinstance(step, Fill) and step.target.name in spec.identity and step.target.name not in spec.late:
            _refuse(file, step, "the column is part of the key and the run does not have it")
    _check(projection.steps, columns_of(stored), file)
    is_same = stored.names == spec.schema.names and all(
        isinstance(step, Keep) and step.source == place for place, step in enumerate(projection.steps)
    )
    return None if is_same else projection


def _check(steps: tuple[Step, ...], old: Columns, file: str) -> None:
    matched = match_siblings(old, tuple(step.target for step in steps))
    for step, source in zip(steps, matched, strict=True):
        match step:
            case Fill() if source is not None:
                _refuse(file, step, f"{old[source].type} cannot become {step.target.type}")
            case Fill() if step.target.is_required_of_older_versions:
                _refuse(file, step, "the column is NOT NULL, has no default, and the run does not have it")
            case Keep() | Cast() | Nest() if old[step.source].nullable and not step.target.nullable:
                _refuse(file, step, "the column may be NULL in the run and is NOT NULL now")
            case Cast() if relation(old[step.source], step.target) not in _READABLE:
                _refuse(file, step, f"{old[step.source].type} cannot become {step.target.type} without loss")
            case Nest() if step.target.kind in MAP_LAYOUTS and not isinstance(step.children[0], Keep):
                _refuse(file, step, "the keys of a map cannot evolve")
            case Nest():
                _check(step.children, old[step.source].children, file)


def _refuse(file: str, step: Step, problem: str) -> None:
    raise StateIncompatible(file=file, path=dotted(step.path), problem=problem)
