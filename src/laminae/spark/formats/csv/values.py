"""Converts the text of a CSV field to a typed value, exactly or to NULL: a table of conversions by type.

Spark's casts read 1e400 as infinity and drop digits that the type cannot hold, so each conversion tests the form of the
text or compares the value with it. Dates and times are read by `formats.temporal_text`, as in JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.schema.types import MAX_PRECISION, is_variant, sql_type
from laminae.spark.catalyst.expression import Expression, call, literal, when
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.json.from_json import fraction_digits
from laminae.spark.formats.temporal_text import date_of, instant_of, matches, time_of, wall_clock_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

_INFINITY = r"[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_SHOWN = 40
REASON = " is not a valid "
# Longest text with a negative exponent for which comparison with a DOUBLE shows whether digits were lost.
LONGEST_SMALL = 20


def reads_text(kind: pa.DataType) -> bool:
    return isinstance(spark_type(kind), spark.StringType)


def typed(text: Expression, kind: pa.DataType) -> Expression:
    """The value; NULL for an empty field, or if the text is not exactly a value of the type."""
    if reads_text(kind):
        return text
    wanted = spark_type(kind)
    convert = _variant if is_variant(kind) else CONVERSIONS.get(type(wanted), _cast)
    return convert(text, wanted)


def misread(text: Expression, kind: pa.DataType, name: str) -> Expression:
    """The error of a field that could not be converted; NULL if the field is empty."""
    message = call("concat", literal(f"{name}{REASON}{sql_type(kind)}: "), call("left", text, literal(_SHOWN)))
    return when(call("trim", text).compared("<>", literal("")), message)


def _cast(text: Expression, wanted: spark.DataType) -> Expression:
    return text.try_cast(type_sql(wanted))


def _float(text: Expression, wanted: spark.DataType) -> Expression:
    # Java reads 1d and 1f as numbers, and numbers that are too large as infinity. Most texts are neither and need no
    # pattern match.
    number = _cast(text, wanted)
    is_suffixed = call("substring", text, literal(-1), literal(1)).is_one_of("dDfF")
    is_infinite = call("abs", number).compared("=", Expression("DOUBLE('Infinity')"))
    return when(~(is_suffixed | is_infinite) | matches(text, _INFINITY), number)


def _decimal(text: Expression, wanted: spark.DataType) -> Expression:
    assert isinstance(wanted, spark.DecimalType)
    digits = fraction_digits(wanted)
    number, wide = text.try_cast(type_sql(wanted)), text.try_cast(f"DECIMAL({MAX_PRECISION}, {digits})")
    # The wide cast also rounds: digits after its last one, and digits that an exponent moves there.
    is_beyond = call("length", text).compared(">", digits) & call("rlike", text, literal(rf"\.\d{{{digits}}}\d*[1-9]"))
    is_moved = call("contains", call("upper", text), literal("E-")) & (
        call("length", text).compared(">", LONGEST_SMALL)
        | ~wide.cast("DOUBLE").compared("<=>", text.try_cast("DOUBLE"))
    )
    return when(wide.compared("=", number) & ~(is_beyond | is_moved), number)


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
    spark.DateType: lambda text, _: date_of(text),
    spark.TimeType: lambda text, _: time_of(text),
    spark.TimestampType: lambda text, _: instant_of(text),
    spark.TimestampNTZType: lambda text, _: wall_clock_of(text),
    spark.BinaryType: _binary,
    spark.StructType: _nested,
    spark.ArrayType: _nested,
    spark.MapType: _nested,
}
