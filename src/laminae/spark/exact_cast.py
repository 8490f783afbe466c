"""Casts that keep the value or give NULL, judged as Arrow's checked casts judge them: a table of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    Test = Callable[[pa.DataType], bool]

# Integers beyond these have neighbours that are the same float; Arrow refuses them by range, not one by one.
WHOLE_FLOATS = {pa.float16(): 2**11, pa.float32(): 2**24, pa.float64(): 2**53}


def exact_cast(source: Column, old: pa.DataType, new: pa.DataType) -> Column:
    """`source` as the new type; NULL where the value has no exact form in it."""
    kind = spark_type(new)
    if pa.types.is_null(new) or pa.types.is_null(old):
        return F.lit(None).cast(kind)
    if pa.types.is_timestamp(new):
        return _on_the_unit(source.cast(kind), old, new)
    if spark_type(old) == kind:
        return source
    made = source.try_cast(kind)
    return next((check(source, made, old, new) for ours, theirs, check in CHECKS if ours(old) and theirs(new)), made)


def _comes_back(source: Column, made: Column, old: pa.DataType, _: pa.DataType) -> Column:
    return F.when(made.try_cast(spark_type(old)) == source, made)


def _in_float_range(source: Column, made: Column, _: pa.DataType, new: pa.DataType) -> Column:
    limit = WHOLE_FLOATS[new]
    return F.when(source.between(-limit, limit), made)


def _on_the_unit(made: Column, old: pa.DataType, new: pa.DataType) -> Column:
    if old.unit == new.unit or new.unit not in UNITS:
        return made
    return F.when(F.date_trunc(UNITS[new.unit], made) == made, made)


UNITS = {"s": "SECOND", "ms": "MILLISECOND"}

# Floats among themselves, and decimals that become floats, are rounded by Arrow without a word: no row here.
CHECKS: tuple[tuple[Test, Test, Callable[[Column, Column, pa.DataType, pa.DataType], Column]], ...] = (
    (pa.types.is_integer, pa.types.is_floating, _in_float_range),
    (pa.types.is_floating, pa.types.is_integer, _comes_back),
    (pa.types.is_decimal, pa.types.is_integer, _comes_back),
    (pa.types.is_decimal, pa.types.is_decimal, _comes_back),
)
