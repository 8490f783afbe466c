"""Decodes CSV files, with one `from_csv` for each combination of header and version.

A raw record has the header as its key and its own bytes as its value, so a dead letter can be decoded again without
its file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.engine.source_spec import spec_of
from laminae.schema.column import columns_of
from laminae.spark.catalyst.expression import (
    Expression,
    any_of,
    call,
    column,
    each,
    first_text,
    let,
    literal,
    options_map,
    struct,
    when,
)
from laminae.spark.catalyst.literals import default_sql
from laminae.spark.catalyst.paths import literal_path, reading_many
from laminae.spark.formats.column_matching import misfit, under_live_names
from laminae.spark.formats.csv.inference import grown_by_records
from laminae.spark.formats.csv.shape import BOM, Shape, header_names, quoted_pattern, record_pattern, records_in, shape
from laminae.spark.formats.csv.values import misread, reads_text, typed
from laminae.spark.formats.file_format import FileFormat
from laminae.spark.formats.file_records import (
    PATH,
    READ,
    Reading,
    all_of,
    decoded_records,
    line_number,
    path_of,
    place_columns,
    refused_files,
)
from laminae.spark.formats.inference import MOST_RECORDS
from laminae.spark.formats.parquet.footers import Refused, in_parallel
from laminae.spark.formats.protocol import ERROR, UNKNOWN, Decoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.catalog.model import SourceRecord
    from laminae.codec.decoders import Decoder, DecoderTable
    from laminae.schema.column import Column as ColumnNode
    from laminae.spark.sources.files.listing import FileEntry

PARSED, BAD, GARBLED = "_parsed", "_bad", "_garbled"
# A text that no file contains: two Unicode noncharacters and a name.
NULL_MARK = "\ufffe\uffffnull"
# Spark's parser is limited to about this many fields (`maxColumns`) and fails the job at a record with more.
MOST_FIELDS = 20_000
SAMPLE_BYTES = 1_000_000
REASONS = {
    "utf8": "the record is not valid UTF-8",
    "ragged": "the record does not have the {count} fields of its header",
    "quote": "a quote is not closed, or text follows a closing quote",
    "null": "{name} is NULL in a NOT NULL column",
}


@dataclass(frozen=True, slots=True)
class _Group:
    """Files with the same header, decoded with one version. `is_whole`: their records may span lines."""

    header: bytes
    decoder: Decoder
    is_whole: bool
    files: tuple[FileEntry, ...]


def open_format(source: SourceRecord) -> FileFormat:
    spec = spec_of(source)
    delimiter = (spec.setting("csv_delimiter") or ",").replace("\\t", "\t")
    return FileFormat(CsvReader(delimiter, has_order=spec.keeps_table))


@dataclass(frozen=True, slots=True)
class CsvReader:
    """`formats.file_format.FileReader` for CSV. `has_order`: the offset must give the order of records in a file."""

    delimiter: str
    has_order: bool = False

    def decoded(self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable) -> Decoded:
        groups, refused = self._grouped(files, table)
        parts = [self._records(self._raw(spark, group), group.header, group.decoder, table) for group in groups]
        parts += refused_files(spark, refused, table.current)
        records = all_of(spark, parts, table.current)
        aliases = table.decoders[-1].aliases

        def wanted(current: pa.Schema) -> pa.Schema:
            suspects = records.where((F.col(UNKNOWN) | F.col(ERROR).isNotNull()) & F.col("value").isNotNull())
            values_by_header: dict[bytes, list[bytes]] = defaultdict(list)
            for row in suspects.select("key", "value").limit(MOST_RECORDS).collect():
                values_by_header[bytes(row["key"])].append(bytes(row["value"]))
            for header, values in values_by_header.items():
                current = grown_by_records(current, header, values, self.delimiter, aliases)
            return current

        return Decoded(records, wanted)

    def quick_rows(
        self, spark: SparkSession, files: Sequence[FileEntry], table: DecoderTable, fits: str | None
    ) -> None:
        return None

    def decoded_again(self, letters: DataFrame, table: DecoderTable) -> DataFrame:
        """Decode again the records that were rejected individually, with the headers stored as their keys."""
        headers = [bytes(row["key"]) for row in letters.select("key").distinct().collect()]
        parts = [
            self._records(letters.where(F.col("key") == F.lit(header)), header, table.decoders[-1], table)
            for header in sorted(headers)
        ]
        return all_of(letters.sparkSession, parts, table.current)

    def grown(self, files: Sequence[FileEntry], decoder: Decoder) -> pa.Schema | Refused:
        """The version's schema, extended by what the first records of these files require, oldest first."""
        current, reasons = decoder.schema, []
        for entry in files:
            outcome = shape(entry.path, entry.size, entry.modified, self.delimiter)
            if isinstance(outcome, Shape):
                names = header_names(outcome.header, self.delimiter, _known(decoder))
                outcome = names if isinstance(names, Refused) else outcome
            if isinstance(outcome, Shape):
                records = _first_records(entry.path, self.delimiter)
                current = grown_by_records(current, outcome.header, records, self.delimiter, decoder.aliases)
            else:
                reasons.append(outcome or Refused("its files are empty"))
        return reasons[-1] if len(reasons) == len(files) else current

    def _grouped(
        self, files: Sequence[FileEntry], table: DecoderTable
    ) -> tuple[list[_Group], list[tuple[FileEntry, Refused]]]:
        shapes = in_parallel(lambda entry: shape(entry.path, entry.size, entry.modified, self.delimiter), files)
        groups: dict[tuple[bytes, int, bool], list[FileEntry]] = defaultdict(list)
        decoders = {decoder.version: decoder for decoder in table.decoders}
        refused: list[tuple[FileEntry, Refused]] = []
        for entry, outcome in zip(files, shapes, strict=True):
            if isinstance(outcome, Shape):
                decoder = table.at(entry.item)
                problem = self._misfit(outcome.header, decoder)
                if problem is None:
                    groups[outcome.header, decoder.version, outcome.has_long_records].append(entry)
                else:
                    refused.append((entry, problem))
            elif outcome is not None:
                refused.append((entry, outcome))
        csv_groups = [
            _Group(header, decoders[v], whole, tuple(entries)) for (header, v, whole), entries in groups.items()
        ]
        return csv_groups, refused

    def _misfit(self, header: bytes, decoder: Decoder) -> Refused | None:
        names = header_names(header, self.delimiter, _known(decoder))
        if isinstance(names, Refused):
            return names
        problem = misfit(_as_version(names, decoder), decoder.schema)
        return None if problem is None else Refused(problem)

    def _raw(self, spark: SparkSession, group: _Group) -> DataFrame:
        """RAW_SCHEMA, and the path of the file."""
        paths = [literal_path(entry.path) for entry in group.files]
        with reading_many(spark, len(paths)):
            # Only a newline ends a line, as in `record_pattern`.
            text = spark.read.text(paths, wholetext=group.is_whole, lineSep="\n")
        offset = line_number() if self.has_order else Expression("CAST(NULL AS BIGINT)")
        path = path_of(Expression("_metadata.file_path")).column.alias(PATH)
        lines = text.select("value", path, offset.column.alias("offset"))
        if group.is_whole:
            pattern = record_pattern(self.delimiter.encode().decode("latin-1"))
            # One character for each byte, so that invalid UTF-8 is preserved.
            whole = Expression("decode(CAST(value AS BINARY), 'ISO-8859-1')")
            records = F.posexplode(F.regexp_extract_all(whole.column, F.lit(pattern), F.lit(1)))
            place = F.col("pos").cast("bigint") if self.has_order else F.col("offset")
            lines = lines.select(PATH, "offset", records.alias("pos", "value")).select(
                F.encode("value", "ISO-8859-1").alias("value"), PATH, place.alias("offset")
            )
        stripped = lines.withColumn("value", _without_return(column("value")).column)
        headers = [F.lit(bytearray(line)) for line in (b"", group.header, BOM + group.header)]
        places = {name: expression.column for name, expression in place_columns(group.files).items()}
        return stripped.where(~F.col("value").isin(*headers)).select(
            F.lit(bytearray(group.header)).alias("key"),
            "value",
            places["partition"].alias("partition"),
            "offset",
            *(places[name].alias(name) for name in ("item", "timestamp", "version")),
        )

    def _records(self, raw: DataFrame, header: bytes, decoder: Decoder, table: DecoderTable) -> DataFrame:
        names_or_refusal = header_names(header, self.delimiter, _known(decoder))
        names = () if isinstance(names_or_refusal, Refused) else tuple(_as_version(names_or_refusal, decoder).names)
        text = column("value").cast("STRING")
        fields = {name: column(PARSED).field(f"c{index}") for index, name in enumerate(names)}
        values = [
            (node.name, typed(fields[node.name], node.type) if node.name in fields else _default(node))
            for node in columns_of(decoder.schema)
        ]
        parsed = raw.withColumn(PARSED, self._parse(text, len(names)).column)
        read = parsed.withColumns({READ: struct(values).column, GARBLED: _is_garbled(text).column})
        # Only a dead letter can be a misfit here: its file fitted the version that was then in force (see `_grouped`).
        refused = self._misfit(header, decoder)
        problem = _problem(decoder, fields, self.delimiter) if refused is None else literal(refused.reason)
        unknown = set(names) - set(decoder.schema.names) - {former for former, _ in decoder.aliases}
        reading = Reading(decoder, problem, has_unknown=bool(unknown))
        return decoded_records(read, {name: column(name) for name in raw.columns}, reading, table)

    def _parse(self, text: Expression, count: int) -> Expression:
        schema = ", ".join([*(f"c{index} STRING" for index in range(count)), f"{BAD} STRING"])
        options = {
            "sep": self.delimiter,
            "escape": '"',
            "nullValue": NULL_MARK,
            "emptyValue": "",
            "mode": "PERMISSIVE",
            # Without it, Spark drops a carriage return before a newline inside quotes.
            "multiLine": "true",
            "columnNameOfCorruptRecord": BAD,
            "maxColumns": str(MOST_FIELDS + count),
        }
        parsed = call("from_csv", text, literal(schema), options_map(options))
        delimiters = call("regexp_count", text, literal(re.escape(self.delimiter)))
        fits = call("length", text).compared("<", MOST_FIELDS) | delimiters.compared("<", MOST_FIELDS)
        # Non-deterministic, so that Spark neither inlines it where it is used nor pushes a filter on it below it.
        return when(call("monotonically_increasing_id").compared(">=", 0) & fits, parsed)


def _as_version(names: Sequence[str], decoder: Decoder) -> pa.Schema:
    """The columns of the header with the version's names and types: text can be converted to any type."""
    types = {field.name: field.type for field in decoder.schema}
    live = under_live_names(pa.schema([pa.field(name, pa.null()) for name in names]), decoder)
    return pa.schema([pa.field(name, types.get(name, pa.string())) for name in live.names])


def _known(decoder: Decoder) -> frozenset[str]:
    return frozenset((*decoder.schema.names, *(former for former, _ in decoder.aliases)))


def _default(node: ColumnNode) -> Expression:
    return Expression(default_sql(node, (node.name,)))


def _is_garbled(text: Expression) -> Expression:
    """Whether the record is not valid UTF-8.

    Inside a lambda, because Spark then splits the generated projection into many small methods. Otherwise it generates
    one method above the size that the JVM compiles (8000 bytes): ten columns took three times as long.
    """
    return each("exists", call("array", text), lambda value: ~call("is_valid_utf8", value))


def _problem(decoder: Decoder, fields: dict[str, Expression], delimiter: str) -> Expression:
    """Why the record has no row. A cheap test comes first, because few records need a reason."""
    parsed, text = column(PARSED), column("value").cast("STRING")
    # Spark's parser drops a quote that is not closed, and takes the rest of the record as the field.
    is_misquoted = call("contains", text, literal('"')) & ~call("rlike", text, literal(quoted_pattern(delimiter)))
    is_ragged = parsed.is_null() | parsed.field(BAD).is_there()
    tests = [column(GARBLED), is_misquoted, is_ragged]
    reasons = [
        when(column(GARBLED), literal(REASONS["utf8"])),
        when(is_misquoted, literal(REASONS["quote"])),
        when(is_ragged, literal(REASONS["ragged"].format(count=len(fields)))),
    ]
    for node in columns_of(decoder.schema):
        if node.name not in fields:
            continue
        field, is_absent = fields[node.name], column(READ).field(node.name).is_null()
        if not reads_text(node.type):
            tests.append(is_absent & field.is_there())
            reasons.append(when(is_absent, misread(field, node.type, node.name)))
        if not node.nullable:
            tests.append(is_absent)
            reasons.append(when(is_absent, literal(REASONS["null"].format(name=node.name))))
    return when(any_of(tests), let(first_text(reasons), lambda reason: reason))


def _without_return(record: Expression) -> Expression:
    """The record without the carriage return before its newline. Works on bytes, which may not be valid UTF-8."""
    whole = record.cast("BINARY")
    shorter = Expression(f"substring({whole.sql}, 1, octet_length({whole.sql}) - 1)")
    return when(call("endswith", record.cast("STRING"), literal("\r")), shorter, whole)


def _first_records(path: str, delimiter: str) -> list[bytes]:
    """The complete records at the beginning of a file, without its header."""
    with open(path, "rb") as file:
        return records_in(file.read(SAMPLE_BYTES), delimiter)[1:]
