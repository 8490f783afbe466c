"""Limits of the Arrow batches that Spark passes to a kernel, by rows and by bytes.

To enforce a byte limit, Spark asks Arrow for the batch size after every row. For a list column Arrow then walks back
from the last value: where lists are NULL, every row costs as many steps as the batch has rows (quadratic in total).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.spark.tasks.task_reports import REPORT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"
MANY, FEW = "200000", "5000"
UNLIMITED, LIMITED = str(2**31 - 1), str(64 * 2**20)
DEFAULT_LIMITS = {ROWS: MANY, BYTES: UNLIMITED}
"""The default until the row types are known. Fixed-width rows need no byte limit: the row limit bounds their size."""
SHORT_ROW_LIMITS = {ROWS: "10000", BYTES: UNLIMITED}
"""For rows none of which comes from a long record. Checking the batch size takes a quarter of the time to build it."""


def limit_batches(session: SparkSession, schema: spark.StructType) -> None:
    """Tighten the session's batch limits for rows of this schema, which the next job contains.

    A job may have several schemas: limits that were set for earlier ones are never relaxed. The report column does not
    count, since reports are short and few.
    """
    kinds = [field.dataType for field in schema.fields if field.name != REPORT]
    if _has(kinds, (spark.StringType, spark.BinaryType, spark.ArrayType, spark.MapType, spark.VariantType)):
        session.conf.set(BYTES, LIMITED)
    if _has(kinds, (spark.ArrayType, spark.MapType)):
        session.conf.set(ROWS, FEW)


def _has(kinds: Iterable[spark.DataType], wanted: tuple[type[spark.DataType], ...]) -> bool:
    return any(isinstance(kind, wanted) or _has(_inside(kind), wanted) for kind in kinds)


def _inside(kind: spark.DataType) -> list[spark.DataType]:
    return [field.dataType for field in kind.fields] if isinstance(kind, spark.StructType) else []
