"""The parts that several statements share, as the parser produces them before they become part of a statement.

They have their offset in the text, so that the error of a duplicate clause points at its second occurrence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from laminae.sql.syntax_errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from laminae.sql.statements import ColumnDef, Interval, Scalar


B = TypeVar("B")


class Typed(NamedTuple):
    """A type with its nesting depth: Arrow recurses over types, so it must not get one that is too deep."""

    type: pa.DataType
    depth: int


class Value(NamedTuple):
    """A literal's value in a box, because None is a value (NULL), and lark passes None for an absent part, too."""

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
    clauses_by_kind: dict[str, Clause] = {}
    for clause in clauses:
        if clause.kind in clauses_by_kind:
            raise Fault(clause.offset, f"{clause.kind} is given twice", f"expected {clause.kind} at most once")
        clauses_by_kind[clause.kind] = clause
    return clauses_by_kind


def value_of(given: dict[str, Clause], kind: str) -> object:
    clause = given.get(kind)
    return None if clause is None else clause.value


def takes_children(builder: type[B]) -> type[B]:
    """Lets lark call each rule's method with its list of children, and the method name them.

    lark's `v_args` does the same with three more calls per rule, and rules take half of the time of a parse.
    """
    for name, method in list(vars(builder).items()):
        if name.islower() and not name.startswith("_"):
            setattr(builder, name, _spread(method))
    return builder


def _spread(method: Callable[..., object]) -> Callable[[object, list[object]], object]:
    return lambda builder, children: method(builder, *children)
