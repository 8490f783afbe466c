"""What a GROUP BY keeps for its calls, once the types of their arguments are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import QueryFailed
from laminae.views.kernels.aggregates import (
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

COUNT, TOTAL, VALUES = "count", "total", "values"
_LETTERS = {COUNT: "c", TOTAL: "s", VALUES: "v"}
TOTALS, SETS = (Function.SUM, Function.AVG), (Function.MIN, Function.MAX, Function.COUNT_DISTINCT)


def aggregate_of(
    view: str, group: GroupBy, types: Mapping[str, pa.DataType], results: Mapping[str, pa.DataType]
) -> Aggregate:
    """The kernel's value of a GROUP BY over an input of these types, whose calls have these result types."""
    keys = tuple(pa.field(name, types[name]) for name in group.keys)
    kept = _accumulators(group.calls, types)
    outputs = tuple(
        Output(pa.field(call.name, results[call.name]), call.function, _behind(call, kept)) for call in group.calls
    )
    return Aggregate(view, keys, tuple(kept.values()), outputs)


def parts_of(calls: Iterable[Call]) -> frozenset[tuple[str, str]]:
    """What is kept for these calls, whatever the types: (argument, which part of an accumulator).

    COUNT(x) has no state of its own beside SUM(x), and MIN has one that COUNT(DISTINCT x) alone does not keep.
    """
    functions: dict[str, set[Function]] = {}
    for call in calls:
        if call.argument is not None:
            functions.setdefault(call.argument, set()).add(call.function)
    found: set[tuple[str, str]] = set()
    for argument, asked in functions.items():
        if asked.intersection(TOTALS):
            found.add((argument, TOTAL))
        elif Function.COUNT in asked:
            found.add((argument, COUNT))
        if asked.intersection(SETS):
            found |= {(argument, VALUES), *((argument, each.value) for each in asked & {Function.MIN, Function.MAX})}
    return frozenset(found)


def ids_of(parts: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The accumulators that these parts are the whole of: a MIN beside values that are kept is none."""
    return frozenset(f"{argument}{_LETTERS[part]}" for argument, part in parts if part in _LETTERS)


def argument_of(accumulator: Accumulator) -> str:
    """The column that an accumulator reads."""
    return accumulator.id[:-1]


def _accumulators(calls: Sequence[Call], types: Mapping[str, pa.DataType]) -> dict[str, Accumulator]:
    """By id: the argument's name and a letter for the kind, so that no kind takes another's state for its own."""
    kept: dict[str, Accumulator] = {}
    for argument in dict.fromkeys(call.argument for call in calls if call.argument is not None):
        kind = types[argument]
        functions = {call.function for call in calls if call.argument == argument}
        if functions.intersection(TOTALS):
            kept[f"{argument}s"] = _total(f"{argument}s", kind, functions)
        elif Function.COUNT in functions:
            kept[f"{argument}c"] = Tally(f"{argument}c")
        if functions.intersection(SETS):
            kept[f"{argument}v"] = ValueSet(
                f"{argument}v", kind, keeps_min=Function.MIN in functions, keeps_max=Function.MAX in functions
            )
    return kept


def _total(name: str, kind: pa.DataType, functions: Iterable[Function]) -> Accumulator:
    if pa.types.is_integer(kind):
        return IntegerTotal(name)
    if pa.types.is_decimal(kind):
        return DecimalTotal(name, kind.scale)
    if pa.types.is_floating(kind):
        return FloatTotal(name)
    wanted = ", ".join(sorted(each.value for each in functions))
    raise QueryFailed(problem=f"{wanted} of a value of type {kind} is not kept in a materialized view: use CAST")


def _behind(call: Call, kept: Mapping[str, Accumulator]) -> str | None:
    if call.argument is None:
        return None
    letters = "v" if call.function in SETS else "s" if call.function in TOTALS else "sc"
    return next(f"{call.argument}{letter}" for letter in letters if f"{call.argument}{letter}" in kept)
