"""The types of a state row as a tree: structs, arrays, maps and leaves by Spark's own names, from Spark's schema JSON.

Layouts are in `leaves`, rules in `compatibility`. Nothing here imports Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from laminae.errors import InvalidSchema
from laminae.state.leaves import is_leaf_name

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

COLLATIONS = "__COLLATIONS"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A type without parts: `integer`, `decimal(38,2)`, `interval day to second`; with its collation, if any."""

    name: str
    collation: str | None = None

    def __str__(self) -> str:
        return self.name if self.collation is None else f"{self.name} collate {self.collation}"


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def __str__(self) -> str:
        parts = (f"{field.name}: {field.type}{'' if field.nullable else ' NOT NULL'}" for field in self.fields)
        return f"struct<{', '.join(parts)}>"


@dataclass(frozen=True, slots=True)
class Array:
    element: Type
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: Type
    value: Type
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class UserDefined:
    """A user-defined type: the bytes are those of its SQL type, the name must stay."""

    name: str
    sql: Type

    def __str__(self) -> str:
        return f"udt<{self.name}>"


Type: TypeAlias = Leaf | Struct | Array | Map | UserDefined


def struct(*fields: tuple[str, Type] | Field) -> Struct:
    """A struct of nullable fields, given as (name, type), or of complete fields."""
    return Struct(tuple(field if isinstance(field, Field) else Field(*field) for field in fields))


def parse_schema(text: str) -> Struct:
    """The struct that one of Spark's schema files describes."""
    try:
        read = json.loads(text)
    except ValueError as problem:
        raise InvalidSchema(path="schema", problem=f"it is not JSON: {problem}") from None
    parsed = parse_type(read)
    if not isinstance(parsed, Struct):
        raise InvalidSchema(path="schema", problem=f"a row is a struct, this is {parsed}")
    return parsed


def parse_type(read: Json, path: str = "schema", collation: str | None = None) -> Type:
    """Parse a type in Spark's JSON form. Raises `InvalidSchema` with the path of an unknown part."""
    match read:
        case str(name) if is_leaf_name(name):
            return Leaf(name, collation)
        case {"type": "struct", "fields": list(fields)}:
            return Struct(tuple(_field(field, path) for field in fields))
        case {"type": "array", "elementType": element, "containsNull": bool(contains_null)}:
            return Array(parse_type(element, f"{path}.element", collation), contains_null)
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool(contains_null)}:
            key_type = parse_type(key, f"{path}.key", collation)
            return Map(key_type, parse_type(value, f"{path}.value", collation), contains_null)
        case {"type": "udt", "sqlType": sql, "pyClass": str(name)} | {
            "type": "udt",
            "sqlType": sql,
            "class": str(name),
        }:
            return UserDefined(name, parse_type(sql, path, collation))
    raise InvalidSchema(path=path, problem=f"{read!r} is not a supported type")


def _field(read: Json, path: str) -> Field:
    match read:
        case {"name": str(name), "type": inner, "nullable": bool(nullable), **rest}:
            return Field(name, parse_type(inner, f"{path}.{name}", _collation(rest.get("metadata"))), nullable)
    raise InvalidSchema(path=path, problem=f"{read!r} is not a field")


def _collation(metadata: object) -> str | None:
    """Spark writes collations to the field's metadata. Which part of a nested type has one does not matter here."""
    if not isinstance(metadata, dict) or not isinstance(collations := metadata.get(COLLATIONS), dict):
        return None
    return ", ".join(f"{where}={name}" for where, name in sorted(collations.items()))


def to_json(kind: Type) -> Json:
    """The type in Spark's JSON form: the inverse of `parse_type`."""
    match kind:
        case Leaf():
            return kind.name
        case Struct(fields):
            return {"type": "struct", "fields": [_field_json(field) for field in fields]}
        case Array(element, contains_null):
            return {"type": "array", "elementType": to_json(element), "containsNull": contains_null}
        case Map(key, value, contains_null):
            inner = {"keyType": to_json(key), "valueType": to_json(value)}
            return {"type": "map", **inner, "valueContainsNull": contains_null}
        case UserDefined(name, sql):
            return {"type": "udt", "pyClass": name, "sqlType": to_json(sql)}


def _field_json(field: Field) -> dict[str, Json]:
    metadata: dict[str, Json] = {}
    if isinstance(field.type, Leaf) and field.type.collation is not None:
        metadata[COLLATIONS] = {where: name for where, _, name in map(_collated, field.type.collation.split(", "))}
    return {"name": field.name, "type": to_json(field.type), "nullable": field.nullable, "metadata": metadata}


def _collated(part: str) -> tuple[str, str, str]:
    return part.partition("=")


def duplicates(names: Iterable[str]) -> tuple[str, ...]:
    """Names that occur more than once, in the order of their first occurrence."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return tuple(name for name, times in seen.items() if times > 1)


def physical(kind: Type) -> Type:
    """The type that determines the bytes: a user-defined type is stored as its SQL type."""
    return physical(kind.sql) if isinstance(kind, UserDefined) else kind
