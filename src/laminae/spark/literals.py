"""Typed default values as Spark SQL text: for literal columns, and for the metadata that `from_json` fills from.

Everything that a person wrote is quoted; types and numbers are printed from values.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.schema.column import dotted
from laminae.schema.defaults import default_scalar
from laminae.schema.nesting import is_list
from laminae.schema.types import quote_identifier, quote_string
from laminae.spark.types import spark_type

if TYPE_CHECKING:
    from laminae.schema.column import Column, Path


def text_sql(value: str) -> str:
    """A string literal in a text that Spark parses: before that, it puts settings and the environment for `${name}`."""
    return quote_string(value).replace("${", "\\u0024{")


def default_sql(node: Column, path: Path) -> str:
    """SQL text of a column's default, NULL when it has none; always of the column's own type."""
    scalar = default_scalar(node.default, node.type, dotted(path))
    return literal_sql(scalar.as_py(), node.type)


# Values of every type pass through here, hence Any: they come from an Arrow scalar of exactly this type.
def literal_sql(value: Any, arrow: pa.DataType) -> str:
    """SQL text of one Python value of an Arrow type. Text is quoted, everything else is cast from quoted text.

    Plain values are literals: Spark's tasks analyse any other default of `from_json` anew, 50 ms for each column.
    """
    kind = spark_type(arrow)
    if value is None:
        return _cast("NULL", kind)
    if pa.types.is_struct(arrow):
        inner = [part for f in arrow for part in (text_sql(f.name), literal_sql(value[f.name], f.type))]
        return _cast(f"named_struct({', '.join(inner)})", kind)
    if pa.types.is_map(arrow):
        pairs = [part for k, v in value for part in (literal_sql(k, arrow.key_type), literal_sql(v, arrow.item_type))]
        return _cast(f"map({', '.join(pairs)})", kind)
    if is_list(arrow):
        return _cast(f"array({', '.join(literal_sql(item, arrow.value_type) for item in value)})", kind)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, timedelta):
        return f"INTERVAL '{_day_time(value)}' DAY TO SECOND"
    return _plain(value, kind) or _cast(text_sql(_text(value)), kind)


def _plain(value: Any, kind: spark.DataType) -> str | None:
    """A literal of exactly this type, None where there is none."""
    match kind:
        case spark.StringType():
            return text_sql(str(value))
        case spark.BooleanType():
            return str(value).upper()
        case spark.ByteType() | spark.ShortType() | spark.IntegerType() | spark.LongType():
            return f"{value}{_SUFFIXES[type(kind)]}"
        case spark.DoubleType() if math.isfinite(value):
            return f"{value!r}D"
        case spark.DateType():
            return f"DATE'{value.isoformat()}'"
    return None


_SUFFIXES = {spark.ByteType: "Y", spark.ShortType: "S", spark.IntegerType: "", spark.LongType: "L"}


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat(sep=" ")
    return str(value)


def _day_time(value: timedelta) -> str:
    sign, length = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(length.seconds, 60)
    return f"{sign}{length.days} {minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{length.microseconds:06}"


def _cast(text: str, kind: spark.DataType) -> str:
    return f"CAST({text} AS {type_sql(kind)})"


def type_sql(kind: spark.DataType) -> str:
    """SQL text of a type with its names quoted and no NOT NULL: a cast to that would end the query at a NULL."""
    match kind:
        case spark.StructType():
            return f"STRUCT<{', '.join(f'{quote_identifier(f.name)}: {type_sql(f.dataType)}' for f in kind.fields)}>"
        case spark.MapType():
            return f"MAP<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
        case spark.ArrayType():
            return f"ARRAY<{type_sql(kind.elementType)}>"
    return kind.simpleString()
