"""Append rows to a trace and compact its runs: sizes at least double from newest to oldest.

A row is rewritten about log2(rows of the trace / rows of an epoch) times in its life, and an epoch writes one file. The
largest run is rewritten when the newer runs have grown to half of it, or when too much of it may be dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.trace.combine import combined
from laminae.trace.run import dead_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from laminae.trace.manifest import RunEntry
    from laminae.trace.spec import TraceSpec
    from laminae.trace.store import RunStore

RATIO = 2
"""Minimum ratio of the rows of a run to those of the next newer one: all runs hold less than twice the oldest."""
MOST_SPREAD = 2.5
"""Maximum space amplification: stored rows per certainly live row. Beyond it all runs are merged into one, so that
deletions cannot fill a disk."""


def merge_count(runs: Sequence[RunEntry], rows: int, dead: int) -> int:
    """How many of the newest runs are merged with the new rows into one run."""
    stored = rows + sum(run.rows for run in runs)
    if runs and stored > MOST_SPREAD * (runs[0].rows - dead - sum(run.dead for run in runs[1:])):
        return len(runs)
    size, count = rows, 0
    for run in reversed(runs):
        if run.rows >= RATIO * size:
            break
        size, count = size + run.rows, count + 1
    return count


def append(store: RunStore, spec: TraceSpec, runs: tuple[RunEntry, ...], batch: pa.RecordBatch) -> tuple[RunEntry, ...]:
    """The runs with these rows added as the newest. Existing files are not modified: older manifests need them."""
    if not batch.num_rows:
        return runs
    count = merge_count(runs, batch.num_rows, dead_rows(spec, batch))
    unchanged, merged = runs[: len(runs) - count], runs[len(runs) - count :]
    older = [run.slice(spec, 0, len(run)) for run in map(store.open, merged)]
    fresh = combined(spec, [*older, batch], is_oldest=not unchanged)
    return (*unchanged, store.write(spec, fresh)) if fresh.num_rows else unchanged
