"""Decodes raw records into rows of the current schema with column expressions, in the JVM: Python handles no row.

A record that cannot be decoded keeps its raw columns and gets an error; nothing is dropped or raised here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from laminae.codec.value_encodings import as_sent, as_text, float_paths, has_rules
from laminae.engine.epochs.version_runs import can_share
from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from laminae.spark.catalyst.column_list import Columns
from laminae.spark.catalyst.expression import (
    FALSE,
    ZERO,
    Expression,
    call,
    cases,
    column,
    first_text,
    literal,
    struct,
    when,
)
from laminae.spark.formats.decode_stages import kept_stages, through
from laminae.spark.formats.json.exact_check import REASON, REASONS, UNKNOWN_FIELDS, depth_of, exact_check, field_types
from laminae.spark.formats.json.fast_check import FOUND, SEEN, Accounts, accounts, is_clean, seen_columns
from laminae.spark.formats.json.record import RecordFields, record_fields
from laminae.spark.formats.json.record_version import TEXT, version_by, version_of
from laminae.spark.formats.json.shared_decoder import shared_stages
from laminae.spark.formats.projection import keeps_every_column, project_columns, violations
from laminae.spark.formats.protocol import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION
from laminae.spark.formats.value_decoding import converted, lost_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable

PARSED, EXACT = "_parsed_{}", "_exact"
VERSION_OF = column(VERSION)
STAR = Expression("*")
# The cost of analysis and code generation grows with versions times columns: 35 versions of 35 columns in one plan took
# minutes.
MOST_COLUMNS = 64


def decode(raw: DataFrame, table: DecoderTable, exactly: bool = True, beside: tuple[str, ...] = ()) -> DataFrame:
    """`raw` with the columns `_row`, `_error`, `_unknown` and `_version` (see `formats/protocol.py`), and `beside`.

    Unless `exactly` is set, a record that needs the exact check gets an error that says so: the exact check doubles the
    cost of an epoch's plan, and most epochs have no such record.
    """
    parts = _parts(table)
    if len(parts) > 1:
        return reduce(DataFrame.unionAll, (_decode_part(raw, table, part, exactly, beside) for part in parts))
    spark = raw.sparkSession

    def make() -> Sequence[Columns]:
        return (shared_stages if can_share(table) else _stages)(spark, table, exactly, beside)

    return through(raw, kept_stages(table, (exactly, beside), make))


def is_decoded_at_once(table: DecoderTable) -> bool:
    """Whether a single plan contains every decoder of the table."""
    return len(_parts(table)) == 1


def _parts(table: DecoderTable) -> list[tuple[Decoder, ...]]:
    """The decoders in groups that are small enough for one plan."""
    if table.writers is not None or can_share(table):
        return [table.decoders]
    parts: list[tuple[Decoder, ...]] = []
    columns = 0
    for decoder in table.decoders:
        columns += len(decoder.schema)
        if not parts or columns > MOST_COLUMNS:
            parts.append(())
            columns = len(decoder.schema)
        parts[-1] = (*parts[-1], decoder)
    return parts


def _decode_part(
    raw: DataFrame, table: DecoderTable, part: tuple[Decoder, ...], exactly: bool, beside: tuple[str, ...]
) -> DataFrame:
    """The records of the versions in `part`; the last part also decodes the records of unknown versions."""
    version = version_of(table)
    other_versions = [decoder.version for decoder in table.decoders if decoder not in part]
    own = version.is_one_of([decoder.version for decoder in part])
    wanted = own if part[-1] is not table.decoders[-1] else ~version.is_one_of(other_versions)
    return decode(raw.where(wanted.column), replace(table, decoders=part), exactly, beside)


def _stages(spark: SparkSession, table: DecoderTable, exactly: bool, beside: tuple[str, ...]) -> Sequence[Columns]:
    """Successive projections: counts in the text, the parsed record, the exact check, the row or the error."""
    ruled = list(table.decoders)
    if table.exact_times:
        ruled = [replace(d, schema=as_text(d.schema, table.timestamp_unit)) for d in table.decoders]
    readings = [
        _Reading(decoder, table, _fields_of(decoder, table), column(PARSED.format(i)))
        for i, decoder in enumerate(ruled)
    ]
    is_known = VERSION_OF.is_one_of([decoder.version for decoder in table.decoders])
    record_accounts = _accounts(readings)
    is_suspect = is_known & ~is_clean(TEXT, SEEN, record_accounts)
    stages = [*_parsed(spark, table, readings), Columns(spark).add(STAR).add(record_accounts.keys, FOUND.sql)]
    closer: Sequence[Expression] = [when(is_suspect, literal(REASONS["suspect"]))]
    unknown = FALSE
    if exactly:
        stages.append(Columns(spark).add(STAR).add(when(is_suspect, _exact(table, readings)), EXACT))
        exact = column(EXACT)
        closer = [exact.field(REASON)]
        if table.finds_unknown_fields:
            unknown = call("coalesce", exact.field(UNKNOWN_FIELDS), FALSE)
    converted_values = [pair for reading in readings for pair in reading.made()]
    if converted_values:
        stages.append(Columns(spark).add(STAR))
        for value, name in converted_values:
            stages[-1].add(value, name)
    strange = when(~is_known, call("concat", literal(REASONS["version"]), VERSION_OF.cast("STRING")))
    error = first_text([*closer, strange, _choose(readings, _Reading.violations)])
    last = Columns(spark)
    for name in (*RAW_COLUMNS, *beside):
        last.add(column(name))
    row = _choose(readings, _Reading.row)
    # A cast may raise on a rejected record. A row that is the parsed struct has no casts; testing the error again would
    # cost a fifth more.
    last.add(row if row is readings[0].parsed else when(error.is_null(), row), ROW)
    stages.append(last.add(error, ERROR).add(unknown, UNKNOWN).add(VERSION_OF))
    return stages


@dataclass(frozen=True, slots=True)
class _Reading:
    """A record decoded with one version. `parsed` is NULL for records of other versions."""

    decoder: Decoder
    table: DecoderTable
    fields: RecordFields
    parsed: Expression

    @property
    def name(self) -> str:
        return self.parsed.sql.strip("`")

    def parse(self, version: Expression | None = None) -> Expression:
        """The parsed record; if `version` is given, NULL for records of other versions."""
        parsed = self.fields.parse(TEXT)
        guarded = parsed if version is None else when(version.compared("=", self.decoder.version), parsed)
        # Non-deterministic, so that Spark neither inlines it where it is used nor pushes a filter on it below it.
        return when(call("monotonically_increasing_id").compared(">=", 0), guarded)

    def accounts(self) -> Accounts:
        return accounts(self.fields, TEXT, self.parsed)

    def echo(self) -> Expression:
        return self.fields.echo(TEXT, self.parsed)

    def types(self) -> Expression:
        return field_types(self.fields.all, float_paths(self.decoder.schema))

    def violations(self) -> Expression:
        problem = violations(projection_between(self.decoder.schema, self.table.current), self._column)
        if not has_rules(self.decoder.schema):
            return problem
        return first_text([lost_values(self.decoder.schema, self._read, self._column), problem])

    def row(self) -> Expression:
        projection = projection_between(self.decoder.schema, self.table.current)
        is_read = self.fields.are_the_columns and not has_rules(self.decoder.schema)
        if is_read and keeps_every_column(projection):
            return self.parsed
        return struct(project_columns(projection, self._column))

    def made(self) -> Iterator[tuple[Expression, str]]:
        """Values whose encoding differs from the column's type, converted once for both the row and the checks."""
        for index, field in enumerate(self.decoder.schema):
            if has_rules([field]):
                yield converted(columns_of(self.decoder.schema)[index], self._read(index)), self._made(index)

    def _column(self, index: int) -> Expression:
        return column(self._made(index)) if has_rules([self.decoder.schema.field(index)]) else self._read(index)

    def _made(self, index: int) -> str:
        return f"{self.name}_{index}"

    def _read(self, index: int) -> Expression:
        return self.fields.declared(index, TEXT, self.parsed)


def _fields_of(decoder: Decoder, table: DecoderTable) -> RecordFields:
    return record_fields(replace(decoder, schema=as_sent(decoder.schema)), table.version_field)


def _parsed(spark: SparkSession, table: DecoderTable, readings: Sequence[_Reading]) -> list[Columns]:
    """The counts in the text, the record's version, and the parsed record of each version, for its own records only."""
    newest = readings[-1]
    stamp = None
    if table.version_field is not None:
        stamp = newest.fields.value(newest.fields.named(table.version_field), TEXT, newest.parsed)
    version = version_by(table, stamp)
    seen = Columns(spark).add(STAR).add_all(seen_columns(spark.sparkContext))
    if table.version_field is not None:
        # If the stamp is inside the record, the newest version parses all records to find it: most are of that version.
        first = [seen.add(newest.parse(), newest.name)]
        rest = Columns(spark).add(STAR).add(version, VERSION)
        for reading in readings[:-1]:
            rest.add(reading.parse(version), reading.name)
        return [*first, rest]
    seen.add(version, VERSION)
    for reading in readings:
        seen.add(reading.parse(version if len(readings) > 1 else None), reading.name)
    return [seen]


def _accounts(readings: Sequence[_Reading]) -> Accounts:
    return Accounts(
        keys=call("coalesce", _choose(readings, lambda reading: reading.accounts().keys), ZERO),
        objects=_choose(readings, lambda reading: reading.accounts().objects),
        nulls=_choose(readings, lambda reading: reading.accounts().nulls),
        is_odd=_choose(readings, lambda reading: reading.accounts().is_odd),
    )


def _exact(table: DecoderTable, readings: Sequence[_Reading]) -> Expression:
    depth = max(depth_of(reading.fields.all) for reading in readings)
    echo, types = _choose(readings, _Reading.echo), _choose(readings, _Reading.types)
    return exact_check(TEXT, [echo], types, depth, table.finds_unknown_fields)


def _choose(readings: Sequence[_Reading], value: Callable[[_Reading], Expression]) -> Expression:
    if len(readings) == 1:
        return value(readings[0])
    return cases([(VERSION_OF.compared("=", reading.decoder.version), value(reading)) for reading in readings])
