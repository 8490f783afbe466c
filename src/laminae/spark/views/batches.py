"""How many rows Spark hands to a kernel at once, and how it counts them.

To keep a batch below a number of bytes Spark asks for its size after every row. Arrow goes through the list of a column
from its last value on to answer: where lists are NULL it takes as many steps for each row as the batch has rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from laminae.spark.views.notes import NOTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

ROWS, BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"
MANY, FEW = "200000", "5000"
UNLIMITED, LIMITED = str(2**31 - 1), str(64 * 2**20)
WHATEVER = {ROWS: MANY, BYTES: UNLIMITED}
"""Before it is known what the rows are like. Those of one width need no limit: there is one for their number."""
OF_SHORT_ROWS = {ROWS: "10000", BYTES: UNLIMITED}
"""Where no row was made of a long record. To ask for the size of a batch takes a quarter of the time to make it."""


def settle_batches(session: SparkSession, schema: spark.StructType) -> None:
    """Such rows are in the next job, beside others that may have been told of before. Notes are short and few."""
    kinds = [field.dataType for field in schema.fields if field.name != NOTE]
    if _has(kinds, (spark.StringType, spark.BinaryType, spark.ArrayType, spark.MapType, spark.VariantType)):
        session.conf.set(BYTES, LIMITED)
    if _has(kinds, (spark.ArrayType, spark.MapType)):
        session.conf.set(ROWS, FEW)


def _has(kinds: Iterable[spark.DataType], wanted: tuple[type[spark.DataType], ...]) -> bool:
    return any(isinstance(kind, wanted) or _has(_inside(kind), wanted) for kind in kinds)


def _inside(kind: spark.DataType) -> list[spark.DataType]:
    return [field.dataType for field in kind.fields] if isinstance(kind, spark.StructType) else []
