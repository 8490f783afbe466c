"""Turns the reports of a job over a source's table into catalog updates, and its changelog files into a DataFrame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StructType

from laminae.catalog.updates import AdvanceOwner
from laminae.schema.identity import column_ids, with_column_ids
from laminae.schema.nesting import nullable_inside
from laminae.spark.catalyst.paths import literal_path
from laminae.spark.catalyst.types import arrow_schema, arrow_type, spark_schema, spark_type
from laminae.spark.tasks.task_reports import REPORT, OwnerReports, report_of
from laminae.zset.changelog import OP, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.tasks.task_reports import TaskReport
    from laminae.spark.views.plan import ShardPlacement

    Advance = tuple[tuple[AdvanceOwner, ...], DataFrame | None]


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a source in the Arrow types in which Spark passes them to the table's tasks and back."""
    fields = arrow_schema(spark_schema(schema))
    return pa.schema([field.with_type(nullable_inside(field.type)).with_nullable(True) for field in fields])


def kept_type(kind: pa.DataType) -> pa.DataType:
    """The type that the table of a source stores for a column. Nested types keep the ids of their fields."""
    return nullable_inside(kind) if pa.types.is_nested(kind) else arrow_type(spark_type(kind))


def reports_in(output: DataFrame) -> list[TaskReport]:
    """Run the job and return its reports."""
    return [report_of(row[REPORT]) for row in output.where(F.col(REPORT).isNotNull()).select(REPORT).collect()]


def advance_of(
    spark: SparkSession,
    owner: tuple[int, str, int],
    columns: pa.Schema,
    output: DataFrame,
    reports: Sequence[TaskReport],
    placement: ShardPlacement,
) -> Advance:
    """The catalog updates of the job, and its changes. `owner` is (id, name, expected epoch of its last advance).

    `columns` is the schema of the source, with column ids. The changes are read from the changelog files that the job
    wrote, so that its tasks do not run again for readers.
    """
    owner_id, name, expected = owner
    own = OwnerReports.of(f"source {name}", reports)
    if not own.states:
        return (), None
    schema = StructType([field for field in output.schema.fields if field.name != REPORT])
    update = AdvanceOwner(
        owner_id=owner_id,
        name=name,
        expected=expected,
        manifests=own.manifests,
        files=own.files,
        rows=own.rows,
        schema=with_column_ids(arrow_schema(schema), column_ids(columns)),
        anomalies=own.anomalies,
        dropped=own.dropped,
    )
    if not own.files:
        return (update,), None
    files = [literal_path(os.path.join(placement.home, file)) for file in own.files]
    return (update,), spark.read.schema(schema).parquet(*files).drop(OP, TIMESTAMP)
