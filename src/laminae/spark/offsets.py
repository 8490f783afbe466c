"""The ranges of epochs as Spark's checkpoint holds them: known before any job of the epoch runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.errors import CheckpointDiverged
from laminae.spark.contract import LogRange

if TYPE_CHECKING:
    from laminae.catalog.model import EpochRecord

VERSION_LINE = "v1"


def range_of(checkpoint: str, source: str, batch_id: int, initial: str) -> LogRange:
    """The range of a batch. The first begins at the log's initial offset."""
    start = initial if batch_id == 0 else _offset(checkpoint, source, batch_id - 1)
    return LogRange(start, _offset(checkpoint, source, batch_id))


def time_of(checkpoint: str, source: str, batch_id: int) -> int:
    """When Spark planned the batch, in microseconds: the same however often the batch is run."""
    return int(json.loads(_lines(checkpoint, source, batch_id)[1])["batchTimestampMs"]) * 1000


def refuse_divergence(checkpoint: str, source: str, last: EpochRecord | None) -> None:
    """Raise unless Spark would go on where the catalog ends: behind its last batch, or with that batch once more.

    Looked at before a query starts. Without new records Spark runs no batch in which a difference could be noticed,
    and a checkpoint that is ahead of the catalog would leave records out.
    """
    planned, committed = _newest(checkpoint, "offsets"), _newest(checkpoint, "commits")
    if last is None:
        if planned > 0 or committed >= 0:
            problem = f"Spark has committed batch {committed} and planned batch {planned}, the catalog has none"
            raise CheckpointDiverged(batch=max(planned, committed), source=source, problem=problem)
        return
    expected = last.batch_id
    if committed not in (expected - 1, expected) or planned not in (expected, expected + 1):
        problem = f"Spark has committed batch {committed} and planned batch {planned}, the catalog is at {expected}"
        raise CheckpointDiverged(batch=expected, source=source, problem=problem)
    end = _offset(checkpoint, source, expected)
    if end != last.end_offsets:
        problem = f"Spark ended it at {end}, the catalog at {last.end_offsets}"
        raise CheckpointDiverged(batch=expected, source=source, problem=problem)


def _newest(checkpoint: str, log: str) -> int:
    """The highest batch of a log of the checkpoint, -1 when it has none."""
    return max((int(file.name) for file in Path(checkpoint, log).glob("*") if file.name.isdigit()), default=-1)


def _offset(checkpoint: str, source: str, batch_id: int) -> str:
    return _lines(checkpoint, source, batch_id)[2]


def _lines(checkpoint: str, source: str, batch_id: int) -> list[str]:
    file = Path(checkpoint, "offsets", str(batch_id))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise CheckpointDiverged(
            batch=batch_id, source=source, problem=f"no offsets in {file.name}: {problem}"
        ) from None
    if len(lines) != 3 or lines[0] != VERSION_LINE:
        raise CheckpointDiverged(batch=batch_id, source=source, problem=f"{file} is not an offset file of one source")
    return lines
