"""Arrow types as Spark's and back: one table of leaves, one walk over nested types.

A type that Spark does not have becomes the next one that holds all its values; the way back gives the Arrow type that
`schema/types.py` has for the SQL name. Ids and defaults are not carried: they mean nothing to Spark.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.errors import InvalidSchema
from laminae.schema.nesting import is_list
from laminae.schema.types import COMMENT_KEY, MAX_PRECISION, VARIANT, array_type, is_variant, map_type, struct_field

if TYPE_CHECKING:
    from collections.abc import Callable

# The first test that holds decides.
LEAVES: tuple[tuple[Callable[[pa.DataType], bool], spark.DataType], ...] = (
    (pa.types.is_boolean, spark.BooleanType()),
    (pa.types.is_int8, spark.ByteType()),
    (pa.types.is_int16, spark.ShortType()),
    (pa.types.is_int32, spark.IntegerType()),
    (pa.types.is_int64, spark.LongType()),
    (pa.types.is_uint8, spark.ShortType()),
    (pa.types.is_uint16, spark.IntegerType()),
    (pa.types.is_uint32, spark.LongType()),
    (pa.types.is_uint64, spark.DecimalType(20, 0)),
    (pa.types.is_float16, spark.FloatType()),
    (pa.types.is_float32, spark.FloatType()),
    (pa.types.is_float64, spark.DoubleType()),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), spark.StringType()),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t), spark.BinaryType()),
    (pa.types.is_fixed_size_binary, spark.BinaryType()),
    (pa.types.is_date, spark.DateType()),
    (pa.types.is_time, spark.TimeType(6)),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, spark.TimestampType()),
    (pa.types.is_timestamp, spark.TimestampNTZType()),
    (pa.types.is_duration, spark.DayTimeIntervalType()),
    (pa.types.is_interval, spark.YearMonthIntervalType()),
    (pa.types.is_null, spark.NullType()),
)

ARROW_LEAVES: dict[type[spark.DataType], pa.DataType] = {
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.CharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimeType: pa.time64("ns"),
    spark.TimestampType: pa.timestamp("us", tz="UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.DayTimeIntervalType: pa.duration("us"),
    spark.YearMonthIntervalType: pa.month_day_nano_interval(),
    spark.NullType: pa.null(),
    spark.VariantType: VARIANT,
}


def spark_schema(schema: pa.Schema) -> spark.StructType:
    return spark.StructType([spark_field(field) for field in schema])


def spark_field(field: pa.Field) -> spark.StructField:
    comment = (field.metadata or {}).get(COMMENT_KEY)
    metadata = None if comment is None else {COMMENT_KEY.decode(): comment.decode()}
    return spark.StructField(field.name, spark_type(field.type), field.nullable, metadata)


def spark_type(arrow: pa.DataType) -> spark.DataType:
    """The Spark type that holds every value of an Arrow type; `InvalidSchema` when there is none."""
    if is_variant(arrow):
        return spark.VariantType()
    if pa.types.is_struct(arrow):
        return spark.StructType([spark_field(field) for field in arrow])
    if pa.types.is_map(arrow):
        return spark.MapType(spark_type(arrow.key_type), spark_type(arrow.item_type), arrow.item_field.nullable)
    if is_list(arrow):
        return spark.ArrayType(spark_type(arrow.value_type), arrow.value_field.nullable)
    return _leaf(arrow.value_type if pa.types.is_dictionary(arrow) else arrow)


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    return pa.schema([_arrow_field(field) for field in schema.fields])


def arrow_type(kind: spark.DataType) -> pa.DataType:
    """The Arrow type that stands for a Spark type."""
    if isinstance(kind, spark.StructType):
        return pa.struct([_arrow_field(field) for field in kind.fields])
    if isinstance(kind, spark.MapType):
        made = map_type(arrow_type(kind.keyType), arrow_type(kind.valueType))
        return made if kind.valueContainsNull else pa.map_(made.key_type, made.item_field.with_nullable(False))
    if isinstance(kind, spark.ArrayType):
        made = array_type(arrow_type(kind.elementType))
        return made if kind.containsNull else pa.list_(made.value_field.with_nullable(False))
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    found = ARROW_LEAVES.get(type(kind))
    if found is None:
        raise InvalidSchema(path=kind.simpleString(), problem="there is no Arrow type for this Spark type")
    return found


def _arrow_field(field: spark.StructField) -> pa.Field:
    comment = field.metadata.get(COMMENT_KEY.decode())
    return struct_field(field.name, arrow_type(field.dataType), field.nullable, comment)


@lru_cache(maxsize=512)
def _leaf(arrow: pa.DataType) -> spark.DataType:
    if pa.types.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and arrow.scale >= 0:
        return spark.DecimalType(arrow.precision, arrow.scale)
    found = next((kind for test, kind in LEAVES if test(arrow)), None)
    if found is None:
        raise InvalidSchema(path=str(arrow), problem="there is no Spark type that holds it")
    return found
