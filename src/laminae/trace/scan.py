"""The current rows of a trace in batches of bounded size, one hash range after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.combine import combined
from laminae.trace.spec import WEIGHT, TraceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.trace.run import Run
    from laminae.zset.wide_integers import Int64s

ROWS_OF_A_BATCH = 1 << 16


def scan(spec: TraceSpec, runs: Sequence[Run], rows: int = ROWS_OF_A_BATCH) -> Iterator[pa.RecordBatch]:
    """Live rows in hash order: the latest of each key, or rows with non-zero sums."""
    for batch in everything(spec, runs, rows):
        live = batch.filter(pc.not_equal(batch.column(WEIGHT), 0)) if spec.keeps_tombstones else batch
        if live.num_rows:
            yield live


def everything(spec: TraceSpec, runs: Sequence[Run], rows: int = ROWS_OF_A_BATCH) -> Iterator[pa.RecordBatch]:
    """Like `scan`, including the tombstones of a trace with `keeps_tombstones`."""
    if not runs:
        return
    bounds = _bounds(runs, rows)
    places = [np.concatenate([[0], np.searchsorted(run.hashes, bounds), [len(run)]]) for run in runs]
    for i in range(len(bounds) + 1):
        parts = [run.slice(spec, at[i], at[i + 1]) for run, at in zip(runs, places, strict=True) if at[i] < at[i + 1]]
        if parts:
            yield combined(spec, parts, is_oldest=True)


def common_bounds(
    specs: Sequence[TraceSpec], traces: Sequence[Sequence[Run]], rows: int
) -> Iterator[list[pa.RecordBatch]]:
    """The rows of several traces, including those of negative weight, by the same ranges of hashes."""
    runs = [run for trace in traces for run in trace]
    if not runs:
        return
    bounds = _bounds(runs, rows)
    places = [[np.concatenate([[0], np.searchsorted(run.hashes, bounds), [len(run)]]) for run in own] for own in traces]
    for i in range(len(bounds) + 1):
        batches = []
        for spec, own, at in zip(specs, traces, places, strict=True):
            parts = [run.slice(spec, to[i], to[i + 1]) for run, to in zip(own, at, strict=True) if to[i] < to[i + 1]]
            empty = pa.RecordBatch.from_pylist([], schema=spec.schema)
            batches.append(combined(spec, parts, is_oldest=True) if parts else empty)
        yield batches


def _bounds(runs: Sequence[Run], rows: int) -> Int64s:
    """Hashes that split the largest run into pieces; rows with equal hashes stay together."""
    largest = max(runs, key=len)
    pieces = -(-sum(map(len, runs)) // rows)
    return np.unique(largest.hashes[np.arange(1, pieces) * len(largest) // pieces])
