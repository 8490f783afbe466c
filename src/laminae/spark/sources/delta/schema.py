"""The columns of a Delta table as source columns. Its schema is Spark's JSON; with column mapping it has field ids."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as spark

from laminae.schema.column import EXTERNAL_ID
from laminae.schema.external.table_changes import followed, learned
from laminae.schema.types import array_type, map_type
from laminae.spark.catalyst.types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

NUMBER, PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"


def table_columns(text: str) -> pa.Schema:
    return pa.schema([_field(field) for field in spark.StructType.fromJson(json.loads(text)).fields])


def logical_names(text: str) -> dict[str, str]:
    """The logical name of each column by its physical name, which files and partition values use."""
    fields = spark.StructType.fromJson(json.loads(text)).fields
    return {field.metadata.get(PHYSICAL, field.name): field.name for field in fields}


def through_schemas(current: pa.Schema, texts: Sequence[str], is_first: bool) -> pa.Schema:
    """`current` after the changes between these schemas, in order. With `is_first` (the first read of the table) it
    also takes over the field ids of its columns.
    """
    known = [table_columns(text) for text in texts]
    if is_first:
        for columns in reversed(known):
            current = learned(current, columns)
    for before, after in pairwise(known):
        # Field ids may be added later, when column mapping is enabled.
        current = followed(learned(current, after), learned(before, after), after)
    return current


def _field(field: spark.StructField) -> pa.Field:
    number = field.metadata.get(NUMBER)
    metadata = None if number is None else {EXTERNAL_ID: str(number).encode()}
    return pa.field(field.name, _type(field.dataType), field.nullable, metadata)


def _type(kind: spark.DataType) -> pa.DataType:
    if isinstance(kind, spark.StructType):
        return pa.struct([_field(field) for field in kind.fields])
    if isinstance(kind, spark.ArrayType):
        return array_type(_type(kind.elementType))
    if isinstance(kind, spark.MapType):
        return map_type(_type(kind.keyType), _type(kind.valueType))
    return arrow_type(kind)
