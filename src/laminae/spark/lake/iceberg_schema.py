"""The columns of an Iceberg table as a source has them: SQL's types, and the field ids that tell which is which."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import EXTERNAL_ID
from laminae.schema.following import followed, learned
from laminae.schema.nesting import inner_fields, is_list
from laminae.spark.types import arrow_type, spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


def table_columns(schema: Schema) -> pa.Schema:
    """InvalidSchema for a type that SQL does not have here."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.schema([_field(field) for field in schema_to_pyarrow(schema)])


def through_schemas(current: pa.Schema, table: Table, ids: Sequence[int], is_first: bool) -> pa.Schema:
    """`current` after the schemas of the table that these snapshots were written under, one after the other.

    At first sight it takes on nothing but the field ids of its columns, by the names that they have in the table, or
    had there last. A schema that the table has forgotten says nothing.
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
