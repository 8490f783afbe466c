"""Text of a CSV field to a typed value, exactly or not at all: one table, by type.

Spark's casts take 2024 for a date, a wall clock for today, 1e400 for infinity, and drop digits that a type lacks: each
row says what the text must look like, or how the value is held against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.schema.types import MAX_PRECISION, is_variant, sql_type
from laminae.spark.expression import Expression, call, literal, when
from laminae.spark.literals import type_sql
from laminae.spark.reading import fraction_digits
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_DATE = r"[+-]?\d{4,6}-\d{1,2}-\d{1,2}"
_CLOCK = r"[ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{1,6}0*)?)?"
_ZONE = r" ?(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2})?|[A-Za-z_]+/[A-Za-z_/]+)"
_INFINITY = r"[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_SHOWN = 40


def reads_text(kind: pa.DataType) -> bool:
    return isinstance(spark_type(kind), spark.StringType)


def typed(text: Expression, kind: pa.DataType) -> Expression:
    """The value, NULL for an empty field and where the text is not exactly one."""
    if reads_text(kind):
        return text
    wanted = spark_type(kind)
    convert = _variant if is_variant(kind) else CONVERSIONS.get(type(wanted), _cast)
    return convert(text, wanted)


def misread(text: Expression, kind: pa.DataType, name: str) -> Expression:
    """Why a field that gave no value is not empty; NULL when it is."""
    told = call("concat", literal(f"{name} is not one {sql_type(kind)}: "), call("left", text, literal(_SHOWN)))
    return when(call("trim", text).compared("<>", literal("")), told)


def _cast(text: Expression, wanted: spark.DataType) -> Expression:
    return text.try_cast(type_sql(wanted))


def _float(text: Expression, wanted: spark.DataType) -> Expression:
    # Java reads 1d and 1f as numbers, and what is too large as infinity. Most texts are neither, and need no pattern.
    made = _cast(text, wanted)
    is_suffixed = call("substring", text, literal(-1), literal(1)).is_one_of("dDfF")
    is_infinite = call("abs", made).compared("=", Expression("DOUBLE('Infinity')"))
    return when(~(is_suffixed | is_infinite) | _matches(text, _INFINITY), made)


def _decimal(text: Expression, wanted: spark.DataType) -> Expression:
    assert isinstance(wanted, spark.DecimalType)
    wide = text.try_cast(f"DECIMAL({MAX_PRECISION}, {fraction_digits(wanted)})")
    return when(wide.try_cast(type_sql(wanted)).compared("=", wide), wide.try_cast(type_sql(wanted)))


def _date(text: Expression, wanted: spark.DataType) -> Expression:
    return when(_matches(text, _DATE), _cast(text, wanted))


def _wall_clock(text: Expression, wanted: spark.DataType) -> Expression:
    return when(_matches(text, f"{_DATE}({_CLOCK})?"), _cast(text, wanted))


def _instant(text: Expression, wanted: spark.DataType) -> Expression:
    """Without a zone it is UTC, whatever the zone of the session."""
    utc = call("concat", _wall_clock(text, spark.TimestampNTZType()).cast("STRING"), literal("Z"))
    zoned = when(_matches(text, f"{_DATE}{_CLOCK}{_ZONE}"), _cast(text, wanted))
    return call("coalesce", _cast(utc, wanted), zoned)


def _binary(text: Expression, _: spark.DataType) -> Expression:
    return call("try_to_binary", call("trim", text), literal("base64"))


def _nested(_: Expression, wanted: spark.DataType) -> Expression:
    return Expression("NULL").cast(type_sql(wanted))


def _variant(text: Expression, _: spark.DataType) -> Expression:
    return call("try_parse_json", text)


CONVERSIONS: dict[type[spark.DataType], Callable[[Expression, spark.DataType], Expression]] = {
    spark.FloatType: _float,
    spark.DoubleType: _float,
    spark.DecimalType: _decimal,
    spark.DateType: _date,
    spark.TimestampType: _instant,
    spark.TimestampNTZType: _wall_clock,
    spark.BinaryType: _binary,
    spark.StructType: _nested,
    spark.ArrayType: _nested,
    spark.MapType: _nested,
}


def _matches(text: Expression, pattern: str) -> Expression:
    return call("rlike", text, literal(rf"^\s*{pattern}\s*$"))
