"""Parquet files as decoded records: one vectorised scan for the files of one schema under one version.

Columns are read under the file's own names, so that neither a setting of the session nor a rename matters.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark_types

from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN, Decoded
from laminae.spark.expression import Expression, call, column, first_text, literal, options_map, struct, when
from laminae.spark.files.footers import Footer, Refused, footers
from laminae.spark.files.matching import grown, misfit, under_live_names, version_names
from laminae.spark.files.records import (
    INDEX,
    PATH,
    READ,
    Reading,
    all_of,
    decoded_records,
    path_of,
    place_columns,
    refused_files,
)
from laminae.spark.json_records import json_records
from laminae.spark.paths import literal_path, reading_many
from laminae.spark.project import project_columns, violations
from laminae.spark.quick import TemplateRows, kept_template, no_rows
from laminae.spark.template import Template
from laminae.spark.types import spark_type
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.spark.logs.listing import FileEntry

FILE = "_file"
NANOSECONDS = 1000
LOSSY = "{name} has nanoseconds, which a TIMESTAMP does not keep"
# A letter's value is its row as JSON, which the JSON decoder reads again: nothing may be cut or left out.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class _Group:
    """Files of one schema that are read by one version."""

    footer: Footer
    decoder: Decoder
    files: tuple[FileEntry, ...]

    @property
    def columns(self) -> pa.Schema:
        """The file's columns under the version's names."""
        return under_live_names(self.footer.schema, self.decoder)


class ParquetReader:
    """`laminae.spark.logs.files.FileReader` for Parquet."""

    def decoded(self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> Decoded:
        groups, refused = _grouped(files, table)
        parts = [_scan(spark, group, table) for group in groups]
        parts += refused_files(spark, refused, table.current)

        def wanted(current: pa.Schema) -> pa.Schema:
            # Oldest first: of two names for one field id the newer file's stands.
            for group in sorted(groups, key=lambda group: group.files[-1].item):
                current = grown(current, group.columns, _former_names(table.decoders[-1]))
            return current

        return Decoded(all_of(spark, parts, table.current), wanted)

    def quick_rows(
        self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable, fits: str | None
    ) -> TemplateRows | None:
        """Of files of one schema in which nothing is asked for that they have beyond the source's."""
        groups, refused = _grouped(files, table)
        if len(groups) != 1 or refused or groups[0].footer.nanoseconds or _asks_for_more(groups[0], table):
            return None
        group = groups[0]

        def template(columns: tuple[str, ...] | None) -> Template:
            key = (columns_of(group.footer.schema), group.decoder.version, fits, columns)
            return kept_template(table, key, lambda: _template(spark, group, table, fits, columns))

        def scanned(columns: Sequence[str]) -> DataFrame:
            # Spark reads no files of no columns.
            return _scanned(spark, group, columns) if columns else _scanned(spark, group).select()

        return TemplateRows(spark, template, scanned, lambda columns: [entry.path for entry in group.files])

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        """Rows that were refused one by one: their letters hold them as JSON."""
        return json_records(letters, table).records.select(*RAW_COLUMNS, ROW, ERROR, UNKNOWN)

    def grown(self, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        """The version's schema with what the footers have beyond it, oldest first."""
        found = footers(files)
        readable = [footer.schema for footer in found if isinstance(footer, Footer)]
        current = decoder.schema
        for schema in readable:
            current = grown(current, under_live_names(schema, decoder), _former_names(decoder))
        return current if readable else next(refused for refused in found if isinstance(refused, Refused))


def _grouped(files: Sequence[FileEntry], table: DecoderTable) -> tuple[list[_Group], list[tuple[FileEntry, Refused]]]:
    groups: dict[object, list[FileEntry]] = defaultdict(list)
    kinds: dict[object, tuple[Footer, Decoder]] = {}
    refused: list[tuple[FileEntry, Refused]] = []
    misfits: dict[object, str | None] = {}
    for entry, found in zip(files, footers(files), strict=True):
        if isinstance(found, Refused):
            refused.append((entry, found))
            continue
        decoder = table.at(entry.item)
        # Columns are interned: equal schemas are the same tuple of nodes.
        key = (columns_of(found.schema), found.nanoseconds, decoder.version)
        if key not in misfits:
            misfits[key] = misfit(under_live_names(found.schema, decoder), decoder.schema)
        problem = misfits[key]
        if problem is not None:
            refused.append((entry, Refused(problem)))
        else:
            groups[key].append(entry)
            kinds[key] = (found, decoder)
    return [_Group(*kinds[key], tuple(entries)) for key, entries in groups.items()], refused


def _scan(spark: SparkSession, group: _Group, table: DecoderTable) -> DataFrame:
    read, scan = _Columns(group), _scanned(spark, group)
    file = struct((name, column(name)) for name in scan.columns) if scan.columns else literal(0)
    frame = scan.select(
        file.column.alias(FILE),
        path_of(Expression("_metadata.file_path")).column.alias(PATH),
        F.col("_metadata.row_index").alias(INDEX),
    )
    projection = projection_between(group.columns, group.decoder.schema)
    problem = first_text([*read.lossy(), violations(projection, read.value)])
    reading = Reading(group.decoder, problem, has_unknown=_asks_for_more(group, table))
    raw = {
        "key": Expression("CAST(NULL AS BINARY)"),
        "value": read.letter().cast("BINARY"),
        "offset": column(INDEX),
        **place_columns(group.files),
    }
    row = struct(project_columns(projection, read.value))
    return decoded_records(frame.withColumn(READ, row.column), raw, reading, table)


def _scanned(spark: SparkSession, group: _Group, columns: Sequence[str] | None = None) -> DataFrame:
    """The columns of the files, as they are: all of them unless told."""
    found = _Columns(group).scanned()
    schema = spark_types.StructType([each for each in found if columns is None or each.name in columns])
    with reading_many(spark, len(group.files)):
        return spark.read.schema(schema).parquet(*(literal_path(entry.path) for entry in group.files))


def _template(
    spark: SparkSession, group: _Group, table: DecoderTable, fits: str | None, columns: tuple[str, ...] | None
) -> Template:
    """From the columns of a file to these columns of the rows, all that do not fit left out."""
    leaf = no_rows(spark, spark_types.StructType(_Columns(group).scanned()))
    names = group.footer.schema.names
    projection = projection_between(group.columns, group.decoder.schema)

    def scanned(index: int) -> Expression:
        return Expression("NULL") if pa.types.is_null(group.footer.schema.field(index).type) else column(names[index])

    read = struct(project_columns(projection, scanned))
    rows = leaf.select(read.column.alias(READ), violations(projection, scanned).column.alias(ERROR))
    rows = rows.where(F.col(ERROR).isNull()).select(READ)
    last = projection_between(group.decoder.schema, table.current)
    of_version = group.decoder.schema.names
    shown = project_columns(last, lambda index: column(READ).field(of_version[index]))
    problem = violations(last, lambda index: column(READ).field(of_version[index]))
    made = rows.where(problem.is_null().column).select(*(value.column.alias(name) for name, value in shown))
    made = made if fits is None else made.where(fits)
    return Template(leaf, made if columns is None else made.select(*map(quoted, columns)))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a group as expressions over what its scan gives."""

    group: _Group

    def scanned(self) -> list[spark_types.StructField]:
        """What Spark is asked for; a column without a type has no values to read."""
        schema, fine = self.group.footer.schema, self.group.footer.nanoseconds
        return [
            spark_types.StructField(field.name, spark_types.LongType() if field.name in fine else spark_type(kind))
            for field, kind in zip(schema, self.group.columns.types, strict=True)
            if not pa.types.is_null(field.type)
        ]

    def value(self, index: int) -> Expression:
        """Column `index` in the type that `group.columns` gives it."""
        field = self.group.footer.schema.field(index)
        if pa.types.is_null(field.type):
            return Expression("NULL")
        stored = column(FILE).field(field.name)
        if field.name not in self.group.footer.nanoseconds:
            return stored
        is_wall_clock = self.group.columns.field(index).type.tz is None
        micros = Expression(f"({stored.sql} DIV {NANOSECONDS})")
        whole = call("pmod", stored, literal(NANOSECONDS)).compared("=", 0)
        return when(whole, _wall_clock(micros) if is_wall_clock else call("timestamp_micros", micros))

    def lossy(self) -> list[Expression]:
        found = []
        for index, field in enumerate(self.group.footer.schema):
            if field.name in self.group.footer.nanoseconds:
                is_lost = column(FILE).field(field.name).is_there() & self.value(index).is_null()
                found.append(when(is_lost, literal(LOSSY.format(name=field.name))))
        return found

    def letter(self) -> Expression:
        """The row as JSON under the version's names, so that renames that come later find its columns."""
        names = version_names(self.group.columns, self.group.decoder.schema)
        shown = [(name, self.value(index)) for index, name in enumerate(names) if name is not None]
        return call("to_json", struct(shown), options_map(JSON_OPTIONS)) if shown else literal("{}")


def _wall_clock(micros: Expression) -> Expression:
    return Expression(f"timestampadd(MICROSECOND, {micros.sql}, TIMESTAMP_NTZ '1970-01-01 00:00:00')")


def _asks_for_more(group: _Group, table: DecoderTable) -> bool:
    if not table.finds_unknown_fields:
        return False
    wanted = grown(table.current, group.columns, _former_names(table.decoders[-1]))
    return not wanted.equals(table.current, check_metadata=True)


def _former_names(decoder: Decoder) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = defaultdict(set)
    for former, live in decoder.aliases:
        names[live].add(former)
    return {live: frozenset(found) for live, found in names.items()}
