"""The columns of an Iceberg table as source columns: with SQL types, and with the field ids that identify them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import EXTERNAL_ID
from laminae.schema.external.table_changes import followed, learned
from laminae.schema.nesting import inner_fields, is_list
from laminae.spark.catalyst.types import arrow_type, spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


def table_columns(schema: Schema) -> pa.Schema:
    """The columns of this schema; InvalidSchema for a type that laminae's SQL does not have."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.schema([_field(field) for field in schema_to_pyarrow(schema)])


def through_schemas(current: pa.Schema, table: Table, ids: Sequence[int], is_first: bool) -> pa.Schema:
    """`current` after the changes between these schemas of the table, under which snapshots were written, in order.

    With `is_first` (the first read of the table) it first takes over the field ids of its columns, and nothing else,
    matched by their current or most recent name in the table. Schemas that are no longer in the table's metadata are
    skipped.
    """
    schemas = table.schemas()
    known = [table_columns(schemas[number]) for number in ids if number in schemas]
    if is_first:
        for schema in (table.schema(), *(schemas[number] for number in sorted(schemas, reverse=True))):
            current = learned(current, table_columns(schema))
    for before, after in pairwise(known):
        current = followed(current, before, after)
    return current


def _field(field: pa.Field) -> pa.Field:
    number = (field.metadata or {}).get(EXTERNAL_ID)
    return pa.field(field.name, _type(field.type), field.nullable, None if number is None else {EXTERNAL_ID: number})


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(*(_field(field) for field in inner_fields(kind)))
    if is_list(kind):
        return pa.list_(_field(kind.value_field))
    return arrow_type(spark_type(kind))
