"""TRUNCATE of a keyed table: rows with a smaller sequence are retracted, and events below it are never taken again.

The whole table is read and written once; that is the work of a truncation, and they are rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.combine import joined
from laminae.trace.compaction import append
from laminae.trace.lookup import Wanted, latest
from laminae.trace.run import Run
from laminae.trace.scan import everything
from laminae.trace.spec import HASH, WEIGHT
from laminae.trace.values import before, integers
from laminae.views.kernels.events import is_older
from laminae.views.kernels.keyed_table import SEQUENCE, TRUNCATED, KeyedTable, table_trace, truncated_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Rows that go without a successor, and the rows of the new state: those that stay and those that came."""

    gone: pa.RecordBatch
    state: pa.RecordBatch


def cut(table: KeyedTable, runs: Sequence[Run], came: pa.RecordBatch, floor: pa.Scalar | None) -> Cut:
    """Everything below the floor (without a sequence: everything) but the keys of `came`, which have their new row."""
    trace = table_trace(table)
    newer = [Run.of("the delta", came)] if came.num_rows else []
    gone, stay = [came.slice(0, 0)], []
    for batch in everything(trace, runs):
        keys = Wanted(integers(batch.column(HASH)), tuple(batch.column(name) for name in trace.keys))
        is_replaced = latest(trace, newer, keys).found
        is_doomed = np.ones(batch.num_rows, dtype=np.bool_)
        if floor is not None:
            is_doomed = is_older(batch.column(SEQUENCE), floor)
        is_live = integers(batch.column(WEIGHT)) != 0
        gone.append(batch.filter(pa.array(is_doomed & is_live & ~is_replaced)))
        stay.append(batch.filter(pa.array(~is_doomed & ~is_replaced)))
    return Cut(joined(trace.schema, gone), joined(trace.schema, [*stay, came]))


def floor_of(table: KeyedTable, manifest: Manifest, store: RunStore, truncate_at: pa.Scalar | None) -> pa.Scalar | None:
    """The sequence below which events are not taken: of this truncation or an earlier one."""
    if table.sequence is None:
        return None
    trace = truncated_trace(table.sequence)
    runs = [store.open(run) for run in manifest.runs(TRUNCATED)]
    stored = latest(trace, runs, _one()).payload[SEQUENCE]
    if truncate_at is None:
        return stored[0] if stored[0].is_valid else None
    given = pa.array([truncate_at.as_py()], stored.type)
    return stored[0] if stored[0].is_valid and bool(before([given], [stored], 1)[0]) else given[0]


def with_floor(table: KeyedTable, manifest: Manifest, store: RunStore, floor: pa.Scalar | None) -> Manifest:
    """The manifest that remembers this truncation."""
    if table.sequence is None or floor is None:
        return manifest
    trace = truncated_trace(table.sequence)
    columns = [pa.array(_one().hashes), pa.array([floor.as_py()], floor.type), pa.array([1])]
    row = pa.RecordBatch.from_arrays(columns, schema=trace.schema)
    return manifest.with_runs(TRUNCATED, append(store, trace, manifest.runs(TRUNCATED), row))


def _one() -> Wanted:
    return Wanted(np.zeros(1, dtype=np.int64), ())
