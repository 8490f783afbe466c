"""Offset ranges of epochs, read from Spark's checkpoint (offset and commit logs) before any job of the epoch runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from laminae.errors import CheckpointDiverged
from laminae.spark.sources.protocol import LogRange

if TYPE_CHECKING:
    from laminae.catalog.model import EpochRecord

VERSION_LINE = "v1"


def range_of(checkpoint: str, source: str, batch_id: int, initial: str) -> LogRange:
    """The offset range of a batch. The first batch starts at the source's initial offset."""
    start = initial if batch_id == 0 else _offset(checkpoint, source, batch_id - 1)
    return LogRange(start, _offset(checkpoint, source, batch_id))


def time_of(checkpoint: str, source: str, batch_id: int) -> int:
    """When Spark planned the batch, in microseconds. A re-run of the batch has the same time."""
    facts = _object(_lines(checkpoint, source, batch_id)[1])
    time = None if facts is None else facts.get("batchTimestampMs")
    if not isinstance(time, int):
        raise _unreadable(Path(checkpoint, "offsets", str(batch_id)), source, batch_id)
    return time * 1000


def refuse_divergence(checkpoint: str, source: str, last: EpochRecord | None) -> None:
    """Raise unless Spark would resume where the catalog ends: after its last batch, or with a re-run of that batch.

    This is checked before a query starts. Without new records Spark runs no batch in which a divergence could be
    noticed, and a checkpoint that is ahead of the catalog would skip records.
    """
    planned, committed = _newest(checkpoint, "offsets"), _newest(checkpoint, "commits")
    _refuse_unreadable(checkpoint, source, planned, committed)
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


def _refuse_unreadable(checkpoint: str, source: str, planned: int, committed: int) -> None:
    """Raise if a file that Spark reads at query start is unreadable: Spark's own error would not name the source."""
    newest = max(planned, committed)
    metadata = Path(checkpoint, "metadata")
    if newest >= 0 or metadata.exists():
        content = _object(_text(metadata, source, newest))
        if content is None or not isinstance(content.get("id"), str):
            raise _unreadable(metadata, source, newest)
    for batch in range(max(planned - 1, 0), planned + 1):
        time_of(checkpoint, source, batch)
        if _object(_offset(checkpoint, source, batch)) is None:
            raise _unreadable(Path(checkpoint, "offsets", str(batch)), source, batch)
    if committed >= 0:
        file = Path(checkpoint, "commits", str(committed))
        version, _, facts = _text(file, source, committed).partition("\n")
        if version != VERSION_LINE or _object(facts) is None:
            raise _unreadable(file, source, committed)


def _newest(checkpoint: str, log: str) -> int:
    """The highest batch id in a log of the checkpoint (`offsets` or `commits`), -1 when the log is empty."""
    return max((int(file.name) for file in Path(checkpoint, log).glob("*") if file.name.isdigit()), default=-1)


def _offset(checkpoint: str, source: str, batch_id: int) -> str:
    return _lines(checkpoint, source, batch_id)[2]


def _lines(checkpoint: str, source: str, batch_id: int) -> list[str]:
    file = Path(checkpoint, "offsets", str(batch_id))
    lines = _text(file, source, batch_id).splitlines()
    if len(lines) != 3 or lines[0] != VERSION_LINE:
        raise CheckpointDiverged(batch=batch_id, source=source, problem=f"{file} is not an offset file of one source")
    return lines


def _text(file: Path, source: str, batch_id: int) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as problem:
        reason = f"{file.parent.name}/{file.name} of the checkpoint cannot be read: {problem}"
        raise CheckpointDiverged(batch=max(batch_id, 0), source=source, problem=reason) from None
    except UnicodeDecodeError:
        raise _unreadable(file, source, batch_id) from None


def _object(text: str) -> dict[str, object] | None:
    """The text parsed as a JSON object, None if it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _unreadable(file: Path, source: str, batch_id: int) -> CheckpointDiverged:
    return CheckpointDiverged(
        batch=max(batch_id, 0), source=source, problem=f"{file} does not have the content that Spark writes"
    )
