"""A Spark DataFrame as an Arrow table: computed here, so that an error during the computation is a LaminaeError.

A type that Arrow lacks (year-month and calendar intervals, NULL inside a collection) becomes STRING. The elements of
collections are made nullable: PySpark casts a result to its types, and Arrow cannot cast a NULL struct whose
fields are required.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from laminae.errors import LaminaeError, QueryFailed
from laminae.secrets import masked
from laminae.spark.catalyst.spark_errors import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The last line of a Python traceback: the exception class and its message.
_RAISED = re.compile(r"^([\w.]*(?:Error|Exception|Warning|Interrupt)\b.*)$", re.MULTILINE)


def arrow_answer(frame: DataFrame) -> pa.Table:
    try:
        rows = _as_arrow_types(frame)
        return _with_variants(rows) if any(_has_variant(field.dataType) for field in rows.schema) else rows.toArrow()
    except LaminaeError:
        raise
    except (*SPARK_ERRORS, ValueError, OSError) as problem:
        raise QueryFailed(problem=masked(first_line(problem))) from None


def _with_variants(frame: DataFrame) -> pa.Table:
    """Like `toArrow`, whose final cast fails for a NULL VARIANT, because the fields of a VARIANT are NOT NULL."""
    schema = to_arrow_schema(frame.schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    table = pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))  # type: ignore[operator]  # classic DataFrame only
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _has_variant(kind: DataType) -> bool:
    match kind:
        case VariantType():
            return True
        case StructType():
            return any(_has_variant(field.dataType) for field in kind.fields)
        case ArrayType():
            return _has_variant(kind.elementType)
        case MapType():
            return _has_variant(kind.valueType)
    return False


def first_line(problem: Exception) -> str:
    """What went wrong, without the JVM stack trace. For an error in a Python worker, what its code raised."""
    text = str(problem).partition("getResult.\n: ")[2] or str(problem)
    raised = _RAISED.findall(text.partition("\n\n")[0]) if "Traceback (most recent call last)" in text else []
    lines = text.strip().splitlines()
    return raised[-1] if raised else lines[0] if lines else type(problem).__name__


def _as_arrow_types(frame: DataFrame) -> DataFrame:
    wanted = [_arrow_type(field.dataType) for field in frame.schema]
    if all(kind == field.dataType for kind, field in zip(wanted, frame.schema, strict=True)):
        return frame
    # By position: two columns may have the same name, and a name may contain any character.
    names = frame.columns
    numbered = frame.toDF(*(f"c{index}" for index in range(len(names))))
    return numbered.select(*(numbered[f"c{i}"].cast(kind) for i, kind in enumerate(wanted))).toDF(*names)


def _arrow_type(kind: DataType, is_inside: bool = False) -> DataType:
    match kind:
        case CalendarIntervalType() | YearMonthIntervalType():
            return StringType()
        case NullType() if is_inside:
            return StringType()
        case ArrayType():
            return ArrayType(_arrow_type(kind.elementType, is_inside=True), containsNull=True)
        case MapType():
            key, value = (_arrow_type(part, is_inside=True) for part in (kind.keyType, kind.valueType))
            return MapType(key, value, valueContainsNull=True)
        case StructType():
            inner = [(field, _arrow_type(field.dataType, is_inside=True)) for field in kind]
            return StructType([StructField(field.name, part, True, field.metadata) for field, part in inner])
    return kind
