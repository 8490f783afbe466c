"""The parts that several statements share, as they come out of the parser before a statement takes them.

They carry the offset where they were written, so that a clause given twice is told at its second place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from laminae.ddl.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from laminae.ddl.statements import ColumnDef, Interval, Scalar


B = TypeVar("B")


class Typed(NamedTuple):
    """A type with its nesting depth: Arrow itself recurses, and must not be handed a type that deep."""

    type: pa.DataType
    depth: int


class Value(NamedTuple):
    """A literal's value in a box, because None is a value (NULL) and also what lark gives for an absent part."""

    value: Scalar | tuple[Scalar, ...]


class Span(NamedTuple):
    interval: Interval
    offset: int


class Clause(NamedTuple):
    kind: str
    offset: int
    value: object = None


class Column(NamedTuple):
    definition: ColumnDef
    key: Clause | None


def by_kind(clauses: Iterable[Clause]) -> dict[str, Clause]:
    """The clauses by kind, each given at most once."""
    found: dict[str, Clause] = {}
    for clause in clauses:
        if clause.kind in found:
            raise Fault(clause.offset, f"{clause.kind} is given twice", f"expected {clause.kind} at most once")
        found[clause.kind] = clause
    return found


def value_of(given: dict[str, Clause], kind: str) -> object:
    clause = given.get(kind)
    return None if clause is None else clause.value


def takes_children(builder: type[B]) -> type[B]:
    """Lets lark call each rule's method with its list of children, and the method name them.

    lark's `v_args` does the same in three calls more for each rule, and rules are half of the time of a parse.
    """
    for name, method in list(vars(builder).items()):
        if name.islower() and not name.startswith("_"):
            setattr(builder, name, _spread(method))
    return builder


def _spread(method: Callable[..., object]) -> Callable[[object, list[object]], object]:
    return lambda builder, children: method(builder, *children)
