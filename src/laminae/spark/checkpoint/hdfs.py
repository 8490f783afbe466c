"""State of the HDFS-backed store as rows of bytes: Spark's reader gives columns, the codec makes UnsafeRows of them.

Rows stay in the partition they were in, or go where their new key belongs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.checkpoint.counting import counted
from laminae.spark.checkpoint.hashing import changed, new_key_columns
from laminae.spark.checkpoint.state_rows import store_rows
from laminae.state.codec.families import FamilyEncoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan

PARTITION = "partition_id"
SCHEMA = "key_bytes BINARY, value_bytes BINARY, column_family_name STRING"


def encoded_rows(spark: SparkSession, old: Checkpoint, plan: FamilyPlan, partitions: int) -> DataFrame:
    """The rows of a store under their new schemas, each in its partition."""
    rows = store_rows(spark, old.location, plan.operator, plan.store, old.batch)
    if plan.key.mapping is None:
        rows = rows.repartitionById(partitions, F.col(PARTITION))
    else:
        rows = rows.repartition(partitions, *new_key_columns(F.col("key"), plan.key))
    key = changed(F.col("key"), plan.key.old, plan.key.new, plan.key.mapping)
    value = changed(F.col("value"), plan.value.old, plan.value.new, plan.value.mapping)
    found = counted(rows, (plan,)).select(key.alias("key"), value.alias("value"))
    return found.mapInArrow(FamilyEncoding(plan), SCHEMA)
