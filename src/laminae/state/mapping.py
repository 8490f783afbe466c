"""How rows of one schema become rows of another: for each new field the old one it is taken from, nested.

A mapping is a value: the report prints it and the codec compiles it. None stands for bytes that stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from laminae.state.types import Array, Map, Struct, Type, physical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Kept:
    """The old field at `position`, its inside mapped where it changes."""

    position: int
    inside: Mapping | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """A field that old rows do not have: NULL."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A buffer that old rows do not have: `row` is an encoded row of this one field, its value at the start."""

    row: bytes


Source: TypeAlias = Kept | Added | Filled


@dataclass(frozen=True, slots=True)
class StructMapping:
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class ElementMapping:
    """Every element of an array."""

    element: Mapping


@dataclass(frozen=True, slots=True)
class ValueMapping:
    """Every value of a map; its keys stay."""

    value: Mapping


Mapping: TypeAlias = StructMapping | ElementMapping | ValueMapping


def create_field_mapping(
    old_names: Sequence[str] | None, new_names: Sequence[str] | None, old_count: int, new_count: int
) -> tuple[int, ...]:
    """`result[new position]` is the old position, or -1 for a field that is new.

    By name when both sides have names and none comes twice, by position otherwise.
    """
    if old_names is None or new_names is None or _repeats(old_names) or _repeats(new_names):
        return tuple(place if place < old_count else -1 for place in range(new_count))
    places = {name: place for place, name in enumerate(old_names)}
    return tuple(places.get(name, -1) for name in new_names)


def _repeats(names: Sequence[str]) -> bool:
    return len(set(names)) != len(names)


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field of the new schema in a report: where it is, and what it is made of."""

    path: str
    origin: str


def field_lines(old: Type, new: Type, mapping: Mapping | None, path: str) -> Iterator[FieldLine]:
    """Every field that the mapping moves, adds or keeps, from the outside in."""
    old, new = physical(old), physical(new)
    match mapping, old, new:
        case None, _, Struct(fields):
            yield from (FieldLine(f"{path}.{field.name}", "kept") for field in fields)
        case StructMapping(sources), Struct(before), Struct(after):
            for place, (source, field) in enumerate(zip(sources, after, strict=True)):
                yield FieldLine(f"{path}.{field.name}", _origin(source, place, before))
                if isinstance(source, Kept) and source.inside is not None:
                    inner = before[source.position].type
                    yield from field_lines(inner, field.type, source.inside, f"{path}.{field.name}")
        case ElementMapping(inside), Array(before_element, _), Array(after_element, _):
            yield from field_lines(before_element, after_element, inside, f"{path}.element")
        case ValueMapping(inside), Map(_, before_value, _), Map(_, after_value, _):
            yield from field_lines(before_value, after_value, inside, f"{path}.value")


def _origin(source: Source, place: int, before: tuple[object, ...]) -> str:
    match source:
        case Kept(position, inside):
            moved = "kept" if position == place else f"moved from position {position + 1}"
            return moved if inside is None else f"{moved}, changes inside"
        case Added():
            return "new, NULL"
        case Filled():
            return "new, starts empty"
