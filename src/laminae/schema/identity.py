"""Column ids: numbers given once per source and never again, kept in field metadata.

Struct fields, list elements and map values have them too; a map's key is the map's own identity and has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import DEFAULT, EXTERNAL_ID, ID, columns_of
from laminae.schema.nesting import container, is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from laminae.schema.column import Columns


def assign_ids(schema: pa.Schema, next_id: int) -> tuple[pa.Schema, int]:
    """Give every column without an id the next free one. Returns the schema and the id after the last given."""
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
    """The schema with the external ids that `found` has for its columns; one that a column has already stays."""
    outside = dict(_outside_ids(columns_of(found)))

    def named(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        number = outside.get(metadata.get(ID, b""))
        return metadata if number is None else {EXTERNAL_ID: number, **metadata}

    return rewrite(schema, named) if outside else schema


def without_ids(field: pa.Field, only: Container[int] | None = None) -> pa.Field:
    """The field with no id (or none of `only`) here or below, so that old values cannot be taken for its own."""

    def forget(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if ID in metadata and (only is None or int(metadata[ID]) in only):
            del metadata[ID]
        return metadata

    return _rewrite_field(field, forget, named=True)


def with_default(field: pa.Field, default: str | None) -> pa.Field:
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != DEFAULT}
    if default is not None:
        metadata[DEFAULT] = default.encode()
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
