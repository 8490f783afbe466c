"""The type in which Spark compares two values of different types, as its analyzer decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_json_string

from laminae.spark.catalyst.plans.prepared_frame import no_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT, RIGHT = "l", "r"


def compared_type(spark: SparkSession, left: DataType, right: DataType) -> DataType:
    """The type to which both operands of `=`, `<` and the like are cast; raises as Spark does if they cannot be."""
    if left == right:
        return left
    sides = StructType([StructField(LEFT, left), StructField(RIGHT, right)])
    plan: Any = no_rows(spark, sides).selectExpr(f"{LEFT} = {RIGHT} AS same")._jdf.queryExecution().analyzed()
    comparison = plan.projectList().head().child()
    return _parse_datatype_json_string(comparison.left().dataType().json())
