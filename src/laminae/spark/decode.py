"""Raw records to rows of the current schema, as column expressions: the JVM reads the JSON, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, ROW, UNKNOWN
from laminae.spark.expression import FALSE, ZERO, Expression, call, cases, column, first_text, literal, struct, when
from laminae.spark.json_checks import REASON, REASONS, UNKNOWN_FIELDS, exact_check
from laminae.spark.project import keeps_every_column, project_columns, violations
from laminae.spark.record import RecordFields, record_fields
from laminae.spark.suspects import SEEN, Accounts, accounts, is_clean, seen_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from laminae.codec.decoders import Decoder, DecoderTable

PARSED, EXACT = "_parsed_{}", "_exact"
TEXT = column("value").cast("STRING")


def decode(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `contract`)."""
    readings = [
        _Reading(decoder, table, record_fields(decoder, table.version_field), column(PARSED.format(i)))
        for i, decoder in enumerate(table.decoders)
    ]
    version = _version(table, readings)
    is_known = version.is_one_of([decoder.version for decoder in table.decoders])
    is_suspect = is_known & ~is_clean(TEXT, SEEN, _accounts(readings, version))
    exact = column(EXACT)
    error = first_text(
        [
            exact.field(REASON),
            when(~is_known, call("concat", literal(REASONS["version"]), version.cast("STRING"))),
            _choose(version, readings, _Reading.violations),
        ]
    )
    unknown = call("coalesce", exact.field(UNKNOWN_FIELDS), FALSE) if table.finds_unknown_fields else FALSE
    checked = _parsed(raw, table, readings, version).withColumn(
        EXACT, when(is_suspect, _choose(version, readings, _Reading.exact)).column
    )
    return checked.select(
        *raw.columns,
        when(error.is_null(), _choose(version, readings, _Reading.row)).column.alias(ROW),
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

    def accounts(self) -> Accounts:
        return accounts(self.fields, TEXT, self.parsed)

    def exact(self) -> Expression:
        return exact_check(self.fields, TEXT, self.parsed, self.table.finds_unknown_fields)

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


def _parsed(raw: DataFrame, table: DecoderTable, readings: Sequence[_Reading], version: Expression) -> DataFrame:
    """`raw` with what its text holds and each version's reading of it, parsed only for records of that version."""
    *others, newest = readings
    whole = {_name(newest): newest.fields.parse(TEXT)}
    guarded = {_name(r): when(version.compared("=", r.decoder.version), r.fields.parse(TEXT)) for r in others}
    if table.version_field is None and others:
        whole = {name: when(version.compared("=", newest.decoder.version), each) for name, each in whole.items()}
    seen = seen_columns(raw.sparkSession.sparkContext)
    # With a stamp inside the record the newest version parses all, to see it: most records are of that version.
    parsed = raw.withColumns({**seen, **{name: _once(each).column for name, each in whole.items()}})
    return parsed.withColumns({name: _once(each).column for name, each in guarded.items()}) if guarded else parsed


def _name(reading: _Reading) -> str:
    return reading.parsed.sql.strip("`")


def _once(parsed: Expression) -> Expression:
    """Not deterministic, so that Spark neither merges it into its uses nor pushes a filter on it below."""
    return when(call("monotonically_increasing_id").compared(">=", 0), parsed)


def _accounts(readings: Sequence[_Reading], version: Expression) -> Accounts:
    return Accounts(
        keys=call("coalesce", _choose(version, readings, lambda reading: reading.accounts().keys), ZERO),
        objects=_choose(version, readings, lambda reading: reading.accounts().objects),
        nulls=_choose(version, readings, lambda reading: reading.accounts().nulls),
        is_odd=_choose(version, readings, lambda reading: reading.accounts().is_odd),
    )


def _choose(version: Expression, readings: Sequence[_Reading], value: Callable[[_Reading], Expression]) -> Expression:
    if len(readings) == 1:
        return value(readings[0])
    return cases([(version.compared("=", reading.decoder.version), value(reading)) for reading in readings])
