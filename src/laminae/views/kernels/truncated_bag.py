"""TRUNCATE of a bag: which events came before one, and which truncations come too late to tell.

Events of one lane (a partition of a topic) are in the order of their places there. Those of two lanes are in the order
of their sequences, which the rows of a bag do not keep: so it is remembered of each lane how far it has been heard.
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
from laminae.trace.values import gathered, integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import RunStore
    from laminae.zset.wide import Bools

HEARD = "heard"
LANE, ITEM, OFFSET, SEQUENCE = "_lane", "_item", "_offset", "_sequence"
_NUMBERS = ("sequence", "item", "offset", "cut_sequence", "cut_item", "cut_offset")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands in its lane, and what orders it among those of other lanes."""

    lane: str
    item: int
    offset: int
    sequence: int

    @property
    def at(self) -> tuple[int, int]:
        return self.item, self.offset


@dataclass(frozen=True, slots=True)
class Lane:
    """How far one has been heard: the last place and the highest sequence of a row, and its last truncation."""

    name: str
    newest: Place | None = None
    cut: Place | None = None

    def joined(self, other: Lane) -> Lane:
        """What two shards have heard of it."""
        places = [each.newest for each in (self, other) if each.newest is not None]
        cuts = [each.cut for each in (self, other) if each.cut is not None]
        newest = max(places, key=lambda place: place.at, default=None)
        if newest is not None:
            newest = replace(newest, sequence=max(place.sequence for place in places))
        return Lane(self.name, newest, max(cuts, key=lambda place: place.at, default=None))


def lanes_of(states: Iterable[tuple[Manifest, RunStore]]) -> tuple[Lane, ...]:
    """What the shards have heard together."""
    found: dict[str, Lane] = {}
    for manifest, store in states:
        for batch in scan(heard_trace(), [store.open(run) for run in manifest.runs(HEARD)]):
            for row in batch.to_pylist():
                lane = _lane_of(row)
                found[lane.name] = lane.joined(found.get(lane.name, lane))
    return tuple(found[name] for name in sorted(found))


def is_covered(truncation: Place, lanes: Iterable[Lane]) -> bool:
    """Whether a later one was heard: then it has nothing to take any more."""
    cuts = (lane.cut for lane in lanes if lane.cut is not None)
    return any(
        truncation.at < cut.at if cut.lane == truncation.lane else truncation.sequence <= cut.sequence for cut in cuts
    )


def is_late(truncation: Place, lanes: Iterable[Lane]) -> bool:
    """Whether rows are counted that came behind it: among the others they cannot be found again."""
    places = (lane.newest for lane in lanes if lane.newest is not None)
    return any(
        truncation.at < newest.at if newest.lane == truncation.lane else truncation.sequence < newest.sequence
        for newest in places
    )


def is_repeated(truncation: Place, lanes: Iterable[Lane]) -> bool:
    """Whether this very one was heard."""
    return any(lane.cut is not None and lane.cut.sequence == truncation.sequence for lane in lanes)


def effective(truncations: Iterable[Place], lanes: Sequence[Lane]) -> list[Place]:
    """Those that take what was there before the epoch."""
    return [each for each in truncations if not is_covered(each, lanes) and not is_late(each, lanes)]


def places_of(events: pa.Table) -> list[Place]:
    """Of a few events."""
    names = (LANE, ITEM, OFFSET, SEQUENCE)
    return [Place(*(row[name] for name in names)) for row in events.select(names).to_pylist()]


def is_taken(events: pa.Table, cuts: Iterable[Place]) -> Bools:
    """Which of these came before none of the truncations."""
    found = np.ones(events.num_rows, dtype=np.bool_)
    items, offsets, sequences = (_numbers(events, name) for name in (ITEM, OFFSET, SEQUENCE))
    for cut in cuts:
        is_same = np.asarray(pc.equal(events.column(LANE), cut.lane))
        is_earlier = (items < cut.item) | ((items == cut.item) & (offsets < cut.offset))
        found &= ~np.where(is_same, is_earlier, sequences < cut.sequence)
    return found


def remembered(
    manifest: Manifest, store: RunStore, lanes: Sequence[Lane], events: pa.Table, cuts: Sequence[Place]
) -> Manifest:
    """The manifest of a shard that knows of these events and truncations beside what all have heard before."""
    known = {lane.name: lane for lane in lanes}
    came = [*_newest(events), *(Lane(cut.lane, None, cut) for cut in cuts)]
    for lane in came:
        known[lane.name] = lane.joined(known.get(lane.name, lane))
    names = sorted({lane.name for lane in came})
    if not names:
        return manifest
    batch = pa.RecordBatch.from_pylist([_row_of(known[name]) for name in names], schema=heard_trace().schema)
    return manifest.with_runs(HEARD, append(store, heard_trace(), manifest.runs(HEARD), batch))


@cache
def heard_trace() -> TraceSpec:
    """One row for each lane."""
    return TraceSpec.replace(HEARD, [pa.field("lane", pa.string())], [pa.field(name, pa.int64()) for name in _NUMBERS])


def _newest(events: pa.Table) -> list[Lane]:
    found = []
    for lane in pc.unique(events.column(LANE)).to_pylist():
        own = events.filter(pc.equal(events.column(LANE), lane))
        items, offsets, sequences = (_numbers(own, name) for name in (ITEM, OFFSET, SEQUENCE))
        last = np.lexsort((offsets, items))[-1]
        found.append(Lane(lane, Place(lane, int(items[last]), int(offsets[last]), int(sequences.max()))))
    return found


def _numbers(events: pa.Table, name: str) -> np.ndarray:
    return integers(gathered(events.column(name), pa.int64()))


def _lane_of(row: dict[str, object]) -> Lane:
    name = str(row["lane"])
    return Lane(name, _place(name, row, ""), _place(name, row, "cut_"))


def _place(lane: str, row: dict[str, object], prefix: str) -> Place | None:
    item, offset, sequence = (row[f"{prefix}{name}"] for name in ("item", "offset", "sequence"))
    if not (isinstance(item, int) and isinstance(offset, int) and isinstance(sequence, int)):
        return None
    return Place(lane, item, offset, sequence)


def _row_of(lane: Lane) -> dict[str, object]:
    hashed = int.from_bytes(hashlib.blake2b(lane.name.encode(), digest_size=8).digest(), "big", signed=True)
    row: dict[str, object] = {"_hash": hashed, "lane": lane.name, "_weight": 1}
    for prefix, place in (("", lane.newest), ("cut_", lane.cut)):
        for name in ("item", "offset", "sequence"):
            row[f"{prefix}{name}"] = None if place is None else getattr(place, name)
    return row
