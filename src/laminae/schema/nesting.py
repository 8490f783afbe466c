"""The nested Arrow types seen alike: which fields lie inside one, and the same container around other fields."""

from __future__ import annotations

import pyarrow as pa

from laminae.schema.types import is_variant

LISTS = (
    (pa.types.is_list, "list", pa.list_),
    (pa.types.is_large_list, "large_list", pa.large_list),
    (pa.types.is_list_view, "list_view", pa.list_view),
    (pa.types.is_large_list_view, "large_list_view", pa.large_list_view),
)


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) or any(test(kind) for test, _, _ in LISTS)


def list_kind(kind: pa.DataType) -> str:
    """The name of a list type without its element."""
    if pa.types.is_fixed_size_list(kind):
        return f"fixed_size_list[{kind.list_size}]"
    return next(name for test, name, _ in LISTS if test(kind))


def inner_fields(kind: pa.DataType) -> list[pa.Field]:
    """The element of a list, or the key and value of a map."""
    return [kind.key_field, kind.item_field] if pa.types.is_map(kind) else [kind.value_field]


def container(like: pa.DataType, inner: list[pa.Field]) -> pa.DataType:
    """A list or map of the same kind as `like` around the given fields."""
    if pa.types.is_map(like):
        return pa.map_(inner[0], inner[1], keys_sorted=like.keys_sorted)
    if pa.types.is_fixed_size_list(like):
        return pa.list_(inner[0], like.list_size)
    return next(make(inner[0]) for test, _, make in LISTS if test(like))


def nullable_inside(kind: pa.DataType) -> pa.DataType:
    """The same type with every field inside it nullable, but for the keys of maps and the two parts of a VARIANT.

    A NOT NULL field inside a struct that is NULL has no value, and pyarrow refuses to cast it. Spark derives NOT NULL
    from each plan anew, so it must not be part of what state is known by.
    """
    if is_variant(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(nullable_inside(field.type)).with_nullable(True) for field in kind])
    if pa.types.is_map(kind):
        key, value = kind.key_field, kind.item_field
        inner = [key.with_type(nullable_inside(key.type)), value.with_type(nullable_inside(value.type))]
        return container(kind, [inner[0], inner[1].with_nullable(True)])
    if is_list(kind):
        element = kind.value_field
        return container(kind, [element.with_type(nullable_inside(element.type)).with_nullable(True)])
    return kind
