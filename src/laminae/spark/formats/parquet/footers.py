"""Reads the footers of Parquet files on the driver: their columns, in the types that Spark reads.

A file that is not Parquet, or has a column that Spark cannot read, yields a `Refused` with the reason; nothing raises.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.errors import InvalidSchema
from laminae.schema.column import EXTERNAL_ID, columns_of
from laminae.schema.nesting import inner_fields, is_list
from laminae.spark.catalyst.types import arrow_type, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from laminae.spark.sources.files.listing import FileEntry

Found = TypeVar("Found")

READERS = 8
NANOSECONDS = "ns"
INSTANT, WALL_CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")
UNREADABLE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_float16, "a 16-bit float"),
    (pa.types.is_time, "a time of day"),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a whole file is rejected."""

    reason: str


@dataclass(frozen=True, slots=True)
class Footer:
    """`schema` has SQL types and no metadata except field ids; files with equal schemas are read in one scan.

    `nanoseconds` are top-level timestamps in nanoseconds, which Spark does not support: they are read as integers.
    """

    schema: pa.Schema
    nanoseconds: frozenset[str]


class _Unreadable(Exception):
    pass


def footers(files: Sequence[FileEntry]) -> list[Footer | Refused]:
    """The footer of each file, in the order of the files."""
    return in_parallel(lambda entry: footer(entry.path, entry.size, entry.modified), files)


def in_parallel(read: Callable[[FileEntry], Found], files: Sequence[FileEntry]) -> list[Found]:
    if len(files) < READERS:
        return [read(entry) for entry in files]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(read, files))


# Size and modification time are part of the cache key: a repaired file is a different file.
@lru_cache(maxsize=10_000)
def footer(path: str, size: int, modified: int) -> Footer | Refused:
    try:
        with pq.ParquetFile(path) as file:
            arrow = file.schema_arrow
            physical = [file.schema.column(i).physical_type for i in range(len(file.schema))]
    except (pa.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0].rstrip(".")
        return Refused(f"the file cannot be read as Parquet: {problem}")
    try:
        leaves = iter(physical)
        nanoseconds = set()
        fields = []
        for field in arrow:
            spark_field = _field(field, leaves, field.name)
            if _is_fine(spark_field.type):
                nanoseconds.add(field.name)
                spark_field = spark_field.with_type(WALL_CLOCK if spark_field.type.tz is None else INSTANT)
            fields.append(spark_field)
        schema = pa.schema(fields)
        columns_of(schema)
    except _Unreadable as error:
        return Refused(f"the columns of the file cannot be read: {error}")
    except InvalidSchema as error:
        return Refused(f"the columns of the file cannot be read: {error.message}")
    return Footer(schema, frozenset(nanoseconds))


def _field(field: pa.Field, leaves: Iterator[str], path: str) -> pa.Field:
    """The field with SQL types, always nullable: a required column of a file need not be NOT NULL in the source."""
    number = (field.metadata or {}).get(EXTERNAL_ID)
    kind = _type(field.type, leaves, path)
    return pa.field(field.name, kind, True, None if number is None else {EXTERNAL_ID: number})


def _type(kind: pa.DataType, leaves: Iterator[str], path: str) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_field(child, leaves, f"{path}.{child.name}") for child in kind])
    if pa.types.is_map(kind):
        key = _field(kind.key_field, leaves, f"{path}.key").with_nullable(False)
        return pa.map_(key, _field(kind.item_field, leaves, f"{path}.value"))
    if is_list(kind):
        (element,) = inner_fields(kind)
        return pa.list_(_field(element, leaves, f"{path}.element"))
    return _leaf(kind, next(leaves), path)


def _leaf(kind: pa.DataType, physical: str, path: str) -> pa.DataType:
    if physical == "INT96":
        # Spark and Hive write timestamps in UTC as INT96; Arrow reads these as timestamps without time zone.
        return INSTANT
    if pa.types.is_duration(kind):
        return pa.int64()
    if _is_fine(kind):
        if "." in path:
            raise _Unreadable(f"{path} has nanoseconds inside a nested column")
        return kind
    unreadable = next((description for test, description in UNREADABLE if test(kind)), None)
    if unreadable is not None:
        raise _Unreadable(f"{path} is {unreadable}, which Spark does not read")
    return arrow_type(spark_type(kind))


def _is_fine(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == NANOSECONDS)
