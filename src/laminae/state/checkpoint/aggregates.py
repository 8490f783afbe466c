"""The aggregates of a query and their buffers, matched by expression: a checkpoint itself stores only buffer types.

The aggregates of the old query are known from that query, or from the note that a migration writes to a checkpoint.
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
    """One aggregate: its SQL, the class that computes it, its buffers and their initial values, and its input types."""

    text: str
    function: str
    buffers: tuple[Field, ...]
    inputs: tuple[Type, ...]
    initial: tuple[bytes, ...] | None = None

    @property
    def is_opaque(self) -> bool:
        """Whether the buffer is a serialized object in the function's own format."""
        return self.initial is None and any(field.type == Leaf("binary") for field in self.buffers)

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        return tuple((field.name, str(field.type)) for field in self.buffers)

    def seen_through(self) -> tuple[Field, ...]:
        """The buffers with their inner structure: collected elements are stored as an array in a separate row."""
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
        aggregates = {
            str(operator): [_to_json(aggregate) for aggregate in listed] for operator, listed in self.aggregates
        }
        return json.dumps({"version": NOTE_VERSION, "aggregates": aggregates}, indent=2).encode()

    @classmethod
    def from_bytes(cls, read: bytes) -> QueryNote | None:
        """None if the version of the note is unknown: the caller must then supply the old query."""
        note = json.loads(read)
        if note.get("version") != NOTE_VERSION:
            return None
        listed = note["aggregates"].items()
        return cls(tuple((int(operator), tuple(map(_from_json, entries))) for operator, entries in listed))


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
    return tuple(field.name for aggregate in aggregates for field in aggregate.buffers)


def texts(aggregates: Sequence[Aggregate]) -> str:
    return ", ".join(aggregate.text for aggregate in aggregates) or "none"
