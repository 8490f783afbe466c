"""Conversion between Arrow and Spark types: one table of leaf types, one recursive walk over nested types.

A type that Spark lacks becomes the next one that holds all its values; the reverse direction gives the Arrow type that
`schema/types.py` has for the SQL name. Ids and defaults are not carried over: Spark does not use them. Instants are
whole microseconds since 1970 in Arrow, Spark and the catalog.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.errors import InvalidSchema
from laminae.schema.nesting import container, inner_fields, is_list
from laminae.schema.types import COMMENT_KEY, MAX_PRECISION, VARIANT, array_type, is_variant, map_type, struct_field

if TYPE_CHECKING:
    from collections.abc import Callable

# The first test that matches decides.
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

# Spark 4.2 types that are missing here are refused by name, in columns and in results of views: pyspark cannot convert
# year-month or calendar intervals to Python values, and GEOMETRY and GEOGRAPHY have no Arrow type.
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
    spark.NullType: pa.null(),
    spark.VariantType: VARIANT,
}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds_of(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def spark_schema(schema: pa.Schema) -> spark.StructType:
    return spark.StructType([spark_field(field) for field in schema])


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with which pyarrow must write Parquet so that Spark reads the same values.

    Spark 4.2 reads TIME(NANOS) of a file as microseconds. No value has more than six fractional digits of a second.
    """
    fields = [field.with_type(_stored_type(field.type)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if kind == pa.time64("ns"):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored_type(field.type)) for field in kind])
    if pa.types.is_map(kind) or is_list(kind):
        return container(kind, [field.with_type(_stored_type(field.type)) for field in inner_fields(kind)])
    return kind


def spark_field(field: pa.Field) -> spark.StructField:
    comment = (field.metadata or {}).get(COMMENT_KEY)
    metadata = None if comment is None else {COMMENT_KEY.decode(): comment.decode()}
    return spark.StructField(field.name, spark_type(field.type), field.nullable, metadata)


def spark_type(arrow: pa.DataType) -> spark.DataType:
    """The Spark type that holds every value of an Arrow type; raises `InvalidSchema` when there is none."""
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
    """The Arrow type of a Spark type; raises `InvalidSchema` when there is none."""
    if isinstance(kind, spark.StructType):
        return pa.struct([_arrow_field(field) for field in kind.fields])
    if isinstance(kind, spark.MapType):
        arrow = map_type(arrow_type(kind.keyType), arrow_type(kind.valueType))
        return arrow if kind.valueContainsNull else pa.map_(arrow.key_type, arrow.item_field.with_nullable(False))
    if isinstance(kind, spark.ArrayType):
        arrow = array_type(arrow_type(kind.elementType))
        return arrow if kind.containsNull else pa.list_(arrow.value_field.with_nullable(False))
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    leaf = ARROW_LEAVES.get(type(kind))
    if leaf is None:
        raise InvalidSchema(path=kind.simpleString(), problem="there is no Arrow type for this Spark type")
    return leaf


def _arrow_field(field: spark.StructField) -> pa.Field:
    comment = field.metadata.get(COMMENT_KEY.decode())
    return struct_field(field.name, arrow_type(field.dataType), field.nullable, comment)


@lru_cache(maxsize=512)
def _leaf(arrow: pa.DataType) -> spark.DataType:
    if pa.types.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and arrow.scale >= 0:
        return spark.DecimalType(arrow.precision, arrow.scale)
    leaf = next((kind for test, kind in LEAVES if test(arrow)), None)
    if leaf is None:
        raise InvalidSchema(path=str(arrow), problem="there is no Spark type that holds it")
    return leaf
