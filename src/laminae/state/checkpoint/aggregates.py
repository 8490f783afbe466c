"""The aggregates of a query and whose buffer is whose: by expression, since a checkpoint itself has only shapes.

What the old query had is known from the query as it ran, or from the note that a migration leaves in a checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.state.types import Array, Field, Leaf, Struct, Type, parse_type, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTE_VERSION = 1
COLLECTING = ("CollectList", "CollectSet")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its SQL, the class that computes it, its buffers and what they start with, and what it reads."""

    text: str
    function: str
    buffers: tuple[Field, ...]
    inputs: tuple[Type, ...]
    initial: tuple[bytes, ...] | None = None

    @property
    def is_opaque(self) -> bool:
        """The buffer is an object of the function's own, as bytes."""
        return self.initial is None and any(field.type == Leaf("binary") for field in self.buffers)

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        return tuple((field.name, str(field.type)) for field in self.buffers)

    def seen_through(self) -> tuple[Field, ...]:
        """The buffers with their inside: collected elements are an array in a row of its own."""
        if not self.is_opaque or self.function not in COLLECTING:
            return self.buffers
        row = Struct((Field("elements", Array(self.inputs[0])),))
        return tuple(Field(field.name, row, field.nullable) for field in self.buffers)


@dataclass(frozen=True, slots=True)
class QueryNote:
    """The aggregates of each aggregating operator, by its id."""

    aggregates: tuple[tuple[int, tuple[Aggregate, ...]], ...]

    def of(self, operator: int) -> tuple[Aggregate, ...]:
        return dict(self.aggregates).get(operator, ())

    def to_bytes(self) -> bytes:
        found = {str(operator): [_to_json(one) for one in listed] for operator, listed in self.aggregates}
        return json.dumps({"version": NOTE_VERSION, "aggregates": found}, indent=2).encode()

    @classmethod
    def from_bytes(cls, read: bytes) -> QueryNote | None:
        """None for a note of a version that is not known: then the query as it ran must be given."""
        found = json.loads(read)
        if found.get("version") != NOTE_VERSION:
            return None
        listed = found["aggregates"].items()
        return cls(tuple((int(operator), tuple(map(_from_json, ones))) for operator, ones in listed))


def _to_json(one: Aggregate) -> dict[str, object]:
    buffers = to_json(Struct(one.buffers))
    return {
        "text": one.text,
        "function": one.function,
        "buffers": buffers,
        "inputs": [to_json(kind) for kind in one.inputs],
        "opaque": one.initial is None,
    }


def _from_json(read: dict[str, object]) -> Aggregate:
    buffers = parse_type(read["buffers"])  # type: ignore[arg-type]  # JSON that to_json wrote
    assert isinstance(buffers, Struct)
    inputs = tuple(parse_type(kind) for kind in read["inputs"])  # type: ignore[attr-defined]  # a list
    initial = None if read["opaque"] else ()
    return Aggregate(str(read["text"]), str(read["function"]), buffers.fields, inputs, initial)


def buffer_names(aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    return tuple(field.name for one in aggregates for field in one.buffers)


def texts(aggregates: Sequence[Aggregate]) -> str:
    return ", ".join(one.text for one in aggregates) or "none"
