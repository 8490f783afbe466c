"""Infers the schema that JSON records require: new fields after the known ones, wider integers where values need them.

It considers only the documents; the engine decides whether the source may adopt the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.schema.identifiers import collation_key, column_name_problem
from laminae.schema.nesting import container, is_list
from laminae.schema.types import is_variant
from laminae.spark.catalyst.session_settings import cloned
from laminae.spark.catalyst.types import arrow_schema, spark_type
from laminae.spark.formats.json.from_json import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from laminae.schema.column import Path

MOST_RECORDS = 10_000

# Spark would also infer from arrays, duplicate keys and the first of two documents, none of which can be decoded.
ONE_OBJECT = """
    try_variant_get(try_parse_json(value), '$', 'MAP<STRING, VARIANT>') IS NOT NULL
    AND json_array_length(concat('[', value, ']')) = 1
"""

# `spark.read.json` infers BIGINT for all integers, whatever their size, so the range of these columns is checked
# separately.
RANGES = {kind: 2 ** (kind.bit_width - 1) for kind in (pa.int8(), pa.int16(), pa.int32())}


def infer_schema(records: DataFrame, current: pa.Schema, ignored: Collection[str] = ()) -> pa.Schema:
    """`current`, extended by what at most `MOST_RECORDS` of the records (column `value`) contain.

    `ignored` are top-level names that never become columns: former names, and the field of a record's version.
    """
    texts = records.select(F.col("value").cast("string").alias("value")).where(ONE_OBJECT).limit(MOST_RECORDS)
    # Names are compared case-sensitively, in a cloned session so that the caller's setting does not change.
    session = cloned(records.sparkSession)
    session.conf.set("spark.sql.caseSensitive", "true")
    seen = session.read.options(**OPTIONS).json(texts, mode="DROPMALFORMED", dropFieldIfAllNull=True).schema
    news = [field for field in arrow_schema(seen) if field.name not in ignored or field.name in current.names]
    fields = _grown(list(current), news, (), _overflows(texts, current))
    return pa.schema(fields, metadata=current.metadata)


def _grown(
    current: Sequence[pa.Field], seen: Sequence[pa.Field], path: Path, overflows: frozenset[Path]
) -> list[pa.Field]:
    by_name = {field.name: field for field in seen}
    known = {collation_key(field.name) for field in current}
    grown = []
    for field in current:
        seen_field = by_name.get(field.name)
        kind = field.type if seen_field is None else _wider(field.type, seen_field.type, (*path, field.name), overflows)
        grown.append(field.with_type(kind))
    for field in seen:
        # A name that differs from an existing column only in case cannot become another column.
        if collation_key(field.name) not in known and column_name_problem(field.name) is None:
            known.add(collation_key(field.name))
            grown.append(field)
    return grown


def _wider(current: pa.DataType, seen: pa.DataType, path: Path, overflows: frozenset[Path]) -> pa.DataType:
    """The current type, widened if necessary to hold the type that was seen; unrelated types stay unchanged."""
    if pa.types.is_struct(current) and pa.types.is_struct(seen) and not is_variant(current):
        return pa.struct(_grown(list(current), list(seen), path, overflows))
    if is_list(current) and is_list(seen):
        element = current.value_field
        return container(current, [element.with_type(_wider(element.type, seen.value_type, path, overflows))])
    if pa.types.is_null(current):
        return seen
    if pa.types.is_integer(current) and pa.types.is_floating(seen):
        return pa.float64()
    return pa.int64() if path in overflows else current


def _overflows(texts: DataFrame, current: pa.Schema) -> frozenset[Path]:
    """The paths of narrow integer columns for which some record has a value out of range."""
    narrow = [(path, kind) for field in current for path, kind in _narrow(field, ())]
    if not narrow:
        return frozenset()
    tops = {path[0] for path, _ in narrow}
    wide = spark.StructType([_widest(field) for field in current if field.name in tops])
    read = F.from_json(F.col("value"), wide, OPTIONS)
    tests = [F.max(_exceeds(read, current, path, RANGES[kind])).alias(str(i)) for i, (path, kind) in enumerate(narrow)]
    (flags,) = texts.agg(*tests).collect()
    return frozenset(path for i, (path, _) in enumerate(narrow) if flags[i])


def _narrow(field: pa.Field, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
    here, kind = (*path, field.name), field.type
    while is_list(kind):
        kind = kind.value_type
    if kind in RANGES:
        yield here, kind
    elif pa.types.is_struct(kind) and not is_variant(kind):
        for child in kind:
            yield from _narrow(child, here)


def _widest(field: pa.Field) -> spark.StructField:
    return spark.StructField(field.name, _widest_type(field.type))


def _widest_type(kind: pa.DataType) -> spark.DataType:
    if is_variant(kind) or pa.types.is_map(kind):
        return spark.StringType()
    if pa.types.is_struct(kind):
        return spark.StructType([_widest(child) for child in kind])
    if is_list(kind):
        return spark.ArrayType(_widest_type(kind.value_type))
    return spark.LongType() if kind in RANGES else spark_type(kind)


def _exceeds(read: Column, fields: pa.Schema | pa.StructType, path: Path, limit: int) -> Column:
    """Whether a value at the path is outside -limit to limit - 1."""
    name, *rest = path
    return _any_exceeds(read.getField(name), fields.field(name).type, tuple(rest), limit)


def _any_exceeds(value: Column, kind: pa.DataType, path: Path, limit: int) -> Column:
    if is_list(kind):
        exceeds = F.exists(value, lambda item: _any_exceeds(item, kind.value_type, path, limit))
    elif path:
        exceeds = _exceeds(value, kind, path, limit)
    else:
        exceeds = ~value.between(-limit, limit - 1)
    return F.coalesce(exceeds, F.lit(False))
