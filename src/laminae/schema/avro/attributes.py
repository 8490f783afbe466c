"""Attributes of one JSON object of a schema: the required ones, the aliases, and what is left over as properties.

Each reader refuses a wrong value with the path of the attribute. Nothing here looks into a nested type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from laminae.errors import InvalidAvroSchema
from laminae.schema.avro.names import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.schema.avro.nodes import JsonValue

_SCHEMA_ATTRIBUTES = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "items", "values")
)
_FIELD_ATTRIBUTES = frozenset(("type", "name", "doc", "aliases", "default", "order"))
_ORDERS = frozenset(("ascending", "descending", "ignore"))
_NO_ALIASES: list[str] = []


def text_of(node: Mapping[str, object], key: str, path: str) -> str:
    value = node.get(key)
    if isinstance(value, str):
        return value
    problem = f"{key} is missing" if value is None else f"{key} is text here, not {shown(value)}"
    raise InvalidAvroSchema(path=f"{path}/{key}", problem=problem)


def array_of(node: Mapping[str, object], key: str, path: str) -> list[object]:
    value = node.get(key)
    if isinstance(value, list):
        return value
    problem = f"{key} is missing" if value is None else f"{key} is an array, not {shown(value)}"
    raise InvalidAvroSchema(path=f"{path}/{key}", problem=problem)


def aliases_of(node: Mapping[str, object], path: str) -> list[str]:
    if "aliases" not in node:
        return _NO_ALIASES
    aliases = node["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise InvalidAvroSchema(path=f"{path}/aliases", problem="aliases are an array of text")
    return list(dict.fromkeys(aliases))


def check_order(field: Mapping[str, object], path: str) -> None:
    if "order" not in field:
        return
    order = field["order"]
    if not isinstance(order, str) or order.lower() not in _ORDERS:
        problem = f"{shown(order)} is not one of ascending, descending and ignore"
        raise InvalidAvroSchema(path=f"{path}/order", problem=problem)


def schema_props(node: Mapping[str, object]) -> dict[str, JsonValue]:
    return _without(node, _SCHEMA_ATTRIBUTES)


def field_props(node: Mapping[str, object]) -> dict[str, JsonValue]:
    return _without(node, _FIELD_ATTRIBUTES)


def _without(node: Mapping[str, object], known: frozenset[str]) -> dict[str, JsonValue]:
    if known.issuperset(node):
        return {}
    return {key: cast("JsonValue", value) for key, value in node.items() if key not in known}
