"""Small builders for schemas, so that a test shows only what it is about."""

from __future__ import annotations

import pyarrow as pa

TYPES = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "bool": pa.bool_(), "date": pa.date32(),
    "large_string": pa.large_string(), "large_binary": pa.large_binary(),
}  # fmt: skip


def col(
    name: str,
    kind: str | pa.DataType = "string",
    *,
    id: int | None = None,  # noqa: A002
    null: bool = True,
    default: str | None = None,
    aliases: str | None = None,
    external: int | None = None,
) -> pa.Field:
    """A field. `kind` is a short type name or an Arrow type; `default` and `aliases` are JSON text."""
    found = {}
    if id is not None:
        found["laminae:id"] = str(id)
    if default is not None:
        found["laminae:default"] = default
    if aliases is not None:
        found["laminae:aliases"] = aliases
    if external is not None:
        found["PARQUET:field_id"] = str(external)
    return pa.field(name, TYPES.get(kind, kind) if isinstance(kind, str) else kind, null, found or None)


def schema(*fields: pa.Field) -> pa.Schema:
    return pa.schema(list(fields))


def struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


def list_of(element: pa.Field) -> pa.DataType:
    return pa.list_(element)
