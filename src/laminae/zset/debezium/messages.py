"""Encode a changelog table as Debezium messages, column by column, without a Python object per row.

Adjacent -U and +U become one `u`, a -U alone becomes a `d`, and several copies become several events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.errors import SchemaMismatch
from laminae.zset.changelog import TIMESTAMP, codes_of, data_columns, required, weights_of
from laminae.zset.comparison import same_rows
from laminae.zset.debezium.envelope import CREATE, DELETE, READ, UPDATE
from laminae.zset.debezium.json_text import joined, row_texts
from laminae.zset.operation import CODES, CdcOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.zset.debezium.envelope import CdcSource, Nulls
    from laminae.zset.wide_integers import Bools, Codes, Int64s

_NONE = -1
_OPS = (CREATE, UPDATE, DELETE)
_SNAPSHOT_OPS = (READ, UPDATE, DELETE)
_CREATED, _UPDATED, _DELETED = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Message keys and values as JSON text; a NULL value is a tombstone; the keys are NULL if the table has no key."""

    keys: pa.Array
    values: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """For each event its operation and the row indexes of its before and after images, or -1."""

    ops: Int64s
    """Indexes into `_OPS`."""
    before: Int64s
    after: Int64s


def encode_changelog(
    table: pa.Table,
    source: CdcSource,
    key: Sequence[str] = (),
    nulls: Nulls = "omit",
    tombstones: bool = False,
    ts_ms: int | None = None,
    snapshot: bool = False,
    first_sequence: int | None = None,
) -> Messages:
    """The messages of a changelog, in its order.

    Timestamps come from `_timestamp` (integers are milliseconds) unless `ts_ms` is given. Tombstones follow each `d`
    and need a key. With `snapshot`, new rows are `r`. With `first_sequence`, the events are numbered from it, as the
    sequence of their source.
    """
    if tombstones and not key:
        raise ValueError("a tombstone needs a message key")
    for name in key:
        required(table, name)
    events = _events(table, key)
    main = np.where(events.after == _NONE, events.before, events.after)
    times = str(ts_ms) if ts_ms is not None else _times(table).take(pa.array(main)).cast(pa.large_string())
    origin = _sources(source, len(events.ops), first_sequence)
    ops = _chosen(_SNAPSHOT_OPS if snapshot else _OPS, events.ops)
    images = _images(row_texts(table, data_columns(table)), events, nulls)
    values = joined(*images, ',"source":', *origin, ',"op":"', ops, '","ts_ms":', times, "}", null="null")
    keys = (
        row_texts(table.select(list(key)).take(pa.array(main)), key)
        if key
        else pa.nulls(len(values), pa.large_string())
    )
    return _with_tombstones(keys, values, events) if tombstones else Messages(keys, values)


def _events(table: pa.Table, key: Sequence[str]) -> _Events:
    """Pair -U with +U, then repeat each event according to its weight."""
    codes = codes_of(table)
    weights = weights_of(table, codes)
    follows = _is_second_of_two(codes, weights)
    is_pair = follows
    if key:
        seconds = np.flatnonzero(follows)
        keys = table.select(list(key))
        is_pair = follows.copy()
        is_pair[seconds] = same_rows(keys.take(pa.array(seconds - 1)), keys.take(pa.array(seconds)))
    is_first = np.roll(is_pair, -1)
    places = np.arange(table.num_rows)
    # A +U without its -U is an update whose old row is unknown; after a -U of another key it is an insert.
    is_update = is_pair | ((codes == CODES[CdcOperation.UPDATE_AFTER]) & ~follows)
    ops = np.where(codes < 0, _DELETED, np.where(is_update, _UPDATED, _CREATED))
    before = np.where(is_pair, places - 1, np.where(codes < 0, places, _NONE))
    after = np.where(codes > 0, places, _NONE)
    chosen = np.repeat(np.flatnonzero(~is_first), np.abs(weights[~is_first]))
    return _Events(ops[chosen], before[chosen], after[chosen])


def _is_second_of_two(codes: Codes, weights: Int64s) -> Bools:
    """Rows that are a +U directly after a -U with the same number of copies."""
    is_second = np.zeros(len(codes), dtype=np.bool_)
    is_before, is_after = codes == CODES[CdcOperation.UPDATE_BEFORE], codes == CODES[CdcOperation.UPDATE_AFTER]
    is_second[1:] = is_before[:-1] & is_after[1:] & (weights[:-1] == -weights[1:])
    return is_second


def _images(rows: pa.Array, events: _Events, nulls: Nulls) -> list[pa.Array | str]:
    """`{"before":{...},"after":{...}`, with missing images omitted or written as null."""
    before, after = (rows.take(pa.array(places, mask=places == _NONE)) for places in (events.before, events.after))
    if nulls == "explicit" or not (before.null_count or after.null_count):
        return ['{"before":', before, ',"after":', after]
    has_before, has_after = events.before != _NONE, events.after != _NONE
    begin = _chosen(("{", '{"before":'), has_before)
    between = _chosen(("", ',"after":', '"after":'), np.where(has_after, np.where(has_before, 1, 2), 0))
    nothing = pa.scalar("", rows.type)
    return [begin, before.fill_null(nothing), between, after.fill_null(nothing)]


def _sources(source: CdcSource, count: int, first_sequence: int | None) -> list[pa.Array | str]:
    if first_sequence is None:
        return [source.to_json()]
    # The sequence is the last field, so everything before it is the same text for all events.
    head = replace(source, sequence=None).to_json().removesuffix("null}")
    return [head, pa.array(np.arange(first_sequence, first_sequence + count)).cast(pa.large_string()), "}"]


def _chosen(texts: Sequence[str], places: Int64s | Bools) -> pa.Array:
    return pa.array(texts, pa.large_string()).take(pa.array(places.astype(np.int64)))


def _times(table: pa.Table) -> pa.Array:
    """The event times in milliseconds."""
    column = required(table, TIMESTAMP).combine_chunks()
    if column.null_count:
        raise SchemaMismatch(path=TIMESTAMP, problem="it is NULL in places, and an event needs a time: give ts_ms")
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return column.cast(pa.int64())


def _with_tombstones(keys: pa.Array, values: pa.Array, events: _Events) -> Messages:
    """Add a tombstone after each `d`."""
    is_delete = events.ops == _DELETED
    places = np.repeat(np.arange(len(values)), 1 + is_delete)
    is_tombstone = np.zeros(len(places), dtype=np.bool_)
    is_tombstone[1:] = places[1:] == places[:-1]
    return Messages(keys.take(pa.array(places)), values.take(pa.array(places, mask=is_tombstone)))
