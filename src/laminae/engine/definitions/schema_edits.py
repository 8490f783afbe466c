"""Edit a schema by path: the proposed schema of an ALTER is the current one with one field or sibling list replaced.

Paths go through structs by name, through lists by `element` and through maps by `key` and `value`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import UnknownColumn
from laminae.schema.column import Column, Path, columns_of, dotted
from laminae.schema.nesting import container, inner_fields, is_list

if TYPE_CHECKING:
    from collections.abc import Callable

ROLES = {"map": ("key", "value"), "list": ("element",)}


def edit_field(schema: pa.Schema, path: Path, source: str, edit: Callable[[pa.Field], pa.Field]) -> pa.Schema:
    """The schema with the field at `path` replaced by `edit(field)`."""

    def replace(fields: list[pa.Field]) -> list[pa.Field]:
        at = _index([field.name for field in fields], path, len(path) - 1, source)
        return [*fields[:at], edit(fields[at]), *fields[at + 1 :]]

    root = pa.field("", pa.struct(list(schema)))
    return pa.schema(list(_descend(root, path[:-1], path, source, replace, path[-1]).type), metadata=schema.metadata)


def edit_siblings(
    schema: pa.Schema, parent: Path, source: str, edit: Callable[[list[pa.Field]], list[pa.Field]]
) -> pa.Schema:
    """The schema with the fields of the struct at `parent` (the top level when empty) replaced by `edit(fields)`."""
    root = pa.field("", pa.struct(list(schema)))
    return pa.schema(list(_descend(root, parent, parent, source, edit, None).type), metadata=schema.metadata)


def field_at(schema: pa.Schema, path: Path, source: str) -> pa.Field:
    fields: list[pa.Field] = []

    def look(field: pa.Field) -> pa.Field:
        fields.append(field)
        return field

    edit_field(schema, path, source, look)
    return fields[0]


def column_id_at(schema: pa.Schema, path: Path, source: str) -> int:
    """The id of the column at `path`. Every column of a source in the catalog has one, except map keys."""
    nodes = columns_of(schema)
    node = None
    for depth, part in enumerate(path):
        node = next((child for child in nodes if child.name == part), None)
        if node is None:
            raise _unknown(path[: depth + 1], [child.name for child in nodes], source)
        nodes = node.children
    if node is None or node.id is None:
        raise UnknownColumn(source=source, path=dotted(path), suggestion="")
    return node.id


def path_of(schema: pa.Schema, column_id: int) -> Path | None:
    """The current path of the column with this id."""
    stack: list[tuple[Column, Path]] = [(node, (node.name,)) for node in columns_of(schema)]
    while stack:
        node, path = stack.pop()
        if node.id == column_id:
            return path
        stack.extend((child, (*path, child.name)) for child in node.children)
    return None


def _descend(
    field: pa.Field,
    rest: Path,
    path: Path,
    source: str,
    edit: Callable[[list[pa.Field]], list[pa.Field]],
    leaf: str | None,
) -> pa.Field:
    """`field` with `edit` applied to the siblings below the path `rest`; `leaf` is the name that is looked up there."""
    kind = field.type
    depth = len(path) - len(rest) - (leaf is not None)
    if pa.types.is_struct(kind):
        fields = list(kind)
        if not rest:
            return field.with_type(pa.struct(edit(fields)))
        at = _index([child.name for child in fields], path, depth, source)
        inner = _descend(fields[at], rest[1:], path, source, edit, leaf)
        return field.with_type(pa.struct([*fields[:at], inner, *fields[at + 1 :]]))
    roles = ROLES["map"] if pa.types.is_map(kind) else ROLES["list"] if is_list(kind) else ()
    if not roles:
        raise UnknownColumn(source=source, path=dotted(path), suggestion=f" ({dotted(path[:depth])} is no struct)")
    if not rest and (leaf is None or leaf not in roles):
        inside = " and ".join(dotted((*path[:depth], role)) for role in roles)
        hint = f"what lies inside is addressed as {inside}; only fields of a struct can be added or dropped"
        raise UnknownColumn(source=source, path=f"inside {dotted(path)} by that name", suggestion=f" ({hint})")
    inners = [inner.with_name(role) for inner, role in zip(inner_fields(kind), roles, strict=True)]
    if not rest:
        return field.with_type(container(kind, edit(inners)))
    at = _index(list(roles), path, depth, source)
    inners[at] = _descend(inners[at], rest[1:], path, source, edit, leaf)
    return field.with_type(container(kind, inners))


def _index(names: list[str], path: Path, depth: int, source: str) -> int:
    if path[depth] in names:
        return names.index(path[depth])
    raise _unknown(path[: depth + 1], names, source)


def _unknown(path: Path, names: list[str], source: str) -> UnknownColumn:
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(path[-1].casefold() if path else "", folded, n=1)
    suggestion = f" (did you mean {dotted((*path[:-1], folded[close[0]]))}?)" if close else ""
    return UnknownColumn(source=source, path=dotted(path), suggestion=suggestion)
