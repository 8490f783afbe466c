"""Rows of state as Spark's own reader gives them: raw bytes of every column family, or columns of one store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.state.checkpoint.model import HDFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laminae.state.checkpoint.model import Checkpoint

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


def row_counts(spark: SparkSession, checkpoint: Checkpoint) -> dict[tuple[int, str, str], int]:
    """Rows of each operator, store and column family at the last committed batch."""
    counts: dict[tuple[int, str, str], int] = {}
    for operator in checkpoint.operators:
        for store in operator.stores:
            counts |= {(operator.id, store.name, family.name): 0 for family in store.families}
            place = (spark, checkpoint.location, operator.id, store.name, checkpoint.batch)
            if checkpoint.provider == HDFS:
                counts[operator.id, store.name, "default"] = store_rows(*place).count()
                continue
            for family, rows in raw_rows(*place).groupBy(F.col(FAMILY)).count().collect():
                counts[operator.id, store.name, family] = rows
    return counts
