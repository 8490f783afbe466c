"""Typed default values as Spark SQL text, for literal columns and for the metadata from which `from_json` fills fields.

All user-written text is quoted; types and numbers are printed from values.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.schema.column import dotted
from laminae.schema.defaults import default_scalar
from laminae.schema.identifiers import quoted
from laminae.schema.nesting import is_list
from laminae.schema.types import quote_string
from laminae.spark.catalyst.types import spark_type

if TYPE_CHECKING:
    from laminae.schema.column import Column, Path


def text_sql(value: str) -> str:
    """A string literal for Spark's parser. `${` is escaped: Spark would substitute `${name}` from settings or env."""
    return quote_string(value).replace("${", "\\u0024{")


def default_sql(node: Column, path: Path) -> str:
    """SQL text of a column's write default, NULL when it has none. It always has the column's type."""
    return value_sql(node, path, node.default)


def value_sql(node: Column, path: Path, default: str | None) -> str:
    """SQL text of one of the column's defaults."""
    scalar = default_scalar(default, node.type, dotted(path))
    return literal_sql(scalar.as_py(), node.type)


# Values of every type pass through here, hence Any: they come from an Arrow scalar of exactly this type.
def literal_sql(value: Any, arrow: pa.DataType) -> str:
    """SQL text of one Python value of an Arrow type: a literal where Spark has one, else a cast from quoted text.

    Spark's tasks analyse every default of `from_json` that is not a literal again, 50 ms for each column.
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
    """A literal of exactly this type, None if Spark SQL has none."""
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
    """SQL text of a type, with quoted names and without NOT NULL: a cast of NULL to NOT NULL would fail the query."""
    match kind:
        case spark.StructType():
            return f"STRUCT<{', '.join(f'{quoted(f.name)}: {type_sql(f.dataType)}' for f in kind.fields)}>"
        case spark.MapType():
            return f"MAP<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
        case spark.ArrayType():
            return f"ARRAY<{type_sql(kind.elementType)}>"
    return kind.simpleString()
