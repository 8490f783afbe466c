"""Maps the columns of a writer's schema to those of a source, and applies the changes of a newer writer's schema.

The two need not be equal: a source may have fewer columns, wider types, other names, or columns of its own, and keeps
them. Only what changed from one writer's schema to the next is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import ALIASES, DEFAULT, ID, column, columns_of, dotted
from laminae.schema.diff import match_siblings
from laminae.schema.identifiers import collation_key
from laminae.schema.identity import with_write_default
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.projection import Fill, Nest, projection_between
from laminae.schema.types import sql_type
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.schema.column import Columns, Path
    from laminae.schema.projection import Step

FITTING = (TypeRelation.SAME, TypeRelation.WIDER, TypeRelation.PHYSICAL)


def bound(writer: pa.Schema, before: pa.Schema | None, current: pa.Schema) -> pa.Schema:
    """The writer's columns, each with the id of the source's column that it matches, if any.

    `before` is the bound schema of an earlier writer: a column that continues one of its columns is the same column,
    whatever its name is in the source now. A column that is new in the writer's schema matches by name or alias.
    """
    return pa.schema(_bound(list(writer), None if before is None else list(before), list(current)))


def grown(current: pa.Schema, before: pa.Schema | None, writer: pa.Schema) -> pa.Schema:
    """The source's schema with the changes between two bound writers' schemas. Idempotent.

    The first writer of a source changes nothing: CREATE SOURCE declared the columns.
    """
    if before is None:
        return current
    return pa.schema(_grown(list(current), list(before), list(writer)), metadata=current.metadata)


def misfit(writer: pa.Schema, current: pa.Schema) -> str | None:
    """Why no record of a bound writer's schema can become a row: a column's type is unrelated. None if some may."""
    known = set(_ids(columns_of(writer)))
    for path, kind in _unfilled(projection_between(writer, current).steps, known):
        return f"{dotted(path)} is {sql_type(kind)} here, and a type of another kind in the schema of the record"
    return None


def _bound(
    writer: Sequence[pa.Field], before: Sequence[pa.Field] | None, current: Sequence[pa.Field]
) -> list[pa.Field]:
    known = [None] * len(writer) if before is None else match_siblings(_nodes(before), _nodes(writer))
    live = {_id(field): field for field in current}
    free = [field for field in current if _id(field) not in _taken(before or (), known)]
    named = match_siblings(_nodes([_without_id(field) for field in free]), _nodes(writer))
    fields = []
    for field, old, new in zip(writer, known, named, strict=True):
        former = None if old is None or before is None else before[old]
        if former is not None:
            mine = live.get(_id(former)) if _id(former) is not None else None
            number = _id(former)
        else:
            mine = None if new is None else free[new]
            number = None if mine is None else _id(mine)
        kind = _bound_type(field.type, None if former is None else former.type, None if mine is None else mine.type)
        fields.append(_with_id(field, number).with_type(kind))
    return fields


def _taken(before: Sequence[pa.Field], matches: Sequence[int | None]) -> set[bytes]:
    """Ids of columns that the writer's columns continue through an earlier schema: no other column may have them."""
    return {number for i in matches if i is not None and (number := _id(before[i])) is not None}


def _bound_type(writer: pa.DataType, before: pa.DataType | None, current: pa.DataType | None) -> pa.DataType:
    if pa.types.is_struct(writer):
        old = list(before) if before is not None and pa.types.is_struct(before) else None
        mine = list(current) if current is not None and pa.types.is_struct(current) else []
        return pa.struct(_bound(list(writer), old, mine))
    if not (pa.types.is_map(writer) or is_list(writer)):
        return writer
    inner = inner_fields(writer)
    old = inner_fields(before) if before is not None and _are_alike(writer, before) else [None] * len(inner)
    mine = inner_fields(current) if current is not None and _are_alike(writer, current) else [None] * len(inner)
    fields = []
    for field, former, live in zip(inner, old, mine, strict=True):
        number = _id(former) if former is not None else None if live is None else _id(live)
        kind = _bound_type(field.type, former and former.type, live and live.type)
        fields.append(_with_id(field, number).with_type(kind))
    return container(writer, fields)


def _grown(current: Sequence[pa.Field], before: Sequence[pa.Field], writer: Sequence[pa.Field]) -> list[pa.Field]:
    old, new = ({_id(field): field for field in fields if _id(field) is not None} for fields in (before, writer))
    columns: list[pa.Field] = []
    for field in current:
        number = _id(field)
        if number in new:
            taken = {collation_key(other.name) for other in current if other is not field}
            columns.append(_changed(field, old.get(number), new[number], taken))
        elif number not in old:
            columns.append(field)
    ignored = {field.name for field in before if _id(field) is None}
    for place, field in enumerate(writer):
        names = {collation_key(other.name) for other in columns}
        if _id(field) is None and field.name not in ignored and collation_key(field.name) not in names:
            columns.insert(_place(columns, writer[:place]), _without_aliases(field))
    return columns


def _changed(mine: pa.Field, old: pa.Field | None, new: pa.Field, taken: set[str]) -> pa.Field:
    if old is None:
        return mine
    if old.name != new.name and collation_key(new.name) not in taken:
        mine = mine.with_name(new.name)
    if old.nullable != new.nullable:
        mine = mine.with_nullable(new.nullable)
    default = (new.metadata or {}).get(DEFAULT)
    if default is not None and default != (old.metadata or {}).get(DEFAULT):
        mine = with_write_default(mine, default.decode())
    return mine.with_type(_changed_type(mine.type, old.type, new.type))


def _changed_type(mine: pa.DataType, old: pa.DataType, new: pa.DataType) -> pa.DataType:
    if all(map(pa.types.is_struct, (mine, old, new))):
        return pa.struct(_grown(list(mine), list(old), list(new)))
    if _are_alike(mine, old) and _are_alike(mine, new):
        parts = zip(*(inner_fields(kind) for kind in (mine, old, new)), strict=True)
        return container(mine, [_changed(a, b, c, taken=set()) for a, b, c in parts])
    fits = relation(column(pa.field("a", new)), column(pa.field("a", mine))) in FITTING
    return mine if old == new or fits else new


def _place(made: Sequence[pa.Field], ahead: Sequence[pa.Field]) -> int:
    """The index after the nearest preceding column that is present."""
    places = {_id(field) or field.name.encode(): i for i, field in enumerate(made)}
    candidates = (places.get(_id(field) or field.name.encode()) for field in reversed(ahead))
    return next((place + 1 for place in candidates if place is not None), len(made) if ahead else 0)


def _unfilled(steps: tuple[Step, ...], known: set[int]) -> Iterator[tuple[Path, pa.DataType]]:
    """Columns that the writer has but that are filled with a default, because the two types are unrelated."""
    for step in steps:
        if isinstance(step, Fill) and step.target.id in known:
            yield step.path, step.target.type
        elif isinstance(step, Nest):
            yield from _unfilled(step.children, known)


def _ids(columns: Columns) -> Iterator[int]:
    for node in columns:
        if node.id is not None:
            yield node.id
        yield from _ids(node.children)


def _nodes(fields: Sequence[pa.Field]) -> Columns:
    return tuple(map(column, fields))


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(ID)


def _with_id(field: pa.Field, number: bytes | None) -> pa.Field:
    metadata = {name: value for name, value in (field.metadata or {}).items() if name != ID}
    return field.with_metadata(metadata if number is None else {**metadata, ID: number})


def _without_id(field: pa.Field) -> pa.Field:
    return _with_id(field, None)


def _without_aliases(field: pa.Field) -> pa.Field:
    return field.with_metadata({name: value for name, value in (field.metadata or {}).items() if name != ALIASES})


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are lists or both are maps."""
    return (is_list(one) and is_list(other)) or (pa.types.is_map(one) and pa.types.is_map(other))
