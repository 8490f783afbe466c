"""Column ids: numbers that a source assigns once and never reuses, stored in field metadata.

Struct fields, list elements and map values have them too; a map's key is the map's own identity and has none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import DEFAULT, EXTERNAL_ID, ID, INITIAL_DEFAULT, NULL_DEFAULT, column, columns_of
from laminae.schema.nesting import container, is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from laminae.schema.column import Columns

IDS = b"laminae:view-columns"
"""In the metadata of a segment's schema: the names of its columns, each with the id that its relation knows it by.

The columns of a view are known by the name that its text gave them, or by the id of the source's column that a `*` has
gained since: that tells a renamed column from one that was dropped and one that was added."""


def assign_ids(schema: pa.Schema, next_id: int) -> tuple[pa.Schema, int]:
    """Give every column without an id the next free one. Returns the schema and the next free id."""
    counter = next_id

    def numbered(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        nonlocal counter
        if ID not in metadata:
            metadata[ID] = str(counter).encode()
            counter += 1
        return metadata

    return rewrite(schema, numbered), counter


def highest_id(schema: pa.Schema) -> int:
    """The largest column id in use, 0 when there is none."""
    return _highest(columns_of(schema))


def with_outside_ids(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """The schema with the external ids that `found` has for its columns; existing external ids stay."""
    outside = dict(_outside_ids(columns_of(found)))

    def named(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        number = outside.get(metadata.get(ID, b""))
        return metadata if number is None else {EXTERNAL_ID: number, **metadata}

    return rewrite(schema, named) if outside else schema


def without_ids(field: pa.Field, only: Container[int] | None = None) -> pa.Field:
    """The field with no id (or none of `only`) here or below, so that old values are not read as its own."""

    def forget(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if ID in metadata and (only is None or int(metadata[ID]) in only):
            del metadata[ID]
        return metadata

    return _rewrite_field(field, forget, named=True)


def with_default(field: pa.Field, default: str | None) -> pa.Field:
    """The field of a new column: its initial default is this one, too."""
    return _with_metadata(field, default_metadata(field.metadata or {}, default, default))


def with_write_default(field: pa.Field, default: str | None) -> pa.Field:
    """A column with another default for records from now on. What older records have in it stays."""
    node = column(field)
    return _with_metadata(field, default_metadata(field.metadata or {}, default, node.initial_default))


def with_initial_defaults(schema: pa.Schema) -> pa.Schema:
    """The schema with the initial default of each column as its write default."""

    def initial(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        text = metadata.get(INITIAL_DEFAULT, metadata.get(DEFAULT))
        default = None if text is None or text == NULL_DEFAULT.encode() else text.decode()
        return default_metadata(metadata, default, default)

    return rewrite(schema, initial)


def default_metadata(
    metadata: Mapping[bytes, bytes], default: str | None, initial_default: str | None
) -> dict[bytes, bytes]:
    """Metadata with both defaults in canonical form: the initial default is written only if it differs."""
    entries = {name: value for name, value in metadata.items() if name not in (DEFAULT, INITIAL_DEFAULT)}
    if default is not None:
        entries[DEFAULT] = default.encode()
    if initial_default != default:
        entries[INITIAL_DEFAULT] = (NULL_DEFAULT if initial_default is None else initial_default).encode()
    return entries


def _with_metadata(field: pa.Field, metadata: dict[bytes, bytes]) -> pa.Field:
    return field.with_metadata(metadata) if metadata else field.remove_metadata()


def rewrite(schema: pa.Schema, edit: Callable[[dict[bytes, bytes]], dict[bytes, bytes]]) -> pa.Schema:
    """The schema with `edit` applied to the metadata of every column that has an identity, parents first."""
    fields = [_rewrite_field(field, edit, named=True) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _rewrite_field(
    field: pa.Field, edit: Callable[[dict[bytes, bytes]], dict[bytes, bytes]], *, named: bool
) -> pa.Field:
    metadata = dict(field.metadata or {})
    if named:
        metadata = edit(metadata)
    return pa.field(field.name, _rewrite_type(field.type, edit), field.nullable, metadata or None)


def _rewrite_type(kind: pa.DataType, edit: Callable[[dict[bytes, bytes]], dict[bytes, bytes]]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_rewrite_field(field, edit, named=True) for field in kind])
    if pa.types.is_map(kind):
        key = _rewrite_field(kind.key_field, edit, named=False)
        return container(kind, [key, _rewrite_field(kind.item_field, edit, named=True)])
    if is_list(kind):
        return container(kind, [_rewrite_field(kind.value_field, edit, named=True)])
    return kind


def _outside_ids(columns: Columns) -> Iterator[tuple[bytes, bytes]]:
    for node in columns:
        if node.id is not None and node.external_id is not None:
            yield str(node.id).encode(), node.external_id.encode()
        yield from _outside_ids(node.children)


def _highest(columns: Columns) -> int:
    return max((max(node.id or 0, _highest(node.children)) for node in columns), default=0)


def with_column_ids(schema: pa.Schema, ids: Mapping[str, str]) -> pa.Schema:
    """The schema with the identity of its columns, which is by name."""
    return schema.with_metadata({**(schema.metadata or {}), IDS: json.dumps(dict(ids)).encode()})


def column_ids(schema: pa.Schema) -> dict[str, str]:
    """The identity of each column by its name; a column that has none is left out."""
    known = (schema.metadata or {}).get(IDS)
    if known is not None:
        names = set(schema.names)
        return {str(name): str(identity) for name, identity in json.loads(known).items() if name in names}
    fields = ((field.name, (field.metadata or {}).get(ID)) for field in schema)
    return {name: str(identity, "ascii") for name, identity in fields if identity is not None}
