"""Decodes Parquet files, with one vectorised scan for each combination of file schema and version.

Columns are read under the file's own names, so that neither session settings nor renames affect the scan.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark_types

from laminae.schema.column import columns_of
from laminae.schema.projection import FillWith, projection_between
from laminae.spark.catalyst.expression import Expression, call, column, first_text, literal, options_map, struct, when
from laminae.spark.catalyst.paths import literal_path, reading_many
from laminae.spark.catalyst.plans.plan_template import Template
from laminae.spark.catalyst.plans.prepared_frame import no_rows
from laminae.spark.catalyst.types import spark_type
from laminae.spark.formats.column_matching import grown, misfit, under_live_names, version_names
from laminae.spark.formats.fast_path import TemplateRows, kept_template
from laminae.spark.formats.file_format import FileFormat
from laminae.spark.formats.file_records import (
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
from laminae.spark.formats.json.records import json_records
from laminae.spark.formats.parquet.footers import Footer, Refused, footers
from laminae.spark.formats.projection import project_columns, violations
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN, Decoded
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.schema.projection import ColumnProjection
    from laminae.spark.sources.files.listing import FileEntry

FILE = "_file"
LOCATION = "_location"
NANOSECONDS = 1000
LOSSY = "{name} has nanoseconds, which a TIMESTAMP does not keep"
# The value of a dead letter is its row as JSON, which the JSON decoder reads on replay: nothing may be truncated or
# omitted.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class _Group:
    """Files of one schema that are decoded with one version."""

    footer: Footer
    decoder: Decoder
    files: tuple[FileEntry, ...]

    @property
    def columns(self) -> pa.Schema:
        """The file's columns under the version's names."""
        return under_live_names(self.footer.schema, self.decoder)


def open_format(source: SourceRecord) -> FileFormat:
    return FileFormat(ParquetReader())


class ParquetReader:
    """`laminae.spark.formats.file_format.FileReader` for Parquet."""

    def decoded(self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> Decoded:
        groups, refused = _grouped(files, table)
        parts = [_scan(spark, group, table) for group in groups]
        parts += refused_files(spark, refused, table.current)

        def wanted(current: pa.Schema) -> pa.Schema:
            # Oldest first: if a field id has two names, the name in the newer file wins.
            for group in sorted(groups, key=lambda group: group.files[-1].item):
                current = grown(current, group.columns, _former_names(table.decoders[-1]))
            return current

        return Decoded(all_of(spark, parts, table.current), wanted)

    def quick_rows(
        self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable, fits: str | None
    ) -> TemplateRows | None:
        """Only for files of one schema that does not require a change of the source's schema."""
        groups, refused = _grouped(files, table)
        if len(groups) != 1 or refused or groups[0].footer.nanoseconds or _asks_for_more(groups[0], table):
            return None
        group = groups[0]

        def template(columns: tuple[str, ...] | None) -> Template:
            key = (columns_of(group.footer.schema), group.decoder.version, fits, columns)
            return kept_template(table, key, lambda: _template(spark, group, table, fits, columns))

        def scanned(columns: Sequence[str]) -> DataFrame:
            # Spark does not read files with an empty schema.
            return _scanned(spark, group, columns) if columns else _scanned(spark, group).select()

        return TemplateRows(spark, template, scanned, lambda columns: [entry.path for entry in group.files])

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        """Decode again the rows that were rejected individually: their dead letters contain them as JSON."""
        return json_records(letters, table).records.select(*RAW_COLUMNS, ROW, ERROR, UNKNOWN)

    def grown(self, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        """The version's schema, extended by what the footers of the files require, oldest first."""
        outcomes = footers(files)
        readable = [footer.schema for footer in outcomes if isinstance(footer, Footer)]
        current = decoder.schema
        for schema in readable:
            current = grown(current, under_live_names(schema, decoder), _former_names(decoder))
        return current if readable else next(refused for refused in outcomes if isinstance(refused, Refused))


def _grouped(files: Sequence[FileEntry], table: DecoderTable) -> tuple[list[_Group], list[tuple[FileEntry, Refused]]]:
    groups: dict[object, list[FileEntry]] = defaultdict(list)
    kinds: dict[object, tuple[Footer, Decoder]] = {}
    refused: list[tuple[FileEntry, Refused]] = []
    misfits: dict[object, str | None] = {}
    for entry, footer in zip(files, footers(files), strict=True):
        if isinstance(footer, Refused):
            refused.append((entry, footer))
            continue
        decoder = table.at(entry.item)
        # Columns are interned: equal schemas are the same tuple of nodes.
        key = (columns_of(footer.schema), footer.nanoseconds, decoder.version)
        if key not in misfits:
            misfits[key] = misfit(under_live_names(footer.schema, decoder), decoder.schema)
        problem = misfits[key]
        if problem is not None:
            refused.append((entry, Refused(problem)))
        else:
            groups[key].append(entry)
            kinds[key] = (footer, decoder)
    return [_Group(*kinds[key], tuple(entries)) for key, entries in groups.items()], refused


def _scan(spark: SparkSession, group: _Group, table: DecoderTable) -> DataFrame:
    read, scan = _Columns(group), _scanned(spark, group)
    file = struct((name, column(name)) for name in scan.columns) if scan.columns else literal(0)
    # The file may have a column named `_metadata`; `metadataColumn` refers to Spark's own.
    located = scan.select(file.column.alias(FILE), scan.metadataColumn("_metadata").alias(LOCATION))
    frame = located.select(
        FILE,
        path_of(column(LOCATION).field("file_path")).column.alias(PATH),
        column(LOCATION).field("row_index").column.alias(INDEX),
    )
    projection = _of_version(group)
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


def _of_version(group: _Group) -> ColumnProjection:
    """The projection from the files' columns to those of the version, which has defaults for absent columns."""
    return projection_between(group.columns, group.decoder.schema, fill=FillWith.WRITE)


def _scanned(spark: SparkSession, group: _Group, columns: Sequence[str] | None = None) -> DataFrame:
    """These columns of the files, unconverted; all of them by default."""
    fields = _Columns(group).scanned()
    schema = spark_types.StructType([field for field in fields if columns is None or field.name in columns])
    with reading_many(spark, len(group.files)):
        return spark.read.schema(schema).parquet(*(literal_path(entry.path) for entry in group.files))


def _template(
    spark: SparkSession, group: _Group, table: DecoderTable, fits: str | None, columns: tuple[str, ...] | None
) -> Template:
    """The template from the columns of a file to these columns of the rows; it filters out rows that do not fit."""
    leaf = no_rows(spark, spark_types.StructType(_Columns(group).scanned()))
    names = group.footer.schema.names
    projection = _of_version(group)

    def scanned(index: int) -> Expression:
        return Expression("NULL") if pa.types.is_null(group.footer.schema.field(index).type) else column(names[index])

    read = struct(project_columns(projection, scanned))
    rows = leaf.select(read.column.alias(READ), violations(projection, scanned).column.alias(ERROR))
    rows = rows.where(F.col(ERROR).isNull()).select(READ)
    last = projection_between(group.decoder.schema, table.current)
    of_version = group.decoder.schema.names
    shown = project_columns(last, lambda index: column(READ).field(of_version[index]))
    problem = violations(last, lambda index: column(READ).field(of_version[index]))
    projected = rows.where(problem.is_null().column).select(*(value.column.alias(name) for name, value in shown))
    projected = projected if fits is None else projected.where(fits)
    return Template(leaf, projected if columns is None else projected.select(*map(quoted, columns)))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a group as expressions over the columns of its scan."""

    group: _Group

    def scanned(self) -> list[spark_types.StructField]:
        """The fields requested from Spark; a column of null type has no values to read."""
        schema, fine = self.group.footer.schema, self.group.footer.nanoseconds
        return [
            spark_types.StructField(field.name, spark_types.LongType() if field.name in fine else spark_type(kind))
            for field, kind in zip(schema, self.group.columns.types, strict=True)
            if not pa.types.is_null(field.type)
        ]

    def value(self, index: int) -> Expression:
        """Column `index` in its type in `group.columns`."""
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
        problems = []
        for index, field in enumerate(self.group.footer.schema):
            if field.name in self.group.footer.nanoseconds:
                is_lost = column(FILE).field(field.name).is_there() & self.value(index).is_null()
                problems.append(when(is_lost, literal(LOSSY.format(name=field.name))))
        return problems

    def letter(self) -> Expression:
        """The row as JSON under the version's names, so that later renames still match its columns."""
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
    return {live: frozenset(formers) for live, formers in names.items()}
