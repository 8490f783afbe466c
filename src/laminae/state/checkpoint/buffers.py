"""The values of an aggregating operator: whose the old buffers are, by expression, and how they are carried over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.state.checkpoint.aggregates import Aggregate, buffer_names, texts
from laminae.state.checkpoint.report import Side
from laminae.state.compatibility import resolve
from laminae.state.mapping import Filled, Kept, Source, StructMapping
from laminae.state.rules import Reason, Rule, reason
from laminae.state.types import Field, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a person vouches for."""

    same_aggregates: bool = False
    add_aggregates: bool = False


@dataclass(slots=True)
class Buffers:
    """One family of an aggregating operator. `known` are the aggregates of the query that wrote it, where known."""

    path: str
    old: Struct
    new: Struct
    aggregates: tuple[Aggregate, ...]
    known: tuple[Aggregate, ...] | None
    assumed: Assumptions
    reasons: list[Reason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def lead(self) -> int:
        """Fields before the buffers: grouping columns, in formats that keep them in the value."""
        return len(self.new.fields) - len(buffer_names(self.aggregates))

    def side(self) -> Side:
        """Old and new values with the inside of collections shown, and the mapping between them."""
        lead = self.lead
        if self.old.names[:lead] != self.new.names[:lead]:
            self.reasons.append(reason(Rule.KEY_CHANGED, self.path, self.old.names[:lead], self.new.names[:lead]))
            return Side(self.old, self.new)
        before = self._before()
        if before is None:
            return Side(self.old, self.new)
        old_fields, new_fields = list(self.old.fields[:lead]), list(self.new.fields[:lead])
        places = _places(before, lead)
        old_fields += [shown for one in before for shown in one.seen_through()]
        sources: list[Source] = [self._kept(old_fields[at], new_fields[at], at, "") for at in range(lead)]
        for one, at in self._pairs(before, places):
            shown = one.seen_through()
            new_fields += shown
            if at is None:
                sources += self._started(one)
                continue
            sources += [
                self._kept(old_fields[at + step], shown[step], at + step, f".{one.text}") for step in range(len(shown))
            ]
        self._same_functions(before)
        same = sources == [Kept(place) for place in range(len(old_fields))]
        mapping = None if same or self.reasons else StructMapping(tuple(sources))
        return Side(Struct(tuple(old_fields)), Struct(tuple(new_fields)), mapping)

    def _before(self) -> tuple[Aggregate, ...] | None:
        """The aggregates of the old rows: those that are known, else the new ones where nothing speaks against it."""
        there = self.old.fields[self.lead :]
        if self.known is not None:
            return self.known
        if tuple(one.name for one in there) != buffer_names(self.aggregates):
            names = ", ".join(one.name for one in there)
            self.reasons.append(reason(Rule.AGGREGATES_CHANGED, self.path, f"buffers {names}", texts(self.aggregates)))
            return None
        assumed = _with_types(self.aggregates, there)
        if not self.assumed.same_aggregates:
            self._doubts(assumed)
        elif self._doubtful(assumed) or any(one.is_opaque for one in assumed):
            self.notes.append(f"{self.path}: you vouch that these aggregates and their order have not changed")
        return assumed

    def _doubts(self, assumed: tuple[Aggregate, ...]) -> None:
        for alike in self._doubtful(assumed):
            self.reasons.append(reason(Rule.AGGREGATES_UNKNOWN, self.path, new=texts(alike)))
        for one in assumed:
            if one.is_opaque:
                self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{one.text}", new=one.text))

    def _doubtful(self, assumed: tuple[Aggregate, ...]) -> list[tuple[Aggregate, ...]]:
        shapes = dict.fromkeys(one.shape for one in assumed)
        groups = [tuple(one for one in assumed if one.shape == shape) for shape in shapes]
        return [group for group in groups if len(group) > 1]

    def _pairs(self, before: tuple[Aggregate, ...], places: list[int]) -> list[tuple[Aggregate, int | None]]:
        """Each new aggregate with the place of its old buffers; None for one that has none."""
        free = {one.text: place for one, place in zip(before, places, strict=True)}
        pairs = [(one, free.pop(one.text, None)) for one in self.aggregates]
        fresh = [one for one, place in pairs if place is None]
        if free or (fresh and not self.assumed.add_aggregates):
            changed = reason(Rule.AGGREGATES_CHANGED, self.path, texts(before), texts(self.aggregates))
            self.reasons.append(changed)
        return pairs

    def _started(self, one: Aggregate) -> list[Source]:
        if one.initial is None:
            self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{one.text}", new=one.text))
            return []
        if self.assumed.add_aggregates:
            self.notes.append(f"{self.path}: {one.text} is new and starts empty: it knows nothing of earlier rows")
        return [Filled(row) for row in one.initial]

    def _same_functions(self, before: tuple[Aggregate, ...]) -> None:
        """Opaque buffers that cannot be looked into stay as they are only if the function reads what it read."""
        old = {one.text: one for one in before}
        for one in self.aggregates:
            was = old.get(one.text)
            if was is None or not one.is_opaque or one.seen_through() != one.buffers:
                continue
            if was.inputs != one.inputs:
                self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{one.text}", new=one.text))

    def _kept(self, old: Field, new: Field, place: int, inner: str) -> Kept:
        found = resolve(old.type, new.type, f"{self.path}{inner}.{new.name}")
        self.reasons += found.reasons
        return Kept(place, found.mapping)


def _places(aggregates: Sequence[Aggregate], lead: int) -> list[int]:
    places, at = [], lead
    for one in aggregates:
        places.append(at)
        at += len(one.buffers)
    return places


def _with_types(aggregates: tuple[Aggregate, ...], there: tuple[Field, ...]) -> tuple[Aggregate, ...]:
    """The new aggregates with the buffers that the checkpoint has for them."""
    found, at = [], 0
    for one in aggregates:
        end = at + len(one.buffers)
        found.append(Aggregate(one.text, one.function, there[at:end], one.inputs, one.initial))
        at = end
    return tuple(found)


def fits(aggregates: tuple[Aggregate, ...], value: Struct) -> bool:
    """Whether these aggregates can have written such values: the same buffers, at the end."""
    buffers = [(one.name, str(one.type)) for one in value.fields]
    shapes = [pair for one in aggregates for pair in one.shape]
    return not shapes or buffers[len(buffers) - len(shapes) :] == shapes
