"""Changelog files of several epochs as one frame, under one schema: what was added later has its default."""

from __future__ import annotations

from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.added_columns import added_defaults
from laminae.spark.literals import literal_sql, type_sql
from laminae.spark.paths import literal_path
from laminae.spark.types import spark_schema, spark_type
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import AdvanceRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage

FILE = "_file"


def changes_under(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    relation: SourceRecord | ViewRecord,
    advances: Sequence[AdvanceRecord],
    schema: pa.Schema,
) -> DataFrame:
    """The changes of these epochs, of which there is one at least, with the name of each one's file in `_file`."""
    is_whole = all(set(schema.names) <= set(each.schema.names) for each in advances)
    filled = {} if is_whole else added_defaults(relation, catalog.sources(), catalog.views())
    alike = groupby(advances, lambda each: each.schema.names)
    return reduce(DataFrame.unionAll, [_under(spark, storage, list(found), schema, filled) for _, found in alike])


def _under(
    spark: SparkSession,
    storage: Storage,
    advances: Sequence[AdvanceRecord],
    schema: pa.Schema,
    filled: Mapping[str, pa.Scalar],
) -> DataFrame:
    """Of epochs that had the same columns."""
    there = [field for field in schema if field.name in advances[-1].schema.names]
    paths = [literal_path(storage.path(file)) for each in advances for file in each.files]
    rows = spark.read.schema(spark_schema(pa.schema(there))).parquet(*paths)
    columns = [
        F.col(quoted(field.name)) if field in there else F.expr(_filling(field, filled)).alias(field.name)
        for field in schema
    ]
    return rows.select(*columns, F.col("_metadata.file_name").alias(FILE))


def _filling(field: pa.Field, filled: Mapping[str, pa.Scalar]) -> str:
    value = filled[field.name].as_py() if field.name in filled else None
    return f"CAST({literal_sql(value, field.type)} AS {type_sql(spark_type(field.type))})"
