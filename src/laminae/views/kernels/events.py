"""Which event of each key counts: the last one of the log, or the first of those with the highest sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.values import before, gathered
from laminae.views.kernels.keyed_table import table_trace

if TYPE_CHECKING:
    from laminae.trace.lookup import Latest, Wanted
    from laminae.views.kernels.heard import Heard
    from laminae.zset.wide import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """One event for each key that has one: what the trace knows of the key, and the new payload.

    `dropped` events were not newer, `unseen` ones delete what was not there or leave out what nobody knows.
    """

    keys: Wanted
    before: Latest
    payload: dict[str, pa.Array]
    deleted: Bools
    dropped: int
    unseen: int


def last_events(heard: Heard) -> Events:
    """The events that decide, sorted by the hash of their key."""
    trace, last = table_trace(heard.table), heard.last()
    has_one, unseen = last >= 0, _unseen(heard)
    last = last[has_one]
    rows = pa.array(heard.by_key.order[last])
    payload = {
        name: gathered(heard.delta.column(name), trace.schema.field(name).type).take(rows) for name in trace.payload
    }
    deleted = heard.deletes[last]
    for name, lacks in heard.lacks().items():
        payload[name], is_unknown = values_at(heard, name, lacks, last)
        unseen += int(np.count_nonzero(is_unknown & ~deleted))
    keys, known = heard.keys.take(has_one), heard.known.take(has_one)
    return Events(keys, known, payload, deleted, int(np.count_nonzero(~heard.taken)), unseen)


def values_at(heard: Heard, name: str, lacks: Bools, rows: Int64s) -> tuple[pa.Array, Bools]:
    """What these rows have in a column that events leave out, and where that is NULL because nobody knows."""
    speakers = heard.speakers(lacks)[rows]
    is_unknown = heard.silent(lacks)[speakers]
    return heard.column(name).take(pa.array(speakers, mask=is_unknown)), is_unknown


def is_older(column: pa.Array, bound: pa.Scalar) -> Bools:
    """Smaller than the bound; NULL is smaller than anything."""
    bounds = pa.repeat(bound, len(column)).cast(column.type)
    return np.asarray(column.is_null()) | before([column], [bounds], len(column))


def _unseen(heard: Heard) -> int:
    """Deletes of rows that are not there; where deletes are remembered, of keys that nothing was heard of before."""
    is_known = np.ones(len(heard.deletes), dtype=np.bool_)
    if heard.table.sequence is None:
        is_known[1:] = ~heard.deletes[:-1]
    is_known[heard.by_key.starts] = heard.known.live if heard.table.sequence is None else heard.known.found
    return int(np.count_nonzero(heard.deletes & ~is_known))
