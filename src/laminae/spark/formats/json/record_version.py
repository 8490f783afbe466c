"""Expressions for the schema version of a raw record: its stamp, else the version in force at its log item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.column import column as field_node
from laminae.spark.catalyst.expression import Expression, any_of, call, cases, column, literal
from laminae.spark.formats.json.record import RecordFields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.codec.decoders import DecoderTable
    from laminae.engine.epochs.version_runs import Runs

TEXT = column("value").cast("STRING")


def version_of(table: DecoderTable) -> Expression:
    """The version of a record that has not been parsed: only its stamp is read."""
    name = table.version_field
    if name is None:
        return version_by(table, None)
    fields = stamp_field(name)
    return version_by(table, fields.value(fields.named(name), TEXT, fields.parse(TEXT)))


def stamp_field(name: str) -> RecordFields:
    return RecordFields((), stamp=field_node(pa.field(name, pa.int64())))


def version_by(table: DecoderTable, stamp: Expression | None) -> Expression:
    """The record's stamp if it has one, else the version in force at its item."""
    oldest, *later = table.decoders
    placed = [(decoder.since, decoder.version) for decoder in later if decoder.since is not None]
    stamps = [column("version")] if table.has_stamps else []
    if stamp is not None:
        stamps.append(stamp.cast("BIGINT"))
    return call("coalesce", *stamps, by_item(oldest.version, placed)).cast("BIGINT")


def judged_by(table: DecoderTable) -> Expression:
    """The version of the epoch that first read a record."""
    first, *later = table.judged
    return by_item(first.version, [(judged.since, judged.version) for judged in later]).cast("BIGINT")


def by_item(first: int, others: Sequence[tuple[int, int]]) -> Expression:
    """The number of the last of `others` (item, number) that starts at or before the record's item.

    `first` if there is none.
    """
    places = [place for place, _ in others]
    if places != sorted(places):
        branches = [(column("item").compared(">=", place), literal(number)) for place, number in reversed(others)]
        return cases(branches, literal(first))
    if not others:
        return literal(first)
    # A binary search tree: Spark evaluates a CASE of hundreds branch by branch for each record.
    middle = len(others) // 2
    place, number = others[middle]
    later, earlier = by_item(number, others[middle + 1 :]), by_item(first, others[:middle])
    return call("if", column("item").compared(">=", place), later, earlier)


def is_among(version: Expression, runs: Runs) -> Expression:
    tests = [version.compared("=", first) if first == last else version.is_between(first, last) for first, last in runs]
    return any_of(tests)


def is_within(version: Expression, first: Expression, last: Expression) -> Expression:
    return version.compared(">=", first) & version.compared("<=", last)
