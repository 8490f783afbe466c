"""The nested Arrow types seen alike: which fields lie inside one, and the same container around other fields."""

from __future__ import annotations

import pyarrow as pa

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
