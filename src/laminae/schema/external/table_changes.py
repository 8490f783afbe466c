"""A source's schema after its external table has changed: applies the changes of the table. Pure.

The two sides need not be equal: a source may have fewer columns, wider types, or columns of its own, and keeps them.
Columns are matched by their id in the external table, else by their name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import EXTERNAL_ID, column
from laminae.schema.diff import match_siblings
from laminae.schema.identifiers import collation_key, column_name_problem
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.widening import TypeRelation, relation

if TYPE_CHECKING:
    from collections.abc import Sequence

Identity = tuple[str, str | bytes]


def learned(current: pa.Schema, outside: pa.Schema) -> pa.Schema:
    """`current` with the external ids of its columns, for columns that have none yet. Columns are matched by name."""
    return pa.schema(_learned(list(current), list(outside)), metadata=current.metadata)


def followed(current: pa.Schema, before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """`current` with the changes from `before` to `after`: renames, wider types, NOT NULL, added and dropped columns.

    Idempotent.
    """
    return pa.schema(_followed(list(current), list(before), list(after)), metadata=current.metadata)


def refreshed(current: pa.Schema, outside: pa.Schema) -> pa.Schema:
    """`current` with the columns that the external table has now: new ones are added, dropped ones are removed.

    Columns that never were in the external table stay.
    """
    mine = learned(current, outside)
    outside_by_number = {_number(field): field for field in outside}
    known = [outside_by_number.get(_number(field), field) for field in mine if _number(field) is not None]
    return followed(mine, pa.schema(known), outside)


def _learned(current: Sequence[pa.Field], outside: Sequence[pa.Field]) -> list[pa.Field]:
    fields = list(current)
    matches = match_siblings(tuple(map(column, current)), tuple(map(column, outside)))
    for field, match in zip(outside, matches, strict=True):
        if match is not None:
            fields[match] = _with_number(current[match], field).with_type(
                _learned_type(current[match].type, field.type)
            )
    return fields


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
    own = {collation_key(field.name) for field in current if _identity(field) not in new}
    columns = []
    for field in current:
        number = _identity(field)
        if number in old and number in new:
            columns.append(_changed(field, old[number], new[number], own))
        elif number not in old:
            columns.append(field)
    columns = _moved(columns, [_identity(field) for field in before], [_identity(field) for field in after])
    return _grown(columns, old, after)


def _changed(mine: pa.Field, old: pa.Field, new: pa.Field, taken: set[str]) -> pa.Field:
    is_free = collation_key(new.name) not in taken and column_name_problem(new.name) is None
    if old.name != new.name and is_free:
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
    """Columns that both sides have in their new order, at the positions they occupied before; all others stay."""
    known = {_identity(field) for field in made} & set(before) & set(after)
    if [number for number in before if number in known] == [number for number in after if number in known]:
        return made
    fields = {_identity(field): field for field in made}
    in_order = iter([fields[number] for number in after if number in known])
    return [next(in_order) if _identity(field) in known else field for field in made]


def _grown(made: list[pa.Field], old: dict[Identity, pa.Field], after: Sequence[pa.Field]) -> list[pa.Field]:
    """With the new columns of the external table, each after the column that it follows there.

    An invalid column name is skipped, as such JSON keys are: it must not stop the source.
    """
    for place, field in enumerate(after):
        names = {collation_key(other.name): i for i, other in enumerate(made)}
        if _identity(field) in old or any(_identity(other) == _identity(field) for other in made):
            continue
        taken = names.get(collation_key(field.name))
        if taken is None and column_name_problem(field.name) is None:
            made.insert(_place(made, after[:place]), field)
        elif taken is not None and made[taken].name == field.name and _number(made[taken]) is None:
            made[taken] = _with_number(made[taken], field)
    return made


def _place(made: Sequence[pa.Field], ahead: Sequence[pa.Field]) -> int:
    places = {_identity(field): i for i, field in enumerate(made)}
    index = next((places[_identity(field)] for field in reversed(ahead) if _identity(field) in places), None)
    if index is None:
        return len(made) if ahead else 0
    return index + 1


def _identity(field: pa.Field) -> Identity:
    """The external id, else the name: a table without ids never renames a column."""
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
