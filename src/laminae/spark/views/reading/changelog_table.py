"""The rows of a view as the sum of its changelog, for views whose rows are not held in operator state.

Columns of older segments are matched by column ids, so renaming a column of an input does not affect them.
"""

from __future__ import annotations

import json
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from laminae.engine.evolution.added_columns import added_defaults
from laminae.engine.retention.changelog_compaction import pieces_of
from laminae.errors import ChangelogExpired, QueryFailed
from laminae.schema.identity import IDS, with_column_ids
from laminae.spark.catalyst.literals import literal_sql, type_sql
from laminae.spark.catalyst.paths import literal_path, reading_many
from laminae.spark.catalyst.plans.prepared_frame import no_rows
from laminae.spark.catalyst.types import arrow_type, spark_schema
from laminae.trace.spec import WEIGHT
from laminae.views.planner import quoted
from laminae.zset.changelog import OP, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.retention.changelog_compaction import Piece
    from laminae.spark.driver.storage import Storage

OWN = (OP, WEIGHT, TIMESTAMP)
OWN_FIELDS = (StructField(WEIGHT, LongType()), StructField(TIMESTAMP, TimestampType()))


def with_ids(schema: pa.Schema, names: Sequence[str], ids: Sequence[str]) -> pa.Schema:
    """The schema of a segment, with the ids of the view's columns as metadata."""
    return with_column_ids(schema, dict(zip(names, ids, strict=True)))


def changelog_rows(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    wanted: StructType,
    ids: Sequence[str],
    until: int | None = None,
) -> DataFrame:
    """The changelog up to an epoch as rows with `_weight`, under the view's current columns. Equal rows are not summed.

    Raises ChangelogExpired when a segment was removed, QueryFailed when a segment without column ids has columns that
    cannot be matched by name.
    """
    pieces = pieces_of(catalog, view.id, until)
    if gone := [piece.last for piece in pieces if piece.is_gone]:
        raise ChangelogExpired(view=view.name, first=gone[-1], since=0)
    return segment_rows(spark, catalog, storage, view, wanted, ids, pieces).drop(TIMESTAMP)


def segment_rows(
    spark: SparkSession,
    catalog: Catalog,
    storage: Storage,
    view: ViewRecord,
    wanted: StructType,
    ids: Sequence[str],
    pieces: Sequence[Piece],
) -> DataFrame:
    """The rows of these pieces of a changelog, with `_weight` and `_timestamp`, under the view's current columns.

    Rows of a compacted range have no timestamp.
    """
    pieces = [piece for piece in pieces if piece.files]
    if not pieces:
        empty = StructType([*wanted.fields, *OWN_FIELDS])
        return no_rows(spark, empty)
    columns = dict(zip(ids, wanted.fields, strict=True))
    parts = []
    defaults: Mapping[str, pa.Scalar] | None = None
    for _, alike in groupby(pieces, lambda piece: (piece.schema, (piece.schema.metadata or {}).get(IDS))):
        some = list(alike)
        stored = _matched(view.name, some[0], columns)
        if len(stored) < len(columns) and defaults is None:
            defaults = added_defaults(view, catalog.sources(), catalog.views())
        files = [file for piece in some for file in piece.files]
        parts.append(_part(spark, storage, files, columns, stored, defaults or {}))
    return reduce(DataFrame.unionAll, parts)


def _matched(view: str, segment: Piece, columns: Mapping[str, StructField]) -> dict[str, pa.Field]:
    """The stored columns of a segment by the ids of the view's current columns."""
    known = (segment.schema.metadata or {}).get(IDS)
    if known is not None:
        return {id_: segment.schema.field(name) for name, id_ in json.loads(known).items() if id_ in columns}
    by_name = {field.name: id_ for id_, field in columns.items()}
    own = [name for name in segment.schema.names if name in by_name]
    strange = [name for name in segment.schema.names if name not in {*by_name, *OWN}]
    if strange and len(own) < len(columns):
        problem = f"column {strange[0]} of {view} has another name since epoch {segment.last}"
        raise QueryFailed(problem=f"{problem}: CREATE OR REPLACE the view")
    return {by_name[name]: segment.schema.field(name) for name in own}


def _part(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[str],
    columns: Mapping[str, StructField],
    stored: Mapping[str, pa.Field],
    defaults: Mapping[str, pa.Scalar],
) -> DataFrame:
    paths = [literal_path(storage.path(file)) for file in files]
    read = [_read_as(field, columns[id_].dataType) for id_, field in stored.items()]
    schema = StructType([*spark_schema(pa.schema(read)).fields, *OWN_FIELDS])
    with reading_many(spark, len(paths)):
        rows = spark.read.schema(schema).parquet(*paths)
    selected = [_column(field, stored.get(id_), defaults) for id_, field in columns.items()]
    return rows.select(*selected, WEIGHT, TIMESTAMP)


def _read_as(stored: pa.Field, wanted: DataType) -> pa.Field:
    """The field as it is requested from Spark's Parquet reader.

    Atomic columns are read in their stored type and then cast. Nested columns are read in the wanted type: the reader
    matches their fields by name.
    """
    return stored.with_type(arrow_type(wanted)) if pa.types.is_nested(stored.type) else stored


def _column(field: StructField, stored: pa.Field | None, defaults: Mapping[str, pa.Scalar]) -> Column:
    if stored is not None:
        column = F.col(quoted(stored.name))
        return (column if pa.types.is_nested(stored.type) else column.cast(field.dataType)).alias(field.name)
    value = defaults[field.name].as_py() if field.name in defaults else None
    literal = literal_sql(value, arrow_type(field.dataType))
    return F.expr(f"CAST({literal} AS {type_sql(field.dataType)})").alias(field.name)
