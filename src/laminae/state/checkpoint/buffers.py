"""The values of an aggregating operator: which aggregate owns each old buffer, and how the buffers are migrated."""

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
    """Facts that the user asserts and laminae cannot verify."""

    same_aggregates: bool = False
    add_aggregates: bool = False


@dataclass(slots=True)
class Buffers:
    """One column family of an aggregating operator. `known` are the aggregates of the query that wrote it, if known."""

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
        """The number of fields before the buffers: grouping columns, in formats that store them in the value."""
        return len(self.new.fields) - len(buffer_names(self.aggregates))

    def side(self) -> Side:
        """Old and new values, including the inner structure of collections, and the mapping between them."""
        lead = self.lead
        if self.old.names[:lead] != self.new.names[:lead]:
            self.reasons.append(reason(Rule.KEY_CHANGED, self.path, self.old.names[:lead], self.new.names[:lead]))
            return Side(self.old, self.new)
        before = self._before()
        if before is None:
            return Side(self.old, self.new)
        old_fields, new_fields = list(self.old.fields[:lead]), list(self.new.fields[:lead])
        places = _places(before, lead)
        old_fields += [shown for old_aggregate in before for shown in old_aggregate.seen_through()]
        sources: list[Source] = [self._kept(old_fields[at], new_fields[at], at, "") for at in range(lead)]
        for aggregate, at in self._pairs(before, places):
            shown = aggregate.seen_through()
            new_fields += shown
            if at is None:
                sources += self._started(aggregate)
                continue
            sources += [
                self._kept(old_fields[at + step], shown[step], at + step, f".{aggregate.text}")
                for step in range(len(shown))
            ]
        self._same_functions(before)
        same = sources == [Kept(place) for place in range(len(old_fields))]
        mapping = None if same or self.reasons else StructMapping(tuple(sources))
        return Side(Struct(tuple(old_fields)), Struct(tuple(new_fields)), mapping)

    def _before(self) -> tuple[Aggregate, ...] | None:
        """The aggregates of the old rows: the known ones, otherwise the new ones if their buffer names are the same."""
        buffers = self.old.fields[self.lead :]
        if self.known is not None:
            return self.known
        if tuple(buffer.name for buffer in buffers) != buffer_names(self.aggregates):
            names = ", ".join(buffer.name for buffer in buffers)
            self.reasons.append(reason(Rule.AGGREGATES_CHANGED, self.path, f"buffers {names}", texts(self.aggregates)))
            return None
        assumed = _with_types(self.aggregates, buffers)
        if not self.assumed.same_aggregates:
            self._doubts(assumed)
        elif self._doubtful(assumed) or any(aggregate.is_opaque for aggregate in assumed):
            self.notes.append(
                f"{self.path}: assumed by --same-aggregates: these aggregates and their order are unchanged"
            )
        return assumed

    def _doubts(self, assumed: tuple[Aggregate, ...]) -> None:
        for alike in self._doubtful(assumed):
            self.reasons.append(reason(Rule.AGGREGATES_UNKNOWN, self.path, new=texts(alike)))
        for aggregate in assumed:
            if aggregate.is_opaque:
                self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{aggregate.text}", new=aggregate.text))

    def _doubtful(self, assumed: tuple[Aggregate, ...]) -> list[tuple[Aggregate, ...]]:
        shapes = dict.fromkeys(aggregate.shape for aggregate in assumed)
        groups = [tuple(aggregate for aggregate in assumed if aggregate.shape == shape) for shape in shapes]
        return [group for group in groups if len(group) > 1]

    def _pairs(self, before: tuple[Aggregate, ...], places: list[int]) -> list[tuple[Aggregate, int | None]]:
        """Each new aggregate with the index of its first old buffer, or None if it has no old buffers."""
        free = {aggregate.text: place for aggregate, place in zip(before, places, strict=True)}
        pairs = [(aggregate, free.pop(aggregate.text, None)) for aggregate in self.aggregates]
        fresh = [aggregate for aggregate, place in pairs if place is None]
        if free or (fresh and not self.assumed.add_aggregates):
            changed = reason(Rule.AGGREGATES_CHANGED, self.path, texts(before), texts(self.aggregates))
            self.reasons.append(changed)
        return pairs

    def _started(self, one: Aggregate) -> list[Source]:
        if one.initial is None:
            self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{one.text}", new=one.text))
            return []
        if self.assumed.add_aggregates:
            self.notes.append(f"{self.path}: {one.text} is new and starts empty, without earlier rows")
        return [Filled(row) for row in one.initial]

    def _same_functions(self, before: tuple[Aggregate, ...]) -> None:
        """Refuse opaque buffers that cannot be decoded, unless the input types of their function are unchanged."""
        old = {old_aggregate.text: old_aggregate for old_aggregate in before}
        for aggregate in self.aggregates:
            was = old.get(aggregate.text)
            if was is None or not aggregate.is_opaque or aggregate.seen_through() != aggregate.buffers:
                continue
            if was.inputs != aggregate.inputs:
                self.reasons.append(reason(Rule.BUFFER_OPAQUE, f"{self.path}.{aggregate.text}", new=aggregate.text))

    def _kept(self, old: Field, new: Field, place: int, inner: str) -> Kept:
        resolution = resolve(old.type, new.type, f"{self.path}{inner}.{new.name}")
        self.reasons += resolution.reasons
        return Kept(place, resolution.mapping)


def _places(aggregates: Sequence[Aggregate], lead: int) -> list[int]:
    places, at = [], lead
    for aggregate in aggregates:
        places.append(at)
        at += len(aggregate.buffers)
    return places


def _with_types(aggregates: tuple[Aggregate, ...], there: tuple[Field, ...]) -> tuple[Aggregate, ...]:
    """The new aggregates with the buffer types of the checkpoint."""
    typed, at = [], 0
    for aggregate in aggregates:
        end = at + len(aggregate.buffers)
        typed.append(Aggregate(aggregate.text, aggregate.function, there[at:end], aggregate.inputs, aggregate.initial))
        at = end
    return tuple(typed)


def fits(aggregates: tuple[Aggregate, ...], value: Struct) -> bool:
    """Whether these aggregates can have written such values: the last fields must be exactly their buffers."""
    buffers = [(column.name, str(column.type)) for column in value.fields]
    shapes = [pair for aggregate in aggregates for pair in aggregate.shape]
    return not shapes or buffers[len(buffers) - len(shapes) :] == shapes
