"""A source's schema after its table outside has changed: what changed there, carried over. Pure.

The two sides need not be equal: a source may have fewer columns, wider types, or columns of its own, and keeps them.
Columns are the same by the id that they have outside, else by their name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import EXTERNAL_ID, column
from laminae.schema.diff import match_siblings
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Sequence

Identity = tuple[str, str | bytes]


def learned(current: pa.Schema, outside: pa.Schema) -> pa.Schema:
    """`current` with the ids that its columns have outside, where they have none yet. The name tells which is which."""
    return pa.schema(_learned(list(current), list(outside)), metadata=current.metadata)


def followed(current: pa.Schema, before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """`current` with what is different outside `after`: renames, wider types, NOT NULL, columns that came and went.

    Done twice it is as done once.
    """
    return pa.schema(_followed(list(current), list(before), list(after)), metadata=current.metadata)


def refreshed(current: pa.Schema, outside: pa.Schema) -> pa.Schema:
    """`current` with the columns that are outside now: those that it lacks come, those that are gone there go.

    Columns that never were outside stay.
    """
    mine = learned(current, outside)
    there = {_number(field): field for field in outside}
    known = [there.get(_number(field), field) for field in mine if _number(field) is not None]
    return followed(mine, pa.schema(known), outside)


def _learned(current: Sequence[pa.Field], outside: Sequence[pa.Field]) -> list[pa.Field]:
    made = list(current)
    matches = match_siblings(tuple(map(column, current)), tuple(map(column, outside)))
    for field, match in zip(outside, matches, strict=True):
        if match is not None:
            made[match] = _with_number(current[match], field).with_type(_learned_type(current[match].type, field.type))
    return made


def _learned_type(mine: pa.DataType, outside: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(mine) and pa.types.is_struct(outside):
        return pa.struct(_learned(list(mine), list(outside)))
    if not _are_alike(mine, outside):
        return mine
    # The key of a map is the map's own identity.
    *key, inner = inner_fields(mine)
    other = inner_fields(outside)[-1]
    return container(mine, [*key, _with_number(inner, other).with_type(_learned_type(inner.type, other.type))])


def _followed(current: Sequence[pa.Field], before: Sequence[pa.Field], after: Sequence[pa.Field]) -> list[pa.Field]:
    old, new = ({_identity(field): field for field in fields} for fields in (before, after))
    own = {field.name.casefold() for field in current if _identity(field) not in new}
    made = []
    for field in current:
        number = _identity(field)
        if number in old and number in new:
            made.append(_changed(field, old[number], new[number], own))
        elif number not in old:
            made.append(field)
    made = _moved(made, [_identity(field) for field in before], [_identity(field) for field in after])
    return _grown(made, old, after)


def _changed(mine: pa.Field, old: pa.Field, new: pa.Field, taken: set[str]) -> pa.Field:
    if old.name != new.name and new.name.casefold() not in taken:
        mine = mine.with_name(new.name)
    if old.nullable != new.nullable:
        mine = mine.with_nullable(new.nullable)
    return mine.with_type(_changed_type(mine.type, old.type, new.type))


def _changed_type(mine: pa.DataType, old: pa.DataType, new: pa.DataType) -> pa.DataType:
    if all(map(pa.types.is_struct, (mine, old, new))):
        return pa.struct(_followed(list(mine), list(old), list(new)))
    if _are_alike(mine, old) and _are_alike(mine, new):
        parts = zip(*(inner_fields(kind) for kind in (mine, old, new)), strict=True)
        return container(mine, [a.with_type(_changed_type(a.type, b.type, c.type)) for a, b, c in parts])
    is_wider = relation(column(pa.field("a", mine)), column(pa.field("a", new))) is TypeRelation.WIDER
    return new if old != new and is_wider else mine


def _moved(made: list[pa.Field], before: list[Identity], after: list[Identity]) -> list[pa.Field]:
    """Columns that both sides know in their new order, in the places that they had together; all others stay."""
    known = {_identity(field) for field in made} & set(before) & set(after)
    if [number for number in before if number in known] == [number for number in after if number in known]:
        return made
    fields = {_identity(field): field for field in made}
    in_order = iter([fields[number] for number in after if number in known])
    return [next(in_order) if _identity(field) in known else field for field in made]


def _grown(made: list[pa.Field], old: dict[Identity, pa.Field], after: Sequence[pa.Field]) -> list[pa.Field]:
    """With the columns that are new outside, each behind the one that it stands behind there."""
    for place, field in enumerate(after):
        names = {each.name.casefold(): i for i, each in enumerate(made)}
        if _identity(field) in old or any(_identity(each) == _identity(field) for each in made):
            continue
        taken = names.get(field.name.casefold())
        if taken is None:
            made.insert(_place(made, after[:place]), field)
        elif made[taken].name == field.name and _number(made[taken]) is None:
            made[taken] = _with_number(made[taken], field)
    return made


def _place(made: Sequence[pa.Field], ahead: Sequence[pa.Field]) -> int:
    places = {_identity(field): i for i, field in enumerate(made)}
    found = next((places[_identity(field)] for field in reversed(ahead) if _identity(field) in places), None)
    if found is None:
        return len(made) if ahead else 0
    return found + 1


def _identity(field: pa.Field) -> Identity:
    """By the id outside, else by the name: a table without ids never renames a column."""
    number = _number(field)
    return ("name", field.name) if number is None else ("id", number)


def _number(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(EXTERNAL_ID)


def _with_number(field: pa.Field, outside: pa.Field) -> pa.Field:
    number, metadata = _number(outside), dict(field.metadata or {})
    if number is None or EXTERNAL_ID in metadata:
        return field
    return field.with_metadata({**metadata, EXTERNAL_ID: number})


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are lists or both are maps."""
    return (is_list(one) and is_list(other)) or (pa.types.is_map(one) and pa.types.is_map(other))
