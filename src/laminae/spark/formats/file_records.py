"""Shared by the readers of files: the position of a record, the projection of a file's columns to the current schema,
and dead letters for files that were rejected as a whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.projection import projection_between
from laminae.spark.catalyst.expression import Expression, call, column, first_text, literal, struct
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import spark_schema
from laminae.spark.formats.projection import keeps_every_column, project_columns, violations
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, RAW_SCHEMA, ROW, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.formats.parquet.footers import Refused
    from laminae.spark.sources.files.listing import FileEntry

# The columns that a scan adds to those of the file.
PATH, INDEX = "_path", "_index"
READ, PROBLEM = "_read", "_problem"
UNKNOWN_COLUMN = "the file has a column that the source does not accept"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VERSION = Expression("CAST(NULL AS INT)")


@dataclass(frozen=True, slots=True)
class Reading:
    """How one version decodes the records of one file schema: into the struct READ of its columns, or to an error."""

    decoder: Decoder
    problem: Expression
    has_unknown: bool = False


def place_columns(files: Sequence[FileEntry]) -> dict[str, Expression]:
    """Partition, item and timestamp of a record, from the path of its file; evaluated only if they are selected."""
    if len(files) == 1:
        entry = files[0]
        partition, item, modified = literal(entry.path), literal(entry.item), literal(entry.modified)
    else:
        partition = column(PATH)
        item = _looked_up({entry.path: entry.item for entry in files})
        modified = _looked_up({entry.path: entry.modified for entry in files})
    timestamp = call("timestamp_micros", modified)
    return {"partition": partition, "item": item.cast("BIGINT"), "timestamp": timestamp, "version": _NO_VERSION}


def path_of(uri: Expression) -> Expression:
    """The path of a file from Spark's percent-encoded URI, in which a plus sign is literal."""
    decoded = call("url_decode", call("replace", uri, literal("+"), literal("%2B")))
    return call("regexp_replace", decoded, literal("^file:/+"), literal("/"))


def line_number() -> Expression:
    """A number that increases from line to line of a file that is read as text.

    Spark has no line numbers. `monotonically_increasing_id` numbers lines within a task, which reads several splits of
    files one after the other, so the start of the split forms the high bits. Files of up to 4 TB are supported.
    """
    piece = Expression("shiftleft(shiftright(_metadata.file_block_start, 12), 33)")
    return piece + Expression("(monotonically_increasing_id() & 8589934591L)")


def instant(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def decoded_records(frame: DataFrame, raw: dict[str, Expression], reading: Reading, table: DecoderTable) -> DataFrame:
    """The raw columns and ROW, ERROR, UNKNOWN of each record (see `formats/protocol.py`). `frame` has a column READ."""
    read = frame.select(
        *(raw[name].column.alias(name) for name in RAW_COLUMNS), READ, reading.problem.column.alias(PROBLEM)
    )
    row, problems = column(READ), [column(PROBLEM)]
    if reading.has_unknown and table.refuses_unknown:
        problems.append(literal(UNKNOWN_COLUMN))
    if not reading.decoder.schema.equals(table.current, check_metadata=True):
        projection = projection_between(reading.decoder.schema, table.current)
        names = reading.decoder.schema.names

        def of_version(index: int) -> Expression:
            return column(READ).field(names[index])

        problems.append(violations(projection, of_version))
        if not keeps_every_column(projection):
            row = struct(project_columns(projection, of_version))
    return read.select(
        *RAW_COLUMNS,
        row.column.alias(ROW),
        first_text(problems).column.alias(ERROR),
        F.lit(reading.has_unknown and table.finds_unknown_fields).alias(UNKNOWN),
    )


def refused_files(
    spark: SparkSession, refused: Sequence[tuple[FileEntry, Refused]], current: pa.Schema
) -> list[DataFrame]:
    """One dead letter for each file, without a value: it represents the whole file. An empty list if there is none."""
    if not refused:
        return []
    rows = [
        (None, None, entry.path, None, entry.item, instant(entry.modified), None, refusal.reason)
        for entry, refusal in refused
    ]
    letters = spark.createDataFrame(rows, f"{RAW_SCHEMA}, {ERROR} STRING")
    return [_without_row(letters, current)]


def no_rows(spark: SparkSession, current: pa.Schema) -> DataFrame:
    return _without_row(spark.createDataFrame([], f"{RAW_SCHEMA}, {ERROR} STRING"), current)


def all_of(spark: SparkSession, parts: Sequence[DataFrame], current: pa.Schema) -> DataFrame:
    return reduce(DataFrame.union, parts) if parts else no_rows(spark, current)


def _without_row(letters: DataFrame, current: pa.Schema) -> DataFrame:
    row = Expression("NULL").cast(type_sql(spark_schema(current)))
    return letters.select(*RAW_COLUMNS, row.column.alias(ROW), ERROR, F.lit(False).alias(UNKNOWN))


def _looked_up(numbers: dict[str, int]) -> Expression:
    # One literal that Spark folds to a map: otherwise a thousand files would be a thousand arguments.
    table = call("from_json", literal(json.dumps(numbers, ensure_ascii=False)), literal("MAP<STRING, BIGINT>"))
    stray = call("concat", literal("laminae: not a file of this range: "), column(PATH))
    return call("coalesce", call("element_at", table, column(PATH)), call("raise_error", stray).cast("BIGINT"))
