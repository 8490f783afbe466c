"""laminar_catalog.dead_letters: records that a source could not decode, and rows that a view could not compute."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.catalyst.paths import literal_path
from laminae.spark.source_tables.source_rows import dead_letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage

STORED = "relation STRING, value BINARY, weight BIGINT, reason STRING"


def all_dead_letters(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """The dead letters of all sources and views.

    Those of sources have no `view_name` and no `weight`. Those of views have no partition and offset: `source_name` is
    the relation that the row belongs to, and `value` is the row as JSON.
    """
    records = dead_letters(spark, catalog, storage)
    names = records.columns
    rows = [
        spark.read.schema(STORED)
        .parquet(*(literal_path(storage.path(segment)) for segment in advance.refused_files))
        .select(
            F.col("relation").alias("source_name"),
            F.lit(advance.epoch).cast("bigint").alias("epoch"),
            "value",
            "reason",
            F.lit(view.name).alias("view_name"),
            "weight",
        )
        for view in catalog.views()
        for advance in catalog.advances(view.id)
        if advance.refused_files
    ]
    none = {"view_name": "string", "weight": "bigint"}
    own = records.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in none.items()))
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows, own)
    return whole.select(*names, *none)
