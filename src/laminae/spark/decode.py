"""Raw records to rows of the current schema, as column expressions: the JVM reads the JSON, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, ROW, UNKNOWN
from laminae.spark.json_checks import REASON, REASONS, UNKNOWN_FIELDS, exact_check
from laminae.spark.project import keeps_every_column, project_columns, violations
from laminae.spark.reading import is_read_as_declared
from laminae.spark.record import RecordFields, record_fields
from laminae.spark.suspects import Accounts, accounts, is_clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from laminae.codec.decoders import Decoder, DecoderTable


def decode(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `contract`)."""
    text = F.col("value").cast("string")
    readings, version = _readings(table, text)
    is_known = version.isin([decoder.version for decoder in table.decoders])
    found = _accounts(readings, version)
    exact = F.when(~is_clean(text, F.col("value"), found) & is_known, _choose(version, readings, _Reading.exact))
    error = F.coalesce(
        exact.getField(REASON),
        F.when(~is_known, F.concat(F.lit(REASONS["version"]), version.cast("string"))),
        _choose(version, readings, _Reading.violations),
    )
    unknown = F.coalesce(exact.getField(UNKNOWN_FIELDS), F.lit(False)) if table.finds_unknown_fields else F.lit(False)
    return raw.select(
        *raw.columns,
        F.when(error.isNull(), _choose(version, readings, _Reading.row)).alias(ROW),
        # Not deterministic, so that no filter on it is pushed below: there the record would be parsed once more.
        F.coalesce(error, F.when(F.monotonically_increasing_id() < 0, "")).alias(ERROR),
        unknown.alias(UNKNOWN),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A record as one version reads it. `parsed` is NULL for records of other versions."""

    decoder: Decoder
    table: DecoderTable
    fields: RecordFields
    text: Column
    parsed: Column

    def accounts(self) -> Accounts:
        return accounts(self.fields, self.text, self.parsed)

    def exact(self) -> Column:
        return exact_check(self.fields, self.text, self.parsed, self.table.finds_unknown_fields)

    def violations(self) -> Column:
        return violations(projection_between(self.decoder.schema, self.table.current), self._column)

    def row(self) -> Column:
        projection = projection_between(self.decoder.schema, self.table.current)
        is_as_read = all(map(is_read_as_declared, self.fields.columns)) and self.fields.all == self.fields.columns
        if is_as_read and keeps_every_column(projection):
            return self.parsed
        return F.struct(*project_columns(projection, self._column))

    def _column(self, index: int) -> Column:
        return self.fields.declared(index, self.text, self.parsed)


def _readings(table: DecoderTable, text: Column) -> tuple[list[_Reading], Column]:
    """The readings of a record and its version: the stamp if it has one, else what was in force at its item."""
    in_force = F.lit(table.decoders[0].version)
    for decoder in table.decoders:
        if decoder.since is not None:
            in_force = F.when(F.col("item") >= decoder.since, decoder.version).otherwise(in_force)
    fields = [record_fields(decoder, table.version_field) for decoder in table.decoders]
    whole = [each.parse(text) for each in fields]
    stamps = [F.col("version")]
    if table.version_field is not None:
        # The newest version parses every record, to see its stamp: most records are of that version anyway.
        stamps.append(fields[-1].value(fields[-1].named(table.version_field), text, whole[-1]).cast("int"))
    version = F.coalesce(*stamps, in_force)
    is_read_by_all = [len(fields) == 1] * len(fields)
    is_read_by_all[-1] = is_read_by_all[-1] or table.version_field is not None
    parsed = [
        each if unguarded else F.when(version == decoder.version, each)
        for decoder, each, unguarded in zip(table.decoders, whole, is_read_by_all, strict=True)
    ]
    parts = zip(table.decoders, fields, parsed, strict=True)
    return [_Reading(decoder, table, each, text, read) for decoder, each, read in parts], version


def _accounts(readings: Sequence[_Reading], version: Column) -> Accounts:
    """The accounts of the reading that has the record; the others read nothing, so theirs may be added up.

    A sum, where a CASE would do: Spark computes once what every row evaluates, and parses again in each CASE branch.
    """
    each = [reading.accounts() for reading in readings]
    if len(each) == 1:
        return each[0]
    parts = list(zip(readings, each, strict=True))
    return Accounts(
        read=reduce(add, [found.read for found in each]),
        objects=_cases(version, [(r.decoder.version, F.lit(found.objects)) for r, found in parts]),
        nulls=_cases(version, [(r.decoder.version, found.nulls) for r, found in parts]),
        is_odd=_cases(version, [(r.decoder.version, found.is_odd) for r, found in parts]),
    )


def _choose(version: Column, readings: Sequence[_Reading], column: Callable[[_Reading], Column]) -> Column:
    if len(readings) == 1:
        return column(readings[0])
    return _cases(version, [(reading.decoder.version, column(reading)) for reading in readings])


def _cases(version: Column, cases: Sequence[tuple[int, Column]]) -> Column:
    (first, value), *rest = cases
    chosen = F.when(version == first, value)
    for number, value in rest:
        chosen = chosen.when(version == number, value)
    return chosen
