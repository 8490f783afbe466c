"""Raw records to rows of the current schema, as column expressions: the JVM reads them, no Python sees a row.

A record that does not decode keeps its raw columns and gets a reason; nothing is dropped or raised here. The columns
of a decoder table are parsed once and used for every epoch: to build them anew took 130 ms of each.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from laminae.codec.sent_values import as_sent, has_rules
from laminae.schema.column import column as field_node
from laminae.schema.column import columns_of
from laminae.schema.projection import projection_between
from laminae.spark.avro import avro_stages
from laminae.spark.columns import Columns, select
from laminae.spark.contract import ERROR, RAW_COLUMNS, ROW, UNKNOWN, VERSION
from laminae.spark.expression import FALSE, ZERO, Expression, call, cases, column, first_text, literal, struct, when
from laminae.spark.json_checks import REASON, REASONS, UNKNOWN_FIELDS, depth_of, exact_check, field_types
from laminae.spark.project import keeps_every_column, project_columns, violations
from laminae.spark.record import RecordFields, record_fields
from laminae.spark.sent_values import converted, lost_values
from laminae.spark.suspects import FOUND, SEEN, Accounts, accounts, is_clean, seen_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from laminae.codec.decoders import Decoder, DecoderTable

PARSED, EXACT = "_parsed_{}", "_exact"
VERSION_OF = column(VERSION)
TEXT = column("value").cast("STRING")
STAR = Expression("*")
# What Spark analyses and compiles grows with versions times columns: 35 versions of 35 columns took minutes at once.
MOST_COLUMNS = 64


def decode(raw: DataFrame, table: DecoderTable, exactly: bool = True, beside: tuple[str, ...] = ()) -> DataFrame:
    """`raw` with the columns `_row`, `_error`, `_unknown` and `_version` (see `contract`), and those named `beside`.

    Otherwise than `exactly`, a record that needs a closer look has an error that says so; to look closer makes the plan
    of an epoch twice as dear, and most epochs have no such record.
    """
    parts = _parts(table)
    if len(parts) > 1:
        return reduce(DataFrame.unionAll, (_decode_part(raw, table, part, exactly, beside) for part in parts))
    spark, is_framed = raw.sparkSession, table.writers is not None

    def make() -> Sequence[Columns]:
        return avro_stages(spark, table) if is_framed else _stages(spark, table, exactly, beside)

    return through(raw, kept_stages(table, (exactly, beside), make))


def through(frame: DataFrame, stages: Sequence[Columns]) -> DataFrame:
    """What one projection upon the other makes of a frame."""
    return reduce(select, stages, frame)


def kept_stages(table: DecoderTable, key: Hashable, make: Callable[[], Sequence[Columns]]) -> Sequence[Columns]:
    """The projections under this key, which live as long as the table."""
    whole = (id(table), key)
    kept = _kept.get(whole)
    if kept is None or kept[0]() is not table:
        kept = _kept[whole] = (weakref.ref(table), tuple(make()))
        weakref.finalize(table, _kept.pop, whole, None)
    return kept[1]


def is_decoded_at_once(table: DecoderTable) -> bool:
    """Whether one plan holds every decoder of the table."""
    return len(_parts(table)) == 1


def _parts(table: DecoderTable) -> list[tuple[Decoder, ...]]:
    """The decoders in groups that one plan can hold."""
    if table.writers is not None:
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
    """The records of some of the versions; with the last ones those of versions that nobody knows."""
    version = _version_of(table)
    others = [decoder.version for decoder in table.decoders if decoder not in part]
    own = version.is_one_of([decoder.version for decoder in part])
    wanted = own if part[-1] is not table.decoders[-1] else ~version.is_one_of(others)
    return decode(raw.where(wanted.column), replace(table, decoders=part), exactly, beside)


# By identity: equal schemas may differ in their metadata, which holds defaults and ids.
_kept: dict[tuple[int, Hashable], tuple[weakref.ref[DecoderTable], tuple[Columns, ...]]] = {}


def _stages(spark: SparkSession, table: DecoderTable, exactly: bool, beside: tuple[str, ...]) -> Sequence[Columns]:
    """Each a projection of the one before: what the text holds and says, a closer look, the row or the reason."""
    readings = [
        _Reading(decoder, table, _fields_of(decoder, table), column(PARSED.format(i)))
        for i, decoder in enumerate(table.decoders)
    ]
    is_known = VERSION_OF.is_one_of([decoder.version for decoder in table.decoders])
    found = _accounts(readings)
    is_suspect = is_known & ~is_clean(TEXT, SEEN, found)
    stages = [*_parsed(spark, table, readings), Columns(spark).add(STAR).add(found.keys, FOUND.sql)]
    closer: Sequence[Expression] = [when(is_suspect, literal(REASONS["suspect"]))]
    unknown = FALSE
    if exactly:
        stages.append(Columns(spark).add(STAR).add(when(is_suspect, _exact(table, readings)), EXACT))
        exact = column(EXACT)
        closer = [exact.field(REASON)]
        if table.finds_unknown_fields:
            unknown = call("coalesce", exact.field(UNKNOWN_FIELDS), FALSE)
    made = [pair for reading in readings for pair in reading.made()]
    if made:
        stages.append(Columns(spark).add(STAR))
        for value, name in made:
            stages[-1].add(value, name)
    strange = when(~is_known, call("concat", literal(REASONS["version"]), VERSION_OF.cast("STRING")))
    error = first_text([*closer, strange, _choose(readings, _Reading.violations)])
    last = Columns(spark)
    for name in (*RAW_COLUMNS, *beside):
        last.add(column(name))
    row = _choose(readings, _Reading.row)
    # A cast may raise on what was refused; a row that is what was read has none, and to ask twice costs a fifth.
    last.add(row if row is readings[0].parsed else when(error.is_null(), row), ROW)
    stages.append(last.add(error, ERROR).add(unknown, UNKNOWN).add(VERSION_OF))
    return stages


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
        found = violations(projection_between(self.decoder.schema, self.table.current), self._column)
        if not has_rules(self.decoder.schema):
            return found
        return first_text([lost_values(self.decoder.schema, self._read, self._column), found])

    def row(self) -> Expression:
        projection = projection_between(self.decoder.schema, self.table.current)
        is_read = self.fields.are_the_columns and not has_rules(self.decoder.schema)
        if is_read and keeps_every_column(projection):
            return self.parsed
        return struct(project_columns(projection, self._column))

    def made(self) -> Iterator[tuple[Expression, str]]:
        """Values that are written otherwise than their columns have them, each once: the row and the checks use it."""
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


def _version_of(table: DecoderTable) -> Expression:
    """The same without a reading of the record: its stamp alone is read."""
    name = table.version_field
    if name is None:
        return _version(table, None)
    fields = RecordFields((), stamp=field_node(pa.field(name, pa.int64())))
    return _version(table, fields.value(fields.named(name), TEXT, fields.parse(TEXT)))


def _version(table: DecoderTable, stamp: Expression | None) -> Expression:
    """The record's stamp if it has one, else the version in force at its item."""
    oldest, *others = table.decoders
    placed = [decoder for decoder in reversed(others) if decoder.since is not None]
    in_force = literal(oldest.version)
    if placed:
        places = [(column("item").compared(">=", d.since or 0), literal(d.version)) for d in placed]
        in_force = cases(places, in_force)
    stamps = [column("version")] if table.has_stamps else []
    if stamp is not None:
        stamps.append(stamp.cast("BIGINT"))
    return call("coalesce", *stamps, in_force).cast("BIGINT")


def _parsed(spark: SparkSession, table: DecoderTable, readings: Sequence[_Reading]) -> list[Columns]:
    """What the text holds, the record's version, and each version's reading, parsed for its own records alone."""
    newest = readings[-1]
    stamp = None
    if table.version_field is not None:
        stamp = newest.fields.value(newest.fields.named(table.version_field), TEXT, newest.parsed)
    version = _version(table, stamp)
    seen = Columns(spark).add(STAR).add_all(seen_columns(spark.sparkContext))
    if table.version_field is not None:
        # With a stamp inside the record the newest version parses all, to see it: most records are of that version.
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
    return exact_check(TEXT, echo, types, depth, table.finds_unknown_fields)


def _choose(readings: Sequence[_Reading], value: Callable[[_Reading], Expression]) -> Expression:
    if len(readings) == 1:
        return value(readings[0])
    return cases([(VERSION_OF.compared("=", reading.decoder.version), value(reading)) for reading in readings])
