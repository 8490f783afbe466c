"""Rows of state as Spark's own reader gives them: raw bytes of every column family, or columns of one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAMILY = "column_family_name"


def raw_rows(spark: SparkSession, location: str, operator: int, store: str, batch: int) -> DataFrame:
    """Key and value as bytes, with the family they are of. RocksDB only."""
    return (
        spark.read.format("statestore")
        .option("_readAllColumnFamilies", "true")
        .option("operatorId", operator)
        .option("storeName", store)
        .option("batchId", batch)
        .load(location)
    )


def store_rows(spark: SparkSession, location: str, operator: int, store: str, batch: int) -> DataFrame:
    """Key and value as columns, of a store with one family."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
    return reader.option("storeName", store).load(location)
