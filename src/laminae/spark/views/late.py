"""laminar_catalog.late_rows: what came too late for every window it belongs to, kept and counted, never dropped."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.logs.numbered import literal_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage

LATE_ROWS = "view_name STRING, epoch BIGINT, window_end TIMESTAMP, row STRING, weight BIGINT"
STORED = "window_end TIMESTAMP, row STRING, weight BIGINT"


def late_rows(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """The row as JSON, the end of the last window it belongs to, and the epoch it came in."""
    parts = [
        spark.read.schema(STORED)
        .parquet(*(literal_path(storage.path(segment)) for segment in advance.late_files))
        .select(F.lit(view.name).alias("view_name"), F.lit(advance.epoch).cast("bigint").alias("epoch"), "*")
        for view in catalog.views()
        for advance in catalog.advances(view.id)
        if advance.late_files
    ]
    return reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], LATE_ROWS)
