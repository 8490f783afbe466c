"""The accumulators of a GROUP BY, once the types of the arguments are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import QueryFailed
from laminae.schema.types import is_variant
from laminae.views.kernels.group_by.aggregates import (
    Accumulator,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    Function,
    IntegerTotal,
    Output,
    Tally,
    ValueSet,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from laminae.views.operators import Call, GroupBy

_UNEQUAL = "value with a MAP or VARIANT in it, which has no order: use to_json, or map_entries and array_sort"
COUNT, TOTAL, VALUES = "count", "total", "values"
_LETTERS = {COUNT: "c", TOTAL: "s", VALUES: "v"}
TOTALS, SETS = (Function.SUM, Function.AVG), (Function.MIN, Function.MAX, Function.COUNT_DISTINCT)


def aggregate_of(
    view: str, group: GroupBy, types: Mapping[str, pa.DataType], results: Mapping[str, pa.DataType]
) -> Aggregate:
    """The kernel's `Aggregate` for a GROUP BY, given the types of its input columns and of its results."""
    keys = tuple(pa.field(name, types[name]) for name in group.keys)
    accumulators = _accumulators(group.calls, types)
    outputs = tuple(
        Output(pa.field(call.name, results[call.name]), call.function, _behind(call, accumulators))
        for call in group.calls
    )
    aggregate = Aggregate(view, keys, tuple(accumulators.values()), outputs)
    refuse_unequal_keys(aggregate)
    return aggregate


def refuse_unequal_keys(aggregate: Aggregate) -> None:
    """Raise `QueryFailed` for keys and values whose type has no well-defined equality by parts."""
    for key in aggregate.keys:
        if has_no_order(key.type):
            raise QueryFailed(problem=f"groups of view {aggregate.view} are keyed by a {_UNEQUAL}")
    for accumulator in aggregate.accumulators:
        if isinstance(accumulator, ValueSet) and has_no_order(accumulator.type):
            raise QueryFailed(problem=f"MIN, MAX or COUNT(DISTINCT) of view {aggregate.view} is of a {_UNEQUAL}")


def has_no_order(kind: pa.DataType) -> bool:
    """Equal maps may store their entries in different orders, and equal variants may consist of different bytes."""
    if pa.types.is_map(kind) or is_variant(kind):
        return True
    parts = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return any(has_no_order(kind.field(place).type) for place in parts)


def parts_of(calls: Iterable[Call]) -> frozenset[tuple[str, str]]:
    """The state that these calls need, independent of types: (argument, part of an accumulator).

    COUNT(x) needs no state of its own next to SUM(x), and MIN needs a part that COUNT(DISTINCT x) alone does not keep.
    """
    functions: dict[str, set[Function]] = {}
    for call in calls:
        if call.argument is not None:
            functions.setdefault(call.argument, set()).add(call.function)
    parts: set[tuple[str, str]] = set()
    for argument, argument_functions in functions.items():
        if argument_functions.intersection(TOTALS):
            parts.add((argument, TOTAL))
        elif Function.COUNT in argument_functions:
            parts.add((argument, COUNT))
        if argument_functions.intersection(SETS):
            parts |= {
                (argument, VALUES),
                *((argument, function.value) for function in argument_functions & {Function.MIN, Function.MAX}),
            }
    return frozenset(parts)


def ids_of(parts: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The accumulators that these parts make up completely; a MIN added to a stored set of values is not one."""
    return frozenset(f"{argument}{_LETTERS[part]}" for argument, part in parts if part in _LETTERS)


def argument_of(accumulator: Accumulator) -> str:
    """The column that an accumulator reads."""
    return accumulator.id[:-1]


def _accumulators(calls: Sequence[Call], types: Mapping[str, pa.DataType]) -> dict[str, Accumulator]:
    """Accumulators by id: the argument's name and a letter for the kind, so that no kind reads the state of another."""
    accumulators: dict[str, Accumulator] = {}
    for argument in dict.fromkeys(call.argument for call in calls if call.argument is not None):
        kind = types[argument]
        functions = {call.function for call in calls if call.argument == argument}
        if functions.intersection(TOTALS):
            accumulators[f"{argument}s"] = _total(f"{argument}s", kind, functions)
        elif Function.COUNT in functions:
            accumulators[f"{argument}c"] = Tally(f"{argument}c")
        if functions.intersection(SETS):
            accumulators[f"{argument}v"] = ValueSet(
                f"{argument}v", kind, keeps_min=Function.MIN in functions, keeps_max=Function.MAX in functions
            )
    return accumulators


def _total(name: str, kind: pa.DataType, functions: Iterable[Function]) -> Accumulator:
    if pa.types.is_integer(kind):
        return IntegerTotal(name)
    if pa.types.is_decimal(kind):
        return DecimalTotal(name, kind.scale)
    if pa.types.is_floating(kind):
        return FloatTotal(name)
    wanted = ", ".join(sorted(function.value for function in functions))
    raise QueryFailed(problem=f"{wanted} of a value of type {kind} is not supported in a materialized view: use CAST")


def _behind(call: Call, kept: Mapping[str, Accumulator]) -> str | None:
    if call.argument is None:
        return None
    letters = "v" if call.function in SETS else "s" if call.function in TOTALS else "sc"
    return next(f"{call.argument}{letter}" for letter in letters if f"{call.argument}{letter}" in kept)
