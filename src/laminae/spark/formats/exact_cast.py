"""Casts that keep the value or return NULL, by the same rules as Arrow's checked casts: a table of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.spark.catalyst.expression import Expression, call, literal, when
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[pa.DataType], bool]

# Outside these limits neighbouring integers become the same float. Arrow rejects them by range, not individually.
WHOLE_FLOATS = {pa.float16(): 2**11, pa.float32(): 2**24, pa.float64(): 2**53}
# Arrow rejects all values of an integer type unless the decimal has room for all digits of the type.
DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
UNITS = {"s": "SECOND", "ms": "MILLISECOND"}


def exact_cast(source: Expression, old: pa.DataType, new: pa.DataType) -> Expression:
    """`source` as the new type; NULL if that type cannot represent the value exactly."""
    kind = type_sql(spark_type(new))
    if pa.types.is_null(new):
        return Expression("NULL")
    if pa.types.is_null(old):
        return source.cast(kind)
    if pa.types.is_timestamp(new) and pa.types.is_timestamp(old):
        return _on_the_unit(source, old, new)
    if spark_type(old) == spark_type(new):
        return source
    converted = source.try_cast(kind)
    return next(
        (check(source, converted, old, new) for ours, theirs, check in CHECKS if ours(old) and theirs(new)), converted
    )


def _comes_back(source: Expression, made: Expression, old: pa.DataType, _: pa.DataType) -> Expression:
    return when(made.try_cast(type_sql(spark_type(old))).compared("=", source), made)


def _in_float_range(source: Expression, made: Expression, _: pa.DataType, new: pa.DataType) -> Expression:
    limit = WHOLE_FLOATS[new]
    return when(source.is_between(-limit, limit), made)


def _with_room(_: Expression, made: Expression, old: pa.DataType, new: pa.DataType) -> Expression:
    has_room = new.precision - new.scale >= DIGITS[old.bit_width]
    return made if has_room else Expression("NULL").cast(type_sql(spark_type(new)))


def _on_the_unit(source: Expression, old: pa.DataType, new: pa.DataType) -> Expression:
    if old.unit == new.unit or new.unit not in UNITS:
        return source
    return when(call("date_trunc", literal(UNITS[new.unit]), source).compared("=", source), source)


# Arrow silently rounds float to float and decimal to float, so these have no row here.
CHECKS: tuple[tuple[Test, Test, Callable[[Expression, Expression, pa.DataType, pa.DataType], Expression]], ...] = (
    (pa.types.is_integer, pa.types.is_floating, _in_float_range),
    (pa.types.is_integer, pa.types.is_decimal, _with_room),
    (pa.types.is_floating, pa.types.is_integer, _comes_back),
    (pa.types.is_decimal, pa.types.is_integer, _comes_back),
    (pa.types.is_decimal, pa.types.is_decimal, _comes_back),
)
