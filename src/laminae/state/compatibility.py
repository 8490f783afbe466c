"""Whether rows of an old type can become rows of a new one: by name inside structs, or by position without names.

Pure: two types in, a mapping and reasons out. All reasons are found, not only the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from laminae.state.mapping import (
    Added,
    ElementMapping,
    Kept,
    Mapping,
    StructMapping,
    ValueMapping,
    create_field_mapping,
)
from laminae.state.rules import Reason, Rule, reason
from laminae.state.types import Array, Field, Leaf, Map, Struct, Type, UserDefined, duplicates

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(StrEnum):
    AS_IS = "compatible_as_is"
    AFTER_MIGRATION = "compatible_after_migration"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The verdict. `mapping` is None when bytes stay as they are, and when they cannot be carried over."""

    kind: Kind
    mapping: Mapping | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def is_compatible(self) -> bool:
        return self.kind is not Kind.INCOMPATIBLE

    @property
    def is_compatible_as_is(self) -> bool:
        return self.kind is Kind.AS_IS

    @property
    def is_compatible_after_migration(self) -> bool:
        return self.kind is Kind.AFTER_MIGRATION

    @property
    def is_incompatible(self) -> bool:
        return self.kind is Kind.INCOMPATIBLE


def compatible_as_is() -> Compatibility:
    return Compatibility(Kind.AS_IS)


def compatible_after_migration(mapping: Mapping) -> Compatibility:
    return Compatibility(Kind.AFTER_MIGRATION, mapping)


def incompatible(reasons: Sequence[Reason]) -> Compatibility:
    return Compatibility(Kind.INCOMPATIBLE, None, tuple(reasons))


def resolve(old: Type, new: Type, path: str = "row", *, by_name: bool = True) -> Compatibility:
    """The verdict on two types. Without names, fields are matched by position and may only be appended."""
    walk = _Walk(by_name)
    mapping = walk.match(old, new, path)
    if walk.reasons:
        return incompatible(walk.reasons)
    return compatible_as_is() if mapping is None else compatible_after_migration(mapping)


@dataclass(slots=True)
class _Walk:
    by_name: bool
    reasons: list[Reason] = field(default_factory=list)

    def match(self, old: Type, new: Type, path: str) -> Mapping | None:
        match old, new:
            case Struct(), Struct():
                return self._struct(old, new, path)
            case Array(before, _), Array(after, _):
                self._nullability(old.contains_null, new.contains_null, f"{path}.element")
                inside = self.match(before, after, f"{path}.element")
                return None if inside is None else ElementMapping(inside)
            case Map(), Map():
                return self._map(old, new, path)
            case (Leaf(), Leaf()) | (UserDefined(), UserDefined()) if old == new:
                return None
        changed = Rule.TYPE_CHANGED if self.by_name else Rule.POSITIONS_CHANGED
        self.reasons.append(reason(changed, path, old, new))
        return None

    def _map(self, old: Map, new: Map, path: str) -> Mapping | None:
        keys = _Walk(self.by_name)
        if keys.match(old.key, new.key, f"{path}.key") is not None or keys.reasons:
            self.reasons.append(reason(Rule.MAP_KEY_CHANGED, f"{path}.key", old.key, new.key))
        self._nullability(old.value_contains_null, new.value_contains_null, f"{path}.value")
        inside = self.match(old.value, new.value, f"{path}.value")
        return None if inside is None else ValueMapping(inside)

    def _struct(self, old: Struct, new: Struct, path: str) -> Mapping | None:
        by_name = self.by_name and self._has_own_names(old, new, path)
        old_names, new_names = (old.names, new.names) if by_name else (None, None)
        positions = create_field_mapping(old_names, new_names, len(old.fields), len(new.fields))
        self._removals(old, new, positions, path, by_name)
        sources = [
            self._added(field, path) if position < 0 else self._kept(old.fields[position], field, position, path)
            for field, position in zip(new.fields, positions, strict=True)
        ]
        same = [Kept(place) for place in range(len(old.fields))]
        return None if sources == same else StructMapping(tuple(sources))

    def _has_own_names(self, old: Struct, new: Struct, path: str) -> bool:
        repeated = duplicates(old.names) or duplicates(new.names)
        if repeated and old.names != new.names:
            self.reasons.append(reason(Rule.NAMES_REPEATED, path, repeated[0]))
        return not repeated

    def _removals(self, old: Struct, new: Struct, positions: tuple[int, ...], path: str, by_name: bool) -> None:
        gone = [place for place in range(len(old.fields)) if place not in positions]
        fresh = {place for place, position in enumerate(positions) if position < 0}
        for place in gone:
            removed = old.fields[place]
            taker = _rename_of(removed, place, new, fresh) if by_name else None
            rule = Rule.FIELD_REMOVED if taker is None else Rule.FIELD_RENAMED
            name = "" if taker is None else taker.name
            self.reasons.append(reason(rule, f"{path}.{removed.name}", removed.name, name))

    def _added(self, field: Field, path: str) -> Added:
        if not field.nullable:
            self.reasons.append(reason(Rule.REQUIRED_ADDED, f"{path}.{field.name}", new=field.name))
        return Added()

    def _kept(self, old: Field, new: Field, position: int, path: str) -> Kept:
        inner = f"{path}.{new.name}"
        self._nullability(old.nullable, new.nullable, inner)
        return Kept(position, self.match(old.type, new.type, inner))

    def _nullability(self, was_nullable: bool, is_nullable: bool, path: str) -> None:
        if was_nullable and not is_nullable:
            self.reasons.append(reason(Rule.BECAME_REQUIRED, path))


def _rename_of(removed: Field, place: int, new: Struct, fresh: set[int]) -> Field | None:
    """The new field that looks like the removed one under another name: in its place first, else the only one."""
    if place in fresh and new.fields[place].type == removed.type:
        return new.fields[place]
    alike = [new.fields[other] for other in fresh if new.fields[other].type == removed.type]
    return alike[0] if len(alike) == 1 else None
