"""TRUNCATE of a table without a key: which events precede a truncation, and which truncations arrive too late to apply.

Events of one partition of a topic are ordered by their position in it. Events of two partitions are ordered by their
sequence, which the rows of a multiset do not store: so the shards store how far each partition has been read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laminae.trace.compaction import append
from laminae.trace.scan import scan
from laminae.trace.spec import TraceSpec
from laminae.zset.comparison import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.zset.wide_integers import Bools

PROGRESS = "heard"
PARTITION, ITEM, OFFSET, SEQUENCE = "_partition", "_item", "_offset", "_sequence"
_NUMBERS = ("sequence", "item", "offset", "cut_sequence", "cut_item", "cut_offset")


@dataclass(frozen=True, slots=True)
class EventPosition:
    """The position of an event in its partition (`item`, `offset`), and `sequence`, which orders all partitions."""

    partition: str
    item: int
    offset: int
    sequence: int

    @property
    def at(self) -> tuple[int, int]:
        return self.item, self.offset


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """Progress of one partition: the last position and highest sequence of its rows, and its last truncation."""

    name: str
    newest: EventPosition | None = None
    cut: EventPosition | None = None

    def joined(self, other: PartitionProgress) -> PartitionProgress:
        """Merge the progress that two shards have recorded for this partition."""
        places = [progress.newest for progress in (self, other) if progress.newest is not None]
        cuts = [progress.cut for progress in (self, other) if progress.cut is not None]
        newest = max(places, key=lambda place: place.at, default=None)
        if newest is not None:
            newest = replace(newest, sequence=max(place.sequence for place in places))
        return PartitionProgress(self.name, newest, max(cuts, key=lambda place: place.at, default=None))


def progress_of(states: Iterable[tuple[Manifest, RunStore]]) -> tuple[PartitionProgress, ...]:
    """The progress of every partition, merged over all shards."""
    partitions: dict[str, PartitionProgress] = {}
    for manifest, store in states:
        for batch in scan(progress_trace(), [store.open(run) for run in manifest.runs(PROGRESS)]):
            for row in batch.to_pylist():
                partition = _progress_of_row(row)
                partitions[partition.name] = partition.joined(partitions.get(partition.name, partition))
    return tuple(partitions[name] for name in sorted(partitions))


def is_covered(truncation: EventPosition, partitions: Iterable[PartitionProgress]) -> bool:
    """Whether a later truncation was already applied, so that this one has nothing left to remove."""
    cuts = (partition.cut for partition in partitions if partition.cut is not None)
    return any(
        truncation.at < cut.at if cut.partition == truncation.partition else truncation.sequence <= cut.sequence
        for cut in cuts
    )


def is_late(truncation: EventPosition, partitions: Iterable[PartitionProgress]) -> bool:
    """Whether rows after the truncation are already in the state: they cannot be separated from older rows."""
    places = (partition.newest for partition in partitions if partition.newest is not None)
    return any(
        truncation.at < newest.at if newest.partition == truncation.partition else truncation.sequence < newest.sequence
        for newest in places
    )


def is_repeated(truncation: EventPosition, partitions: Iterable[PartitionProgress]) -> bool:
    """Whether this same truncation was already applied."""
    return any(partition.cut is not None and partition.cut.sequence == truncation.sequence for partition in partitions)


def effective_truncations(
    truncations: Iterable[EventPosition], partitions: Sequence[PartitionProgress]
) -> list[EventPosition]:
    """The truncations that remove the state from before the epoch."""
    return [
        truncation
        for truncation in truncations
        if not is_covered(truncation, partitions) and not is_late(truncation, partitions)
    ]


def positions_of(events: pa.Table) -> list[EventPosition]:
    """The positions of these events. Converts row by row, so it is meant for few events."""
    names = (PARTITION, ITEM, OFFSET, SEQUENCE)
    return [EventPosition(*(row[name] for name in names)) for row in events.select(names).to_pylist()]


def is_taken(events: pa.Table, cuts: Iterable[EventPosition]) -> Bools:
    """Which of these events precede none of the truncations, and are therefore applied."""
    taken = np.ones(events.num_rows, dtype=np.bool_)
    items, offsets, sequences = (_numbers(events, name) for name in (ITEM, OFFSET, SEQUENCE))
    for cut in cuts:
        is_same = np.asarray(pc.equal(events.column(PARTITION), cut.partition))
        is_earlier = (items < cut.item) | ((items == cut.item) & (offsets < cut.offset))
        taken &= ~np.where(is_same, is_earlier, sequences < cut.sequence)
    return taken


def with_progress(
    manifest: Manifest,
    store: RunStore,
    partitions: Sequence[PartitionProgress],
    events: pa.Table,
    cuts: Sequence[EventPosition],
) -> Manifest:
    """The manifest of a shard with the progress of all shards so far plus these events and truncations."""
    known = {partition.name: partition for partition in partitions}
    updates = [*_newest(events), *(PartitionProgress(cut.partition, None, cut) for cut in cuts)]
    for partition in updates:
        known[partition.name] = partition.joined(known.get(partition.name, partition))
    names = sorted({partition.name for partition in updates})
    if not names:
        return manifest
    batch = pa.RecordBatch.from_pylist([_row_of(known[name]) for name in names], schema=progress_trace().schema)
    return manifest.with_runs(PROGRESS, append(store, progress_trace(), manifest.runs(PROGRESS), batch))


@cache
def progress_trace() -> TraceSpec:
    """The progress of each partition, one row per partition."""
    return TraceSpec.replace(
        PROGRESS, [pa.field("lane", pa.string())], [pa.field(name, pa.int64()) for name in _NUMBERS]
    )


def _newest(events: pa.Table) -> list[PartitionProgress]:
    progress = []
    for partition in pc.unique(events.column(PARTITION)).to_pylist():
        own = events.filter(pc.equal(events.column(PARTITION), partition))
        items, offsets, sequences = (_numbers(own, name) for name in (ITEM, OFFSET, SEQUENCE))
        last = np.lexsort((offsets, items))[-1]
        progress.append(
            PartitionProgress(
                partition, EventPosition(partition, int(items[last]), int(offsets[last]), int(sequences.max()))
            )
        )
    return progress


def _numbers(events: pa.Table, name: str) -> np.ndarray:
    return integers(gathered(events.column(name), pa.int64()))


def _progress_of_row(row: dict[str, object]) -> PartitionProgress:
    name = str(row["lane"])
    return PartitionProgress(name, _place(name, row, ""), _place(name, row, "cut_"))


def _place(partition: str, row: dict[str, object], prefix: str) -> EventPosition | None:
    item, offset, sequence = (row[f"{prefix}{name}"] for name in ("item", "offset", "sequence"))
    if not (isinstance(item, int) and isinstance(offset, int) and isinstance(sequence, int)):
        return None
    return EventPosition(partition, item, offset, sequence)


def _row_of(partition: PartitionProgress) -> dict[str, object]:
    hashed = int.from_bytes(hashlib.blake2b(partition.name.encode(), digest_size=8).digest(), "big", signed=True)
    row: dict[str, object] = {"_hash": hashed, "lane": partition.name, "_weight": 1}
    for prefix, place in (("", partition.newest), ("cut_", partition.cut)):
        for name in ("item", "offset", "sequence"):
            row[f"{prefix}{name}"] = None if place is None else getattr(place, name)
    return row
