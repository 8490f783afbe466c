"""What every kernel returns: the changes to show, the state they lead to, and what there was to count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from laminae.trace.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one step. `anomalies` keys came to a negative multiplicity or were deleted unseen, `recovered` left it.

    `dropped` events were not newer than what is stored; `state_rows` are the rows of all runs, superseded ones too.
    """

    rows_in: int = 0
    rows_out: int = 0
    anomalies: int = 0
    recovered: int = 0
    dropped: int = 0
    state_rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """`changes` has `_op`, `_weight` and the columns shown; -U and +U of a key are neighbours, -U first."""

    changes: pa.RecordBatch
    manifest: Manifest
    counts: Counts


def state_rows(manifest: Manifest) -> int:
    return sum(run.rows for _, runs in manifest.traces for run in runs)
