"""A materialized view as a tree of operators over deltas: rows with a weight in, rows with a weight out.

Linear operators are one Spark SQL projection over the delta and keep no state; the others keep traces. Values alone:
how they run is for the packages above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.views.kernels.aggregates import Function

ADDED = "#"
"""Begins the names that operators have for columns which came after the view was written."""


@dataclass(frozen=True, slots=True)
class Named:
    """An expression in Spark's SQL and the name of its column.

    `is_added`: a `*` that was written before the column was there. It belongs to no operator's identity.
    """

    name: str
    sql: str
    is_added: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """The delta of a source or of another view, with these columns: under the names that the view was written with.

    `expressions` compute them from the relation as it is now; without any, the names are those it has.
    """

    relation: str
    columns: tuple[str, ...]
    expressions: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """What to select from the relation, in Spark's SQL."""
        found = self.expressions or tuple(map(quoted, self.columns))
        return tuple(f"{sql} AS {quoted(name)}" for sql, name in zip(found, self.columns, strict=True))


@dataclass(frozen=True, slots=True)
class Linear:
    """SELECT `columns` WHERE `condition`, row by row; the weight comes along."""

    input: Operator
    expressions: tuple[Named, ...]
    condition: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.expressions)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Every row of every input; the inputs have the same columns by place, named as in the first."""

    inputs: tuple[Operator, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate over one column of the input (none for COUNT(*)), as column `name`.

    `id` stands for the expression, so that a view that is replaced keeps the state of what is the same.
    """

    name: str
    function: Function
    argument: str | None
    id: str


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Keeps a trace. Its columns are the keys, named as in the input, and then the calls."""

    input: Operator
    keys: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *(call.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Keeps a trace: each row once, while its weight is positive."""

    input: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns


Operator = Read | Linear | UnionAll | GroupBy | Distinct


@dataclass(frozen=True, slots=True)
class EventWindow:
    """Where the event time of a row is in the view: the columns that hold the ends of its window."""

    start: str
    end: str


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """`key` are the columns that identify a row, None when nothing does; `window` is there if it groups by one.

    `ids` stand for the columns, by place, and stay when a column that a `*` shows is renamed below.
    """

    root: Operator
    key: tuple[str, ...] | None
    window: EventWindow | None
    ids: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.root.columns


def inputs_of(operator: Operator) -> tuple[Operator, ...]:
    match operator:
        case Read():
            return ()
        case UnionAll(inputs=inputs):
            return inputs
        case _:
            return (operator.input,)


def reads_in(operator: Operator) -> tuple[Read, ...]:
    """Every relation that is read, each as often as it is, in order."""
    if isinstance(operator, Read):
        return (operator,)
    return tuple(read for inner in inputs_of(operator) for read in reads_in(inner))


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
