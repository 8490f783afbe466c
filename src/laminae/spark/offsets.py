"""The ranges of epochs as Spark's checkpoint holds them: known before any job of the epoch runs."""

from __future__ import annotations

from pathlib import Path

from laminae.errors import CheckpointDiverged
from laminae.spark.contract import LogRange

VERSION_LINE = "v1"


def range_of(checkpoint: str, source: str, batch_id: int, initial: str) -> LogRange:
    """The range of a batch. The first begins at the log's initial offset."""
    start = initial if batch_id == 0 else _offset(checkpoint, source, batch_id - 1)
    return LogRange(start, _offset(checkpoint, source, batch_id))


def _offset(checkpoint: str, source: str, batch_id: int) -> str:
    file = Path(checkpoint, "offsets", str(batch_id))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise CheckpointDiverged(
            batch=batch_id, source=source, problem=f"no offsets in {file.name}: {problem}"
        ) from None
    if len(lines) != 3 or lines[0] != VERSION_LINE:
        raise CheckpointDiverged(batch=batch_id, source=source, problem=f"{file} is not an offset file of one source")
    return lines[2]
