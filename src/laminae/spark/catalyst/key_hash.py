"""Key hashing in canonical types, so that widening a key within its type family moves no group to another shard."""

from __future__ import annotations

from pyspark.sql import types as spark


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
