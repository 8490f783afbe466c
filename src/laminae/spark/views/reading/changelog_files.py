"""Reads the changelog files of several epochs as one DataFrame under one schema; columns added later get defaults."""

from __future__ import annotations

from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.evolution.added_columns import added_defaults
from laminae.spark.catalyst.literals import literal_sql, type_sql
from laminae.spark.catalyst.paths import literal_path
from laminae.spark.catalyst.types import spark_schema, spark_type
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from laminae.catalog.model import AdvanceRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage

FILE = "__laminae_file"


def changes_under(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    relation: SourceRecord | ViewRecord,
    advances: Sequence[AdvanceRecord],
    schema: pa.Schema,
) -> DataFrame:
    """The changes of these epochs, with the file name of each in `FILE`. There must be at least one epoch."""
    is_whole = all(set(schema.names) <= set(advance.schema.names) for advance in advances)
    filled = {} if is_whole else added_defaults(relation, catalog.sources(), catalog.views())
    alike = groupby(advances, lambda advance: advance.schema.names)
    return reduce(DataFrame.unionAll, [_under(spark, storage, list(group), schema, filled) for _, group in alike])


def _under(
    spark: SparkSession,
    storage: Storage,
    advances: Sequence[AdvanceRecord],
    schema: pa.Schema,
    filled: Mapping[str, pa.Scalar],
) -> DataFrame:
    """The changes of epochs that have the same columns."""
    stored = [field for field in schema if field.name in advances[-1].schema.names]
    paths = [literal_path(storage.path(file)) for advance in advances for file in advance.files]
    rows = spark.read.schema(spark_schema(pa.schema(stored))).parquet(*paths)
    columns = [
        F.col(quoted(field.name)) if field in stored else F.expr(_filling(field, filled)).alias(field.name)
        for field in schema
    ]
    return rows.select(*columns, rows.metadataColumn("_metadata")["file_name"].alias(FILE))


def _filling(field: pa.Field, filled: Mapping[str, pa.Scalar]) -> str:
    value = filled[field.name].as_py() if field.name in filled else None
    return f"CAST({literal_sql(value, field.type)} AS {type_sql(spark_type(field.type))})"
