"""Raw records to rows of the current schema, as column expressions: the JVM reads the JSON, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, ROW, UNKNOWN
from laminae.spark.expression import FALSE, ZERO, Expression, call, cases, column, first_text, literal, struct, when
from laminae.spark.json_checks import REASON, REASONS, UNKNOWN_FIELDS, depth_of, exact_check, field_types
from laminae.spark.project import keeps_every_column, project_columns, violations
from laminae.spark.record import RecordFields, record_fields
from laminae.spark.suspects import SEEN, Accounts, accounts, is_clean, seen_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from laminae.codec.decoders import Decoder, DecoderTable

PARSED, EXACT, VERSION_NAME = "_parsed_{}", "_exact", "_version"
VERSION = column(VERSION_NAME)
TEXT = column("value").cast("STRING")


def decode(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `contract`)."""
    readings = [
        _Reading(decoder, table, record_fields(decoder, table.version_field), column(PARSED.format(i)))
        for i, decoder in enumerate(table.decoders)
    ]
    is_known = VERSION.is_one_of([decoder.version for decoder in table.decoders])
    is_suspect = is_known & ~is_clean(TEXT, SEEN, _accounts(readings))
    exact = column(EXACT)
    checked = _parsed(raw, table, readings).withColumn(EXACT, when(is_suspect, _exact(table, readings)).column)
    error = first_text(
        [
            exact.field(REASON),
            when(~is_known, call("concat", literal(REASONS["version"]), VERSION.cast("STRING"))),
            _choose(readings, _Reading.violations),
        ]
    )
    unknown = call("coalesce", exact.field(UNKNOWN_FIELDS), FALSE) if table.finds_unknown_fields else FALSE
    return checked.select(
        *raw.columns,
        when(error.is_null(), _choose(readings, _Reading.row)).column.alias(ROW),
        error.column.alias(ERROR),
        unknown.column.alias(UNKNOWN),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A record as one version reads it. `parsed` is NULL for records of other versions."""

    decoder: Decoder
    table: DecoderTable
    fields: RecordFields
    parsed: Expression

    @property
    def name(self) -> str:
        return self.parsed.sql.strip("`")

    def parse(self, version: Expression | None = None) -> Expression:
        """The parsed record; with a version to look at, only if it is this one."""
        parsed = self.fields.parse(TEXT)
        guarded = parsed if version is None else when(version.compared("=", self.decoder.version), parsed)
        # Not deterministic, so that Spark neither merges it into its uses nor pushes a filter on it below.
        return when(call("monotonically_increasing_id").compared(">=", 0), guarded)

    def accounts(self) -> Accounts:
        return accounts(self.fields, TEXT, self.parsed)

    def echo(self) -> Expression:
        return self.fields.echo(TEXT, self.parsed)

    def types(self) -> Expression:
        return field_types(self.fields.all)

    def violations(self) -> Expression:
        return violations(projection_between(self.decoder.schema, self.table.current), self._column)

    def row(self) -> Expression:
        projection = projection_between(self.decoder.schema, self.table.current)
        if self.fields.are_the_columns and keeps_every_column(projection):
            return self.parsed
        return struct(project_columns(projection, self._column))

    def _column(self, index: int) -> Expression:
        return self.fields.declared(index, TEXT, self.parsed)


def _version(table: DecoderTable, readings: Sequence[_Reading]) -> Expression:
    """The record's stamp if it has one, else the version in force at its item."""
    placed = [decoder for decoder in reversed(table.decoders) if decoder.since is not None]
    in_force = literal(table.decoders[0].version)
    if placed:
        places = [(column("item").compared(">=", d.since or 0), literal(d.version)) for d in placed]
        in_force = cases(places, in_force)
    stamps = [column("version")]
    if table.version_field is not None:
        newest = readings[-1]
        stamp = newest.fields.value(newest.fields.named(table.version_field), TEXT, newest.parsed)
        stamps.append(stamp.cast("BIGINT"))
    return call("coalesce", *stamps, in_force)


def _parsed(raw: DataFrame, table: DecoderTable, readings: Sequence[_Reading]) -> DataFrame:
    """`raw` with what its text holds, its version, and each version's reading, parsed for its own records alone."""
    newest = readings[-1]
    seen = seen_columns(raw.sparkSession.sparkContext)
    version = _version(table, readings).column
    if table.version_field is not None:
        # With a stamp inside the record the newest version parses all, to see it: most records are of that version.
        first = raw.withColumns({**seen, newest.name: newest.parse().column}).withColumn(VERSION_NAME, version)
        guarded = readings[:-1]
    else:
        first = raw.withColumn(VERSION_NAME, version).withColumns(seen)
        guarded = readings
    if len(readings) == 1:
        return first if table.version_field is not None else first.withColumn(newest.name, newest.parse().column)
    return first.withColumns({reading.name: reading.parse(VERSION).column for reading in guarded})


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
    return exact_check(TEXT, echo, types, depth, table.finds_unknown_fields)


def _choose(readings: Sequence[_Reading], value: Callable[[_Reading], Expression]) -> Expression:
    if len(readings) == 1:
        return value(readings[0])
    return cases([(VERSION.compared("=", reading.decoder.version), value(reading)) for reading in readings])
