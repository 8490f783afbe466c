"""How a figure is taken: many short batches, the median of their means, so that a noisy neighbour costs little.

Figures of pure computing are in seconds of this thread's processor time: waiting for a core is not ours.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BATCHES = 31
BATCH_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. A value at or below its limit meets the target."""

    name: str
    value: float
    limit: float
    unit: str
    how: str

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit


def seconds(call: Callable[[], object]) -> float:
    """Median seconds of one call, warm."""
    call()
    count, spent = 1, 0.0
    while spent < BATCH_SECONDS:
        spent = _batch(call, count, time.thread_time)
        count = count if spent >= BATCH_SECONDS else count * 2
    return statistics.median(_batch(call, count, time.thread_time) / count for _ in range(BATCHES))


def ratio(call: Callable[[], object], baseline: Callable[[], object], rounds: int = 15) -> float:
    """Median of the ratios of neighbouring runs: both see the same noise."""
    call()
    baseline()
    clock = time.perf_counter
    return statistics.median(_batch(call, 1, clock) / _batch(baseline, 1, clock) for _ in range(rounds))


def _batch(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(count):
        call()
    return clock() - begin
