"""The parsed form of an Avro schema: frozen values, with each named type kept once and used by its full name.

A use is a name and not an object, so recursive schemas stay finite values that compare, hash and pickle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class AvroKind(StrEnum):
    """The primitive types, by the names the specification gives them."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class AvroPrimitive:
    kind: AvroKind
    # Every attribute the type itself does not use, logicalType, precision and scale among them.
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return str(self.kind)


@dataclass(frozen=True, slots=True)
class AvroReference:
    """A use of a named type; also where the JSON has the definition itself."""

    name: str

    @property
    def branch_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AvroField:
    name: str
    type: AvroType
    has_default: bool = False
    default: JsonValue = field(default=None, hash=False)
    aliases: tuple[str, ...] = ()
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class AvroRecord:
    name: str
    fields: tuple[AvroField, ...]
    aliases: tuple[str, ...] = ()  # full names
    is_error: bool = False
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AvroEnum:
    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AvroFixed:
    name: str
    size: int
    aliases: tuple[str, ...] = ()
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AvroArray:
    items: AvroType
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return "array"


@dataclass(frozen=True, slots=True)
class AvroMap:
    values: AvroType
    props: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    @property
    def branch_name(self) -> str:
        return "map"


@dataclass(frozen=True, slots=True)
class AvroUnion:
    branches: tuple[AvroType, ...]

    @property
    def branch_name(self) -> str:
        return "union"


AvroNamed: TypeAlias = AvroRecord | AvroEnum | AvroFixed
AvroDefinite: TypeAlias = AvroNamed | AvroPrimitive | AvroArray | AvroMap | AvroUnion
AvroType: TypeAlias = AvroDefinite | AvroReference


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A whole schema: its root, and every named type in it by full name."""

    root: AvroDefinite
    names: Mapping[str, AvroNamed] = field(hash=False)

    def resolve(self, node: AvroType) -> AvroDefinite:
        """The type itself where `node` only refers to it; the same object for every use of one name."""
        if isinstance(node, AvroReference):
            return self.names[node.name]
        return node
