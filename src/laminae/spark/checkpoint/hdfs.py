"""State of the HDFS-backed store as rows of bytes: Spark's reader gives columns, the codec makes UnsafeRows of them.

Rows stay in the partition they were in, or go where their new key belongs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.spark.checkpoint.counting import counted
from laminae.spark.checkpoint.hashing import changed, new_key_columns
from laminae.spark.checkpoint.state_rows import store_rows
from laminae.state.codec.encode import row_encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan

PARTITION = "partition_id"
BYTES = spark.StructType(
    [
        spark.StructField("key_bytes", spark.BinaryType()),
        spark.StructField("value_bytes", spark.BinaryType()),
        spark.StructField("column_family_name", spark.StringType()),
    ]
)


def encoded_rows(spark_: SparkSession, old: Checkpoint, plan: FamilyPlan, partitions: int) -> DataFrame:
    """The rows of a store under their new schemas, each in its partition."""
    rows = store_rows(spark_, old.location, plan.operator, plan.store, old.batch)
    if plan.key.mapping is None:
        rows = rows.repartitionById(partitions, F.col(PARTITION))
    else:
        rows = rows.repartition(partitions, *new_key_columns(F.col("key"), plan.key))
    key = changed(F.col("key"), plan.key.old, plan.key.new, plan.key.mapping)
    value = changed(F.col("value"), plan.value.old, plan.value.new, plan.value.mapping)
    found = counted(rows, (plan,)).select(key.alias("key"), value.alias("value"))
    return found.mapInArrow(_encoding(plan), BYTES)


def _encoding(plan: FamilyPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    key, value = plan.key.new, plan.value.new

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        to_key, to_value = row_encoder(key), row_encoder(value)
        for batch in batches:
            keys = pa.array([to_key(row) for row in _rows(batch.column(0))], pa.binary())
            values = pa.array([to_value(row) for row in _rows(batch.column(1))], pa.binary())
            family = pa.array([plan.family] * len(batch), pa.string())
            yield pa.RecordBatch.from_arrays([keys, values, family], names=BYTES.names)

    return encode


def _rows(structs: pa.StructArray) -> Iterator[tuple[object, ...]]:
    """The fields of each row in order: names of buffers may come twice."""
    if not structs.type.num_fields:
        return iter([()] * len(structs))
    return zip(*(structs.field(place).to_pylist() for place in range(structs.type.num_fields)), strict=True)
