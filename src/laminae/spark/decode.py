"""Raw records to rows of the current schema, as column expressions: the JVM reads the JSON, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.projection import projection_between
from laminae.spark.contract import ERROR, ROW, UNKNOWN
from laminae.spark.java_text import JavaText
from laminae.spark.json_checks import REASON, REASONS, UNKNOWN_FIELDS, exact_check
from laminae.spark.project import keeps_every_column, project_columns, violations
from laminae.spark.reading import is_read_as_declared
from laminae.spark.record import RecordFields, record_fields
from laminae.spark.suspects import Accounts, accounts, is_clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from laminae.codec.decoders import Decoder, DecoderTable

PARSED, EXACT = "_parsed_{}", "_exact"


def decode(raw: DataFrame, table: DecoderTable) -> DataFrame:
    """`raw` with the columns `_row`, `_error` and `_unknown` (see `contract`)."""
    text = F.col("value").cast("string")
    fields = [record_fields(decoder, table.version_field) for decoder in table.decoders]
    parsed, version = _parsed(raw, table, fields, text)
    readings = [
        _Reading(decoder, table, each, text, F.col(PARSED.format(i)))
        for i, (decoder, each) in enumerate(zip(table.decoders, fields, strict=True))
    ]
    is_known = version.isin([decoder.version for decoder in table.decoders])
    is_suspect = ~is_clean(JavaText(raw.sparkSession), text, _accounts(readings, version)) & is_known
    checked = parsed.withColumn(EXACT, F.when(is_suspect, _choose(version, readings, _Reading.exact)))
    exact = F.col(EXACT)
    error = F.coalesce(
        exact.getField(REASON),
        F.when(~is_known, F.concat(F.lit(REASONS["version"]), version.cast("string"))),
        _choose(version, readings, _Reading.violations),
    )
    unknown = F.coalesce(exact.getField(UNKNOWN_FIELDS), F.lit(False)) if table.finds_unknown_fields else F.lit(False)
    return checked.select(
        *raw.columns,
        F.when(error.isNull(), _choose(version, readings, _Reading.row)).alias(ROW),
        error.alias(ERROR),
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


def _parsed(
    raw: DataFrame, table: DecoderTable, fields: Sequence[RecordFields], text: Column
) -> tuple[DataFrame, Column]:
    """`raw` with each version's reading of the record, NULL but for its own version, and that version."""
    in_force = F.lit(table.decoders[0].version)
    for decoder in table.decoders:
        if decoder.since is not None:
            in_force = F.when(F.col("item") >= decoder.since, decoder.version).otherwise(in_force)
    version = F.coalesce(F.col("version"), in_force)
    names = [PARSED.format(i) for i in range(len(fields))]
    if table.version_field is not None:
        # The newest version parses every record, to see its stamp: most records are of that version anyway.
        raw = raw.withColumn(names[-1], _once(fields[-1].parse(text)))
        stamp = fields[-1].value(fields[-1].named(table.version_field), text, F.col(names[-1]))
        version = F.coalesce(F.col("version"), stamp.cast("int"), in_force)
    elif len(fields) == 1:
        return raw.withColumn(names[0], _once(fields[0].parse(text))), version
    missing = [i for i, name in enumerate(names) if name not in raw.columns]
    guarded = [F.when(version == table.decoders[i].version, fields[i].parse(text)) for i in missing]
    return raw.select("*", *(_once(each).alias(names[i]) for i, each in zip(missing, guarded, strict=True))), version


def _once(parsed: Column) -> Column:
    """Not deterministic, so that Spark neither merges it into its uses nor pushes a filter on it below."""
    return F.when(F.monotonically_increasing_id() >= 0, parsed)


def _accounts(readings: Sequence[_Reading], version: Column) -> Accounts:
    return Accounts(
        keys=F.coalesce(_choose(version, readings, lambda reading: reading.accounts().keys), F.lit(0)),
        objects=_choose(version, readings, lambda reading: reading.accounts().objects),
        nulls=_choose(version, readings, lambda reading: reading.accounts().nulls),
        is_odd=_choose(version, readings, lambda reading: reading.accounts().is_odd),
    )


def _choose(version: Column, readings: Sequence[_Reading], column: Callable[[_Reading], Column]) -> Column:
    first, *others = readings
    if not others:
        return column(first)
    chosen = F.when(version == first.decoder.version, column(first))
    for reading in others:
        chosen = chosen.when(version == reading.decoder.version, column(reading))
    return chosen
