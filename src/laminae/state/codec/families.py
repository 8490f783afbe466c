"""Rows of a store in Arrow batches: bytes of several column families migrated, or columns encoded.

These run where the rows are. A worker of Spark's imports no more than this package for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from laminae.state.codec.encode import row_encoder
from laminae.state.codec.migrate import Migration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.state.checkpoint.report import FamilyPlan, Side

Sides: TypeAlias = tuple[Migration | None, Migration | None]

BYTES = ("key_bytes", "value_bytes", "column_family_name")
SAME: Sides = (None, None)


@dataclass(frozen=True, slots=True)
class FamiliesMigration:
    """Batches of BYTES under their new schemas; mappings are compiled once in each task."""

    plans: tuple[FamilyPlan, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled = {plan.family: (_compiled(plan.key), _compiled(plan.value)) for plan in self.plans if plan.changes}
        for batch in batches:
            yield _migrated(batch, compiled)


@dataclass(frozen=True, slots=True)
class FamilyEncoding:
    """Batches of two structs, key and value as the family has them now, as BYTES."""

    plan: FamilyPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        to_key, to_value = row_encoder(self.plan.key.new), row_encoder(self.plan.value.new)
        for batch in batches:
            keys = pa.array([to_key(row) for row in _rows(batch.column(0))], pa.binary())
            values = pa.array([to_value(row) for row in _rows(batch.column(1))], pa.binary())
            family = pa.array([self.plan.family] * len(batch), pa.string())
            yield pa.RecordBatch.from_arrays([keys, values, family], names=list(BYTES))


def _compiled(side: Side) -> Migration | None:
    return None if side.mapping is None else Migration.of(side.old, side.new, side.mapping)


def _migrated(batch: pa.RecordBatch, compiled: dict[str, Sides]) -> pa.RecordBatch:
    """One batch; rows of several families come mixed, and go back in the order they came."""
    families = batch.column(2).dictionary_encode()
    names = families.dictionary.to_pylist()
    if len(names) <= 1:
        sides = compiled.get(names[0], SAME) if names else SAME
        columns = [_through(side, column) for side, column in zip(sides, batch.columns[:2], strict=True)]
        return pa.RecordBatch.from_arrays([*columns, batch.column(2)], names=list(BYTES))
    numbers = families.indices.to_numpy()
    places = [np.flatnonzero(numbers == number) for number in range(len(names))]
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    columns = [
        pa.concat_arrays(
            [
                _through(compiled.get(name, SAME)[side], batch.column(side).take(pa.array(own)))
                for name, own in zip(names, places, strict=True)
            ]
        ).take(order)
        for side in (0, 1)
    ]
    return pa.RecordBatch.from_arrays([*columns, batch.column(2)], names=list(BYTES))


def _through(migration: Migration | None, rows: pa.Array) -> pa.Array:
    return rows if migration is None else migration.batch(rows)


def _rows(structs: pa.StructArray) -> Iterator[tuple[object, ...]]:
    """The fields of each row in order: names of buffers may come twice."""
    if not structs.type.num_fields:
        return iter([()] * len(structs))
    return zip(*(structs.field(place).to_pylist() for place in range(structs.type.num_fields)), strict=True)
