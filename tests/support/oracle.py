"""The projection, row by row and by hand: slow, obvious, and written without looking at the real one."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


class DoesNotFitError(Exception):
    """The row has no place in the new schema."""


def project_rows(old: pa.Schema, new: pa.Schema, rows: list[Row]) -> list[Row]:
    return [_struct(list(old), list(new), row) for row in rows]


def _struct(old: list[pa.Field], new: list[pa.Field], row: Row) -> Row:
    result: Row = {}
    for field in new:
        match = _origin(old, field, new)
        if match is None or not _related(match.type, field.type):
            value = _default(field)
        else:
            value = _value(match.type, field.type, row[match.name])
        if value is None and not field.nullable:
            raise DoesNotFitError(field.name)
        result[field.name] = value
    return result


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(b"laminae:id")


def _origin(old: list[pa.Field], field: pa.Field, new: list[pa.Field]) -> pa.Field | None:
    for other in old:
        if _id(other) is not None and _id(other) == _id(field):
            return other
    for other in old:
        taken = _id(other) is not None and any(_id(sibling) == _id(other) for sibling in new)
        if other.name == field.name and not taken and (_id(other) is None or _id(field) is None):
            return other
    return None


def _family(kind: pa.DataType) -> str:
    types = pa.types
    for test, family in (
        (types.is_integer, "number"), (types.is_floating, "number"), (types.is_decimal, "number"),
        (types.is_string, "text"), (types.is_large_string, "text"),
        (types.is_binary, "bytes"), (types.is_large_binary, "bytes"), (types.is_date, "date"),
        (types.is_struct, "struct"), (types.is_map, "map"), (types.is_list, "list"), (types.is_large_list, "list"),
    ):  # fmt: skip
        if test(kind):
            return family
    if types.is_timestamp(kind):
        return "zoned" if kind.tz else "local"
    if types.is_fixed_size_list(kind):
        return f"fixed {kind.list_size}"
    return str(kind)


def _related(old: pa.DataType, new: pa.DataType) -> bool:
    return pa.types.is_null(old) or pa.types.is_null(new) or _family(old) == _family(new)


def _value(old: pa.DataType, new: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_null(new):
        raise DoesNotFitError(str(value))
    if pa.types.is_struct(new):
        return _struct(list(old), list(new), value)
    if pa.types.is_map(new):
        return [(_value(old.key_type, new.key_type, k), _item(old.item_field, new.item_field, v)) for k, v in value]
    if hasattr(new, "value_field"):
        return [_item(old.value_field, new.value_field, item) for item in value]
    try:
        return pa.scalar(value, old).cast(new).as_py()
    except pa.ArrowInvalid:
        raise DoesNotFitError(str(value)) from None


def _item(old: pa.Field, new: pa.Field, value: Any) -> Any:
    result = _value(old.type, new.type, value) if _related(old.type, new.type) else None
    if result is None and not new.nullable:
        raise DoesNotFitError(new.name)
    return result


def _default(field: pa.Field) -> Any:
    text = (field.metadata or {}).get(b"laminae:default")
    value = None if text is None else json.loads(text)
    if value is not None and pa.types.is_decimal(field.type):
        return Decimal(value)
    if value is not None and pa.types.is_date(field.type):
        return date.fromisoformat(value)
    return value
