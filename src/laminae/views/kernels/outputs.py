"""The columns a view shows, computed from accumulators. NULLs were skipped, so SUM of nothing is NULL.

A value that does not fit its type is an error only here, for groups that are shown: within an epoch sums may pass it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import AggregateOverflow
from laminae.trace.values import integers
from laminae.views.kernels.aggregates import (
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
from laminae.views.kernels.averages import decimal_averages
from laminae.zset.exact_float import rounded
from laminae.zset.wide_values import fits_decimal, fits_int64, of_columns, to_decimals, to_int64, to_ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.trace.lookup import Wanted
    from laminae.zset.wide import Bools, WideInts

_COUNTS = {Function.COUNT: "n", Function.COUNT_DISTINCT: "distinct"}
_EXTREMES = {Function.MIN: "min", Function.MAX: "max"}


def outputs(aggregate: Aggregate, state: Mapping[str, pa.Array], shown: Bools, groups: Wanted) -> list[pa.Array]:
    """One array for each output, aligned with the groups; what is not `shown` holds anything."""
    return [_output(aggregate, output, state, shown, groups) for output in aggregate.outputs]


def _output(
    aggregate: Aggregate, output: Output, state: Mapping[str, pa.Array], shown: Bools, groups: Wanted
) -> pa.Array:
    kind, name = output.field.type, output.accumulator
    if output.function is Function.COUNT_ROWS or name is None:
        return _as(state[ROWS].fill_null(0), kind)
    if output.function in _COUNTS:
        return _as(state[f"{name}_{_COUNTS[output.function]}"].fill_null(0), kind)
    if output.function in _EXTREMES:
        return _as(state[f"{name}_{_EXTREMES[output.function]}"], kind)
    found, counts = aggregate.accumulator(name), integers(state[f"{name}_n"])
    seen = counts > 0
    if isinstance(found, FloatTotal):
        total = np.asarray(state[f"{name}_sum"].fill_null(0.0))
        values = total if output.function is Function.SUM else total / np.where(seen, counts, 1)
        return _as(pa.array(values, mask=~seen), kind)
    if not isinstance(found, IntegerTotal | DecimalTotal):
        raise TypeError(f"{output.function.value} needs a total, {name} is a {type(found).__name__}")
    limbs = of_columns([integers(state[field.name]) for field in state_fields(found)[1:]])
    if output.function is Function.AVG:
        divisors = np.where(seen, counts, 1)
        if isinstance(found, DecimalTotal) and pa.types.is_decimal(kind):
            limbs = decimal_averages(limbs, divisors, kind.scale - found.scale)
        else:
            exponents = np.zeros(len(limbs), dtype=np.int64)
            scale = 10.0**found.scale if isinstance(found, DecimalTotal) else 1.0
            return _as(pa.array(rounded(limbs, exponents) / divisors / scale, mask=~seen), kind)
    return _checked(aggregate, output, limbs, seen, shown, groups)


def _checked(
    aggregate: Aggregate, output: Output, values: WideInts, seen: Bools, shown: Bools, groups: Wanted
) -> pa.Array:
    """As BIGINT or DECIMAL, or `AggregateOverflow` for the first group whose value does not fit."""
    kind = output.field.type
    is_decimal = pa.types.is_decimal(kind)
    fits = fits_decimal(values, kind.precision) if is_decimal else fits_int64(values)
    if len(wrong := np.flatnonzero(~fits & seen & shown)):
        place = int(wrong[0])
        value = to_ints(values.take(wrong[:1]))[0]
        raise AggregateOverflow(
            view=aggregate.view,
            aggregate=f"{output.function.value} in column {output.field.name}",
            key=key_text(aggregate, groups, place),
            value=_scaled(value, kind.scale) if is_decimal else value,
            type=kind,
        )
    if is_decimal:
        return to_decimals(values, kind, seen)
    return _as(pa.array(to_int64(values), mask=~seen), kind)


def _scaled(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if value < 0 else text


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
