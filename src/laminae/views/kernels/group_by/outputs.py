"""The output columns of a view, computed from accumulators. NULLs were skipped, so SUM over no values is NULL.

Overflow is checked only here and only for groups that are shown: within an epoch a sum may exceed the range of its
type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import AggregateOverflow
from laminae.views.kernels.group_by.aggregates import (
    ROWS,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    Function,
    IntegerTotal,
    Output,
    key_text,
    state_fields,
)
from laminae.zset.averages import decimal_averages
from laminae.zset.comparison import integers
from laminae.zset.exact_float import rounded
from laminae.zset.wide_conversion import fits_type, of_columns, to_array, to_ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.trace.lookup import Wanted
    from laminae.zset.wide_integers import Bools, WideInts

_COUNTS = {Function.COUNT: "n", Function.COUNT_DISTINCT: "distinct"}
_EXTREMES = {Function.MIN: "min", Function.MAX: "max"}


def outputs(aggregate: Aggregate, state: Mapping[str, pa.Array], shown: Bools, groups: Wanted) -> list[pa.Array]:
    """One array per output, aligned with the groups; values of groups that are not `shown` are undefined."""
    return [_output(aggregate, output, state, shown, groups) for output in aggregate.outputs]


def _output(
    aggregate: Aggregate, output: Output, state: Mapping[str, pa.Array], shown: Bools, groups: Wanted
) -> pa.Array:
    kind, name = output.field.type, output.accumulator
    if output.function is Function.COUNT_ROWS or name is None:
        return _as(_shown_count(state[ROWS]), kind)
    if output.function in _COUNTS:
        return _as(_shown_count(state[f"{name}_{_COUNTS[output.function]}"]), kind)
    if output.function in _EXTREMES:
        return _as(state[f"{name}_{_EXTREMES[output.function]}"], kind)
    accumulator, counts = aggregate.accumulator(name), integers(state[f"{name}_n"])
    seen = counts > 0
    if isinstance(accumulator, FloatTotal):
        total = np.asarray(state[f"{name}_sum"].fill_null(0.0))
        values = total if output.function is Function.SUM else total / np.where(seen, counts, 1)
        return _as(pa.array(values, mask=~seen), kind)
    if not isinstance(accumulator, IntegerTotal | DecimalTotal):
        raise TypeError(f"{output.function.value} needs a total, {name} is a {type(accumulator).__name__}")
    limbs = of_columns([integers(state[field.name]) for field in state_fields(accumulator)[1:]])
    if output.function is Function.AVG:
        divisors = np.where(seen, counts, 1)
        if isinstance(accumulator, DecimalTotal) and pa.types.is_decimal(kind):
            limbs = decimal_averages(limbs, divisors, kind.scale - accumulator.scale)
        else:
            exponents = np.zeros(len(limbs), dtype=np.int64)
            scale = 10.0**accumulator.scale if isinstance(accumulator, DecimalTotal) else 1.0
            return _as(pa.array(rounded(limbs, exponents) / divisors / scale, mask=~seen), kind)
    return _checked(aggregate, output, limbs, seen, shown, groups)


def _checked(
    aggregate: Aggregate, output: Output, values: WideInts, seen: Bools, shown: Bools, groups: Wanted
) -> pa.Array:
    """Convert to BIGINT or DECIMAL; raise `AggregateOverflow` for the first group whose value does not fit."""
    kind = output.field.type
    if len(wrong := np.flatnonzero(~fits_type(values, kind) & seen & shown)):
        place = int(wrong[0])
        value = to_ints(values.take(wrong[:1]))[0]
        raise AggregateOverflow(
            view=aggregate.view,
            aggregate=f"{output.function.value} in column {output.field.name}",
            key=key_text(aggregate, groups, place),
            value=_scaled(value, kind.scale) if pa.types.is_decimal(kind) else value,
            type=kind,
        )
    return _as(to_array(values, kind, seen), kind)


def _scaled(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if value < 0 else text


def _shown_count(counts: pa.Array) -> pa.Array:
    """Clamp to 0: deletes may arrive before their inserts, or without any, and then the stored weight is negative."""
    return pa.array(np.maximum(integers(counts), 0))


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
