"""Projects rows of any schema version directly to any other: a tree of steps, and its Arrow executor.

The steps are values, so that Spark compiles the same ones. Nullability is checked here: pyarrow does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import SchemaMismatch
from laminae.schema.arguments import require
from laminae.schema.arrays import entries_of, is_same, list_like, null_count, repeated, struct_like
from laminae.schema.column import Column, Columns, Path, columns_of, dotted
from laminae.schema.defaults import default_scalar
from laminae.schema.diff import match_siblings
from laminae.schema.types import is_variant
from laminae.schema.widening import MAP_LAYOUTS, TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Fill:
    """A column that the old schema does not have: `default`, or NULL."""

    target: Column
    path: Path
    default: str | None


@dataclass(frozen=True, slots=True)
class Keep:
    """The old column `source` as it is."""

    target: Column
    path: Path
    source: int


@dataclass(frozen=True, slots=True)
class Cast:
    """The old column `source`, each value converted exactly or refused."""

    target: Column
    path: Path
    source: int


@dataclass(frozen=True, slots=True)
class Nest:
    """The old struct, list or map `source`, its children projected by `children` (in the target's order)."""

    target: Column
    path: Path
    source: int
    children: tuple[Step, ...]


Step = Fill | Keep | Cast | Nest


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProjection:
    """From batches of `old_schema` to batches of `new_schema`. `mappings[i]` is the old index of new column i."""

    old_schema: pa.Schema
    new_schema: pa.Schema
    steps: tuple[Step, ...]

    @property
    def mappings(self) -> tuple[int | None, ...]:
        return tuple(None if isinstance(step, Fill) else step.source for step in self.steps)

    def is_identity(self) -> bool:
        """Whether `project_batch` would return its batch unchanged."""
        return self.old_schema.names == self.new_schema.names and all(
            isinstance(step, Keep) and step.source == i and not _is_checked(step.target)
            for i, step in enumerate(self.steps)
        )

    def new_column_count(self) -> int:
        return sum(isinstance(step, Fill) for step in self.steps)

    def project_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows under the new schema, or `SchemaMismatch` naming the path that does not fit."""
        require("project_batch", pa.RecordBatch, batch=batch)
        if not _has_columns(batch.schema, self.old_schema):
            raise SchemaMismatch(path="the batch", problem=_difference(batch.schema, self.old_schema))
        arrays, rows = batch.columns, batch.num_rows
        columns = [_run(step, arrays, rows, 0) for step in self.steps]
        if not columns:
            # Only a struct array can carry a row count without columns.
            return pa.RecordBatch.from_struct_array(repeated(pa.scalar({}, pa.struct([])), batch.num_rows))
        return pa.RecordBatch.from_arrays(columns, schema=self.new_schema)


Matcher = Callable[[Columns, Columns, Path, Path], list[int | None]]
"""For each new sibling the index of the old one it continues; the paths are those of their parents, old and new."""


class FillWith(Enum):
    """Which default a column gets that the old schema does not have."""

    INITIAL = "the old schema is an older version: its records are older than the column"
    WRITE = "the old schema is that of the records of the new version, which leave the column out"


def projection_between(
    old: pa.Schema, new: pa.Schema, matcher: Matcher | None = None, fill: FillWith = FillWith.INITIAL
) -> ColumnProjection:
    """The projection from any version directly to any other; columns are matched as the diff matches them."""
    build = _Builder(matcher or _as_the_diff_does, fill)
    return ColumnProjection(old, new, build.siblings(columns_of(old), columns_of(new), (), ()))


def _as_the_diff_does(old: Columns, new: Columns, old_path: Path, new_path: Path) -> list[int | None]:
    return match_siblings(old, new)


@dataclass(frozen=True, slots=True)
class _Builder:
    matcher: Matcher
    fill_with: FillWith

    def fill(self, node: Column, path: Path) -> Fill:
        return Fill(node, path, node.default if self.fill_with is FillWith.WRITE else node.initial_default)

    def siblings(self, old: Columns, new: Columns, old_path: Path, path: Path) -> tuple[Step, ...]:
        steps: list[Step] = []
        for node, source in zip(new, self.matcher(old, new, old_path, path), strict=True):
            here = (*path, node.name)
            if source is None:
                steps.append(self.fill(node, here))
            else:
                steps.append(self.step(old[source], node, source, (*old_path, old[source].name), here))
        return tuple(steps)

    def step(self, old: Column, new: Column, source: int, old_path: Path, path: Path) -> Step:
        match relation(old, new):
            case TypeRelation.UNRELATED:
                return self.fill(new, path)
            case TypeRelation.WIDER | TypeRelation.NARROWER:
                return Cast(new, path, source)
            case TypeRelation.PHYSICAL if not new.is_nested:
                return Cast(new, path, source)
            case TypeRelation.SAME if not new.is_nested:
                return Keep(new, path, source)
        if is_variant(old.type) and is_variant(new.type):
            # One value: the two fields of its Arrow form are no columns, and Spark has none to take out.
            return Keep(new, path, source)
        if new.kind == "struct":
            children = self.siblings(old.children, new.children, old_path, path)
        else:
            pairs = enumerate(zip(old.children, new.children, strict=True))
            children = tuple(self.step(a, b, i, (*old_path, a.name), (*path, b.name)) for i, (a, b) in pairs)
        same_shape = old.kind == new.kind and len(old.children) == len(children)
        if same_shape and all(map(_is_untouched, children, count(), old.children)):
            return Keep(new, path, source)
        return Nest(new, path, source, children)


def _is_untouched(step: Step, place: int, old: Column) -> bool:
    """Whether the child may stay in its parent's array: same place, same name, nothing to check below."""
    in_place = isinstance(step, Keep) and step.source == place and step.target.name == old.name
    return in_place and not _is_checked(step.target)


def _is_checked(node: Column) -> bool:
    """Whether some value at or below this column must not be NULL. Arrow ensures it for map keys."""
    if is_variant(node.type):
        return not node.nullable
    below = node.children[1:] if node.kind in MAP_LAYOUTS else node.children
    return not node.nullable or any(_is_checked(child) for child in below)


def _run(step: Step, siblings: Sequence[pa.Array], rows: int, hidden: int) -> pa.Array:
    """`hidden` rows are NULL because a parent is: they do not violate NOT NULL."""
    match step:
        case Fill():
            result = _fill(step, rows, hidden)
        case Keep():
            result = siblings[step.source]
        case Cast():
            result = _cast(siblings[step.source], step)
        case Nest():
            result = _nest(siblings[step.source], step)
    if not step.target.nullable and (nulls := null_count(result)) > hidden:
        problem = f"{nulls - hidden} of {rows} values are NULL in a NOT NULL column"
        raise SchemaMismatch(path=dotted(step.path), problem=problem)
    return result


def _fill(step: Fill, rows: int, hidden: int) -> pa.Array:
    node = step.target
    if not node.nullable and step.default is None and rows > hidden:
        problem = "the column is NOT NULL, has no default, and the older version does not have it"
        raise SchemaMismatch(path=dotted(step.path), problem=problem)
    if step.default is None:
        return pa.nulls(rows, node.type)
    return repeated(default_scalar(step.default, node.type, dotted(step.path)), rows)


def _cast(array: pa.Array, step: Cast) -> pa.Array:
    if array.null_count == len(array):
        return pa.nulls(len(array), step.target.type)
    try:
        result = array.cast(step.target.type)
    except pa.ArrowException as problem:
        raise SchemaMismatch(path=dotted(step.path), problem=str(problem)) from None
    if pa.types.is_floating(array.type) and pa.types.is_floating(step.target.type) and not is_same(array, result):
        reason = f"a value cannot be held exactly by {step.target.type}"
        raise SchemaMismatch(path=dotted(step.path), problem=reason)
    return result


def _nest(array: pa.Array, step: Nest) -> pa.Array:
    if step.target.kind == "struct":
        fields, rows, nulls = array.flatten(), len(array), array.null_count
        inner = [_run(child, fields, rows, nulls) for child in step.children]
        return struct_like(array, inner, step.target.type)
    entries = entries_of(array)
    inner = [_run(child, entries.children, entries.count, 0) for child in step.children]
    return list_like(array, entries, inner, step.target.type)


def _has_columns(given: pa.Schema, expected: pa.Schema) -> bool:
    return bool(given.equals(expected) or (given.names == expected.names and given.types == expected.types))


def _difference(given: pa.Schema, expected: pa.Schema) -> str:
    for i, field in enumerate(expected):
        if i >= len(given) or given.field(i).name != field.name:
            name = given.field(i).name if i < len(given) else "nothing"
            return f"column {i} is {name}, this projection starts from {field.name}"
        if given.field(i).type != field.type:
            return f"column {field.name} is {given.field(i).type}, this projection starts from {field.type}"
    return f"it has {len(given)} columns, this projection starts from {len(expected)}"
