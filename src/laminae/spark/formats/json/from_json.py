"""The schema requested from `from_json` so that no value is lost, and the conversion to the declared types.

Measured on Spark 4.2: `from_json` wraps 200 around in a TINYINT, rounds to the scale of a DECIMAL, supports only text
as map keys, and returns a VARIANT null for a JSON null. Each of these is read as a wider type and narrowed here,
exactly or to NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.schema.types import MAX_PRECISION, is_variant
from laminae.spark.catalyst.expression import call, each, each_two, struct, when
from laminae.spark.catalyst.literals import default_sql, type_sql
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.temporal_text import date_of, instant_of, time_of, wall_clock_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.schema.column import Column, Path
    from laminae.spark.catalyst.expression import Expression

# Single quotes and bare NaN are not JSON, but Spark accepts both by default. With a fixed time zone a replay yields the
# same timestamps.
OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "timeZone": "UTC"}
EXISTS_DEFAULT = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")


def reading_field(node: Column, path: Path = ()) -> spark.StructField:
    """The field to read. Its metadata makes `from_json` fill an absent key with the default and keep explicit nulls."""
    here = (*path, node.name)
    metadata = None if node.default is None else dict.fromkeys(EXISTS_DEFAULT, default_sql(node, here))
    return spark.StructField(node.name, reading_type(node, here), True, metadata)


def reading_type(node: Column, path: Path) -> spark.DataType:
    if is_variant(node.type):
        return spark.VariantType()
    if node.kind == "struct":
        return spark.StructType([reading_field(child, path) for child in node.children])
    if node.kind == "map":
        return spark.MapType(spark.StringType(), reading_type(node.children[1], path))
    if node.children:
        return spark.ArrayType(reading_type(node.children[0], path))
    kind = spark_type(node.type)
    if isinstance(kind, spark.DecimalType):
        return spark.DecimalType(MAX_PRECISION, fraction_digits(kind))
    return spark.ShortType() if isinstance(kind, spark.ByteType) else kind


def fraction_digits(kind: spark.DecimalType) -> int:
    """The number of fraction digits that are read for a DECIMAL: all that its integer digits leave room for."""
    return MAX_PRECISION - (kind.precision - kind.scale)


def is_read_as_declared(node: Column) -> bool:
    """Whether `declared` would return its column unchanged."""
    if is_variant(node.type):
        return False
    if node.kind == "map" and not pa.types.is_string(node.children[0].type):
        return False
    if node.children:
        return all(is_read_as_declared(child) for child in node.children)
    kind = spark_type(node.type)
    return isinstance(kind, spark.StringType) or reading_type(node, ()) == kind


def declared(node: Column, read: Expression) -> Expression:
    """The value that was read, in the declared type; NULL if that type cannot represent it."""
    if is_read_as_declared(node):
        return read
    if is_variant(node.type):
        return when(~call("is_variant_null", read), read)
    if node.kind == "struct":
        inner = [(child.name, declared(child, read.field(child.name))) for child in node.children]
        return when(read.is_there(), struct(inner))
    if node.kind == "map":
        return _declared_map(node, read)
    if node.children:
        return each("transform", read, lambda item: declared(node.children[0], item))
    return read.try_cast(type_sql(spark_type(node.type)))


def _declared_map(node: Column, read: Expression) -> Expression:
    key, item = node.children
    values = each_two("transform_values", [read], lambda _, value: declared(item, value))
    kind = spark_type(key.type)
    if isinstance(kind, spark.StringType):
        return values
    # Spark raises on NULL keys and on duplicate keys: "1" and "01" are the same INT.
    keys = each("transform", call("map_keys", read), lambda k: _key_of(k, kind))
    key_count = call("size", call("array_distinct", call("array_compact", keys)))
    fits = key_count.compared("=", call("size", read))
    return when(fits, each_two("transform_keys", [values], lambda k, _: _key_of(k, kind)))


def _key_of(text: Expression, kind: spark.DataType) -> Expression:
    read = TEMPORAL_KEYS.get(type(kind))
    return text.try_cast(type_sql(kind)) if read is None else read(text)


TEMPORAL_KEYS: dict[type[spark.DataType], Callable[[Expression], Expression]] = {
    spark.DateType: date_of,
    spark.TimeType: time_of,
    spark.TimestampType: instant_of,
    spark.TimestampNTZType: wall_clock_of,
}
