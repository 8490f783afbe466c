"""Key hashing in canonical types, so that widening a key within its type family moves no group to another shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

from laminae.spark.catalyst.plans.prepared_frame import no_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def hash_of(keys: str) -> str:
    """The hash by which a trace looks up a group. The trace then compares the keys themselves."""
    return f"xxhash64({keys})"


def canonical_type(kind: spark.DataType) -> spark.DataType:
    """The type that a key is hashed in."""
    match kind:
        case spark.ByteType() | spark.ShortType() | spark.IntegerType():
            return spark.LongType()
        case spark.FloatType():
            return spark.DoubleType()
        case spark.DecimalType():
            return spark.DecimalType(38, kind.scale)
    return kind


def canonical_key(column: str, kind: spark.DataType) -> str:
    """SQL of the key cast to the type that it is hashed in, given the key's SQL and its type."""
    hashed_in = canonical_type(kind)
    return column if hashed_in == kind else f"CAST({column} AS {hashed_in.simpleString().upper()})"


def compared_type(session: SparkSession, left: spark.DataType, right: spark.DataType) -> spark.DataType:
    """The type to which both operands of `=`, `<` and the like are cast; raises as Spark does if they cannot be."""
    if left == right:
        return left
    sides = spark.StructType([spark.StructField("l", left), spark.StructField("r", right)])
    plan: Any = no_rows(session, sides).selectExpr("l = r AS same")._jdf.queryExecution().analyzed()
    comparison = plan.projectList().head().child()
    return spark._parse_datatype_json_string(comparison.left().dataType().json())
