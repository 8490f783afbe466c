"""Epochs over traces without Spark: time of a shard's step and bytes on disk, `python -m tests.bench.trace [case ...]`.

Files lie on the local disk and are synced as in production, so figures hold fsync too. `make bench` takes one of them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from laminae.trace.manifest import Manifest, orphans
from laminae.trace.scan import scan
from laminae.trace.store import RunStore
from laminae.views.kernels.group_by.aggregates import (
    SLOT,
    Aggregate,
    Function,
    IntegerTotal,
    Output,
    ValueSet,
    groups_trace,
    values_trace,
)
from laminae.views.kernels.group_by.kernel import step
from tests.bench.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from laminae.trace.spec import TraceSpec

KEYS = (pa.field("k", pa.int64()),)
COUNT_SUM = Aggregate(
    "v",
    KEYS,
    (IntegerTotal("s"),),
    (
        Output(pa.field("n", pa.int64()), Function.COUNT_ROWS),
        Output(pa.field("total", pa.int64()), Function.SUM, "s"),
    ),
)
MIN_MAX = Aggregate(
    "v",
    KEYS,
    (ValueSet("m", pa.int64(), keeps_min=True, keeps_max=True),),
    (
        Output(pa.field("low", pa.int64()), Function.MIN, "m"),
        Output(pa.field("high", pa.int64()), Function.MAX, "m"),
    ),
)
KEPT_EPOCHS = 2
"""Manifests that are alive besides the newest one, as the pipeline keeps the last committed epochs."""


@dataclass(frozen=True, slots=True)
class Case:
    """`rows` of one shard's delta in each of `epochs`, over so many keys that are all there from the start."""

    name: str
    keys: int
    rows: int
    epochs: int
    aggregate: Aggregate = COUNT_SUM


CASES = {
    case.name: case
    for case in (
        Case("cdc-100k", 50_000, 46_000, 20),
        Case("delta-100k", 100_000, 12_500, 200),
        Case("delta-2M", 2_000_000, 12_500, 200),
        Case("delta-10M", 10_000_000, 12_500, 200),
        Case("small-100k", 100_000, 1_000, 200),
        Case("small-10M", 10_000_000, 1_000, 200),
        Case("minmax-100k", 50_000, 125_000, 20, MIN_MAX),
    )
}


def hashes(keys: np.ndarray) -> np.ndarray:
    """Well mixed 64 bits (splitmix64), as xxhash64 would be."""
    with np.errstate(over="ignore"):
        mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def sums_delta(keys: np.ndarray, dice: np.random.Generator) -> pa.Table:
    """Inserts, and among them keys that lose a row again."""
    weights, low = dice.integers(-1, 4, len(keys)), dice.integers(0, 1 << 32, len(keys))
    columns = {"k": keys, "_hash": hashes(keys), "_weight": weights, "s_n": weights, "s_hi": weights * 0, "s_lo": low}
    return pa.table(columns)


class Values:
    """Deltas of values with deletions: a third takes back what an earlier epoch inserted."""

    def __init__(self, keys: int) -> None:
        self.keys, self.live = keys, np.zeros((2, 0), dtype=np.int64)

    def delta(self, rows: int, dice: np.random.Generator) -> pa.Table:
        gone = min(rows // 3, self.live.shape[1])
        fresh = np.stack([dice.integers(0, self.keys, rows - gone), dice.integers(0, 1 << 30, rows - gone)])
        order = dice.permutation(self.live.shape[1])
        back, self.live = self.live[:, order[:gone]], np.concatenate([self.live[:, order[gone:]], fresh], axis=1)
        keys, values = np.concatenate([back, fresh], axis=1)
        weights = np.concatenate([np.full(gone, -1), np.ones(rows - gone, dtype=np.int64)])
        linear, where = np.unique(keys, return_inverse=True)
        totals = np.zeros(len(linear), dtype=np.int64)
        np.add.at(totals, where, weights)
        every = np.concatenate([linear, keys])
        slots = np.repeat([0, 1], [len(linear), len(keys)])
        value = pa.array(np.concatenate([linear, values]), mask=slots == 0)
        whole = {"k": every, "_hash": hashes(every), SLOT: slots, "_weight": np.concatenate([totals, weights])}
        return pa.table({**whole, "m_value": value})


def traces(case: Case) -> list[TraceSpec]:
    """Every trace of the operator: the groups, and the values of those accumulators that keep them."""
    valued = [found for found in case.aggregate.accumulators if isinstance(found, ValueSet)]
    return [groups_trace(case.aggregate), *(values_trace(case.aggregate, found) for found in valued)]


@dataclass(frozen=True, slots=True)
class Measured:
    """`line` has the load, the median and the worst epoch, runs, and bytes against the rows that live."""

    line: str
    on_disk: float


def run(case: Case, home: str) -> Measured:
    store, dice, manifest = RunStore.at(home, "v/0"), np.random.default_rng(1), Manifest()
    began = time.perf_counter()
    make: Callable[[], pa.Table]
    if case.aggregate is MIN_MAX:
        values = Values(case.keys)
        make = lambda: values.delta(case.rows, dice)  # noqa: E731
    else:
        manifest = step(case.aggregate, sums_delta(np.arange(case.keys), dice), manifest, store).manifest
        make = lambda: sums_delta(dice.choice(case.keys, case.rows, replace=False), dice)  # noqa: E731
    load = time.perf_counter() - began
    spent, used, kept, largest = [], [], [manifest], 0
    for _ in range(case.epochs):
        delta = make()
        began, cpu = time.perf_counter(), time.thread_time()
        manifest = step(case.aggregate, delta, manifest, store).manifest
        spent.append(time.perf_counter() - began)
        used.append(time.thread_time() - cpu)
        kept = [*kept[-KEPT_EPOCHS:], manifest]
        now = datetime.now(UTC) + timedelta(days=1)
        store.delete(orphans(store.files(), kept, now))
        largest = max(largest, sum(file.bytes for file in store.files()))
    live = sum(
        batch.nbytes
        for trace in traces(case)
        for batch in scan(trace, list(map(store.open, manifest.runs(trace.name))))
    )
    ms = sorted(second * 1e3 for second in spent)
    runs = {name: [entry.rows for entry in found] for name, found in manifest.traces}
    line = (
        f"{case.name}: load {load:.2f} s; epoch median {statistics.median(ms):.1f} ms (processor "
        f"{statistics.median(used) * 1e3:.1f}), 90% {ms[int(len(ms) * 0.9)]:.1f}, worst {ms[-1]:.1f} ms (processor "
        f"{max(used) * 1e3:.1f}); newest manifest {manifest.bytes / live:.2f}x of the live {live / 1e6:.1f} MB, "
        f"on disk at most {largest / live:.2f}x; runs {runs}"
    )
    return Measured(line, largest / live)


def figures() -> Iterator[Figure]:
    case = CASES["delta-100k"]
    with tempfile.TemporaryDirectory() as home:
        measured = run(case, home)
    how = f"{case.epochs} epochs of {case.rows:,} of {case.keys:,} keys, the last three epochs kept"
    yield Figure("bytes on disk against the live state", measured.on_disk, 3.0, "x", how)


def main(names: list[str]) -> None:
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as home:
            print(run(CASES[name], home).line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
