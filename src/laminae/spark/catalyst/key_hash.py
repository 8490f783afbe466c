"""Key hashing in canonical types, so that widening a key within its type family moves no group to another shard."""

from __future__ import annotations

from pyspark.sql import types as spark


def hash_of(keys: str) -> str:
    """The hash by which a trace looks up a group. The trace then compares the keys themselves."""
    return f"xxhash64({keys})"


def canonical_key(column: str, kind: spark.DataType) -> str:
    """SQL of the key cast to the type that it is hashed in, given the key's SQL and its type."""
    match kind:
        case spark.ByteType() | spark.ShortType() | spark.IntegerType():
            return f"CAST({column} AS BIGINT)"
        case spark.FloatType():
            return f"CAST({column} AS DOUBLE)"
        case spark.DecimalType():
            return f"CAST({column} AS DECIMAL(38, {kind.scale}))"
    return column
