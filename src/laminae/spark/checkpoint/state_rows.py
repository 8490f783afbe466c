"""Rows of state from Spark's `statestore` reader: raw bytes of every column family, or columns of one store; counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.state.checkpoint.model import HDFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan

FAMILY = "column_family_name"
COUNTS = "laminae_counts"


def raw_rows(spark: SparkSession, location: str, operator: int, store: str, batch: int) -> DataFrame:
    """Key and value as bytes, with their column family. RocksDB only."""
    return (
        spark.read.format("statestore")
        .option("_readAllColumnFamilies", "true")
        .option("operatorId", operator)
        .option("storeName", store)
        .option("batchId", batch)
        .load(location)
    )


def store_rows(spark: SparkSession, location: str, operator: int, store: str, batch: int) -> DataFrame:
    """Key and value as columns, for a store with one column family."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
    return reader.option("storeName", store).load(location)


def counted(rows: DataFrame, plans: tuple[FamilyPlan, ...]) -> DataFrame:
    """The same rows, with an observation that counts those of each column family, in the order of `plans`.

    Spark counts the metrics of a result stage once per task, however often the task is retried. A shuffle after this
    step would move the observation to another stage, where that does not hold.
    """
    family = F.col(FAMILY) if FAMILY in rows.columns else F.lit("default")
    counts = [F.count(F.when(family == plan.family, 1)).alias(str(place)) for place, plan in enumerate(plans)]
    return rows.observe(COUNTS, *counts)


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
