"""The state and outputs of a GROUP BY as values: accumulators named by an id, and outputs computed from them.

The id stands for the expression (the planner assigns equal expressions the same id), so adding an aggregate never moves
the state of another. COUNT(x), SUM(x) and AVG(x) share one accumulator; so do MIN, MAX and COUNT(DISTINCT x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from laminae.trace.spec import TraceSpec, stored
from laminae.views.operators import ADDED
from laminae.zset.wide_integers import LIMBS_OF_DECIMAL_SUM, LIMBS_OF_INT64_SUM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.trace.lookup import Wanted

SLOT, ROWS, GROUPS = "__laminae_slot", "_rows", "groups"
PARTS = 3
SHORT, HIGH = 28, 20
"""The longest decimals, in digits, that are summed in one part, and the number of digits in the lower part of longer
ones."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts values that are not NULL. Delta: `{id}_n`."""

    id: str


@dataclass(frozen=True, slots=True)
class IntegerTotal:
    """Count and 128-bit sum. Delta: `{id}_n`, and the sum as `{id}_hi` * 2**32 + `{id}_lo`."""

    id: str


@dataclass(frozen=True, slots=True)
class DecimalTotal:
    """Count and 192-bit sum of unscaled values. Delta: `{id}_n`, and `{id}_sum` as DECIMAL(38, scale).

    Values of more than `SHORT` digits come in two parts, so that the sum of an epoch does not overflow 38 digits: the
    unscaled value divided by 10**`HIGH`, as an integer in `{id}_high`, and the remainder.
    """

    id: str
    scale: int


@dataclass(frozen=True, slots=True)
class FloatTotal:
    """Count and exact sum. Delta: `{id}_n`; on rows of its slot `{id}_bin` and `{id}_p0` to `{id}_p2`.

    Each part of a double has 32 bits, so one bin can take 2**31 values of a group.
    """

    id: str


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The values with their weights. Delta: on rows of its slot `{id}_value`, the weight in `_weight`."""

    id: str
    type: pa.DataType
    keeps_min: bool = False
    keeps_max: bool = False


Accumulator = Tally | IntegerTotal | DecimalTotal | FloatTotal | ValueSet


class Function(Enum):
    COUNT_ROWS = "COUNT(*)"
    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    COUNT_DISTINCT = "COUNT(DISTINCT)"


@dataclass(frozen=True, slots=True)
class Output:
    """An output column of the view: its field, the function, and the accumulator it reads (None for COUNT(*))."""

    field: pa.Field
    function: Function
    accumulator: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """Rows grouped by `keys`. The slot of an accumulator is its index in `accumulators`, counted from 1.

    Without keys there is one group, and it is always shown: COUNT is 0 and SUM is NULL over no rows, as in SQL.
    """

    view: str
    keys: tuple[pa.Field, ...]
    accumulators: tuple[Accumulator, ...]
    outputs: tuple[Output, ...]

    @property
    def is_global(self) -> bool:
        return not self.keys

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The output columns of the view."""
        return (*self.keys, *(output.field for output in self.outputs))

    def accumulator(self, name: str) -> Accumulator:
        return next(accumulator for accumulator in self.accumulators if accumulator.id == name)


def state_fields(accumulator: Accumulator) -> tuple[pa.Field, ...]:
    """The columns of an accumulator in the row of a group.

    All are nullable, and NULL means that the accumulator has seen no values: so accumulators can be added to stored
    groups.
    """
    name, count = accumulator.id, pa.field(f"{accumulator.id}_n", pa.int64())
    match accumulator:
        case Tally():
            return (count,)
        case IntegerTotal():
            return (count, *_limbs(f"{name}_s", LIMBS_OF_INT64_SUM))
        case DecimalTotal(scale=scale):
            # The scale is part of the name: unscaled values of different scales must not be mixed.
            return (count, *_limbs(f"{name}_d{scale}_", LIMBS_OF_DECIMAL_SUM))
        case FloatTotal():
            return (count, pa.field(f"{name}_sum", pa.float64()))
        case ValueSet(keeps_min=keeps_min, keeps_max=keeps_max):
            extremes = [f"{name}_{end}" for end, keeps in (("min", keeps_min), ("max", keeps_max)) if keeps]
            counts = pa.field(f"{name}_distinct", pa.int64()), pa.field(f"{name}_negative", pa.int64())
            return (*counts, *(stored(pa.field(end, accumulator.type)) for end in extremes))
        case _:
            assert_never(accumulator)


def distinct(view: str, columns: Iterable[pa.Field]) -> Aggregate:
    """SELECT DISTINCT and UNION, as a GROUP BY over all columns without aggregates.

    A row is shown once while its weight is positive, so -U and +U cannot occur. The delta has `_hash` of the whole row,
    the columns, and `_weight` over all inputs.
    """
    return Aggregate(view, tuple(columns), (), ())


@lru_cache(maxsize=64)
def groups_trace(aggregate: Aggregate) -> TraceSpec:
    """One row for each group with any state."""
    accumulated = [field for accumulator in aggregate.accumulators for field in state_fields(accumulator)]
    trace = TraceSpec.replace(GROUPS, aggregate.keys, [pa.field(ROWS, pa.int64()), *accumulated])
    return replace(trace, late=tuple(name for name in trace.keys if name.startswith(ADDED)))


@lru_cache(maxsize=256)
def values_trace(aggregate: Aggregate, accumulator: FloatTotal | ValueSet) -> TraceSpec:
    """State that does not fit in the row of a group: the bins of exact float sums, and sets of values."""
    name, trace = accumulator.id, values_name(accumulator)
    match accumulator:
        case FloatTotal():
            parts = [pa.field(f"{name}_p{i}", pa.int64()) for i in range(PARTS)]
            return TraceSpec.sum(trace, aggregate.keys, [pa.field(f"{name}_bin", pa.int64())], parts)
        case ValueSet():
            return TraceSpec.sum(trace, aggregate.keys, [pa.field(f"{name}_value", accumulator.type)])
        case _:
            assert_never(accumulator)


def values_name(accumulator: Accumulator) -> str:
    return f"values:{accumulator.id}"


def key_text(aggregate: Aggregate, groups: Wanted, place: int) -> str:
    """The key of a group, formatted for error messages."""
    named = zip(aggregate.keys, groups.keys, strict=True)
    return ", ".join(f"{field.name} = {column[place].as_py()!r}" for field, column in named) or "(all rows)"


def _limbs(name: str, count: int) -> list[pa.Field]:
    return [pa.field(f"{name}{i}", pa.int64()) for i in range(count)]
