"""A materialized view as a tree of operators over deltas: rows with a weight in, rows with a weight out.

Linear operators are one Spark SQL projection over the delta and keep no state; the others keep traces. These are plain
values: the packages above execute them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from laminae.schema.identifiers import quoted as quoted

if TYPE_CHECKING:
    from laminae.views.kernels.group_by.aggregates import Function

ADDED = "#"
"""Prefix of the operators' names for columns that were added after the view was written."""


@dataclass(frozen=True, slots=True)
class Named:
    """An expression in Spark SQL and the name of its column.

    `is_added`: the column comes from a `*` and did not exist when the view was written. It is not part of any
    operator's identity.
    """

    name: str
    sql: str
    is_added: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """The delta of a source or of another view, with these columns, under the names that the view was written with.

    `expressions` compute them from the relation as it is now; if empty, the names are the current ones.
    """

    relation: str
    columns: tuple[str, ...]
    expressions: tuple[str, ...] = ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The SELECT list over the relation, in Spark SQL."""
        expressions = self.expressions or tuple(map(quoted, self.columns))
        return tuple(f"{sql} AS {quoted(name)}" for sql, name in zip(expressions, self.columns, strict=True))


@dataclass(frozen=True, slots=True)
class Linear:
    """SELECT `columns` WHERE `condition`, row by row; the weight is passed through."""

    input: Operator
    expressions: tuple[Named, ...]
    condition: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(expression.name for expression in self.expressions)


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Every row of every input; the columns of the inputs match by position and are named as in the first."""

    inputs: tuple[Operator, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inputs[0].columns


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate over one column of the input (none for COUNT(*)), as column `name`.

    `id` stands for the expression, so that a replaced view keeps the state of unchanged aggregates.
    """

    name: str
    function: Function
    argument: str | None
    id: str


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Stateful. Its columns are the keys, named as in the input, followed by the calls."""

    input: Operator
    keys: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.keys, *(call.name for call in self.calls))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Stateful: each row once, while its weight is positive."""

    input: Operator

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns


class JoinKind(Enum):
    """Which rows a join adds to the matching pairs (LEFT, RIGHT, FULL), or which left rows it selects (SEMI, ANTI)."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def selects_left(self) -> bool:
        """Whether the result has the columns of the left side only."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """`left` = `right`, one column of each side. `is_null_safe`: `<=>`, under which NULL equals NULL."""

    left: str
    right: str
    is_null_safe: bool = False


MIRRORED = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The sign of a comparison after its operands are exchanged."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A residual condition `left` `sign` `right` over one column of each side; `sign` is =, <>, <, <=, >, >= or <=>."""

    left: str
    sign: str
    right: str


@dataclass(frozen=True, slots=True)
class Join:
    """Stateful: an equi-join. No name occurs in the columns of both sides."""

    left: Operator
    right: Operator
    kind: JoinKind
    keys: tuple[JoinKey, ...]
    residual: tuple[Comparison, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns if self.kind.selects_left else (*self.left.columns, *self.right.columns)


Operator = Read | Linear | UnionAll | GroupBy | Distinct | Join
Stateful = GroupBy | Distinct | Join


@dataclass(frozen=True, slots=True)
class EventWindow:
    """The event-time window of a row: the columns of the view that hold its start and end."""

    start: str
    end: str


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """`key` are the columns that identify a row, None if there are none; `window` is set if the view groups by one.

    `ids` identify the columns, by position, and do not change when a column that comes from a `*` is renamed.
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
        case Join(left=left, right=right):
            return left, right
        case _:
            return (operator.input,)


def reads_in(operator: Operator) -> tuple[Read, ...]:
    """Every read of a relation, in order, with repetitions."""
    if isinstance(operator, Read):
        return (operator,)
    return tuple(read for inner in inputs_of(operator) for read in reads_in(inner))


def stateless_reads(operator: Operator) -> tuple[Read, ...]:
    """The relations whose rows reach the view through stateless operators only: its state does not contain them."""
    if isinstance(operator, Read):
        return (operator,)
    if isinstance(operator, Stateful):
        return ()
    return tuple(read for inner in inputs_of(operator) for read in stateless_reads(inner))
