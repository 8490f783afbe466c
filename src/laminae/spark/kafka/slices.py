"""The durable, numbered list of the slices of a topic: which offsets of each partition one has. No Kafka here.

A slice is written down before Spark hears of it, so an epoch, its replay and a later SELECT read the same records,
whatever has happened to the topic meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from laminae.spark.logs.entries import EntryList

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laminae.spark.logs.head import LogDirectory


class Place(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = dict[Place, int]


class Broker(Protocol):
    """What a list of slices asks of Kafka. Each method is one question; SourceUnavailable where there is no answer."""

    def beginning(self) -> Offsets:
        """Where reading begins, as the source's option says."""
        ...

    def ends(self, known: Offsets) -> Offsets:
        """How far each partition goes now; those that were not there before are among them."""
        ...

    def starts(self) -> Offsets:
        """The first offset that each partition still has."""
        ...


@dataclass(frozen=True, slots=True)
class Slice:
    """Every partition known by then, those without new records too. One that begins anew ends below its start."""

    item: int
    starts: Offsets
    ends: Offsets


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets of one partition that a range reads; `is_anew`: those before it were of another topic of its name."""

    start: int
    end: int
    is_anew: bool = False


class SliceList(EntryList[Slice]):
    """Cuts what comes into slices of about `limit` records (None: whatever there is), one for each epoch."""

    def __init__(self, directory: LogDirectory, broker: Broker, limit: int | None) -> None:
        super().__init__(directory)
        self._broker = broker
        self._limit = limit

    def items(self, seen: int) -> int:
        there = self._directory.items(seen)
        # What was cut off is read before more is asked for.
        return there if there > seen else self._grown(seen)

    def all_items(self) -> int:
        """How many there are when everything that the topic has now is among them."""
        return self._grown(0)

    def _grown(self, seen: int) -> int:
        known = self._ends(self._directory.items(seen))
        begins = self._broker.beginning() if known is None else known
        # A topic that is gone from a pattern keeps its place: it may come back.
        ends = {**begins, **self._broker.ends(begins)}
        if known is not None and ends == known:
            return self._directory.items(seen)
        first = self._broker.starts() if ends.keys() - begins.keys() else {}
        with self._directory.writing() as head:
            # Another process may have written them down meanwhile.
            last = self._ends(head.items)
            if last is not None and last != known:
                return head.items
            starts = {place: begins.get(place, first.get(place, 0)) for place in ends}
            made = cut(starts, ends, self._limit, head.items)
            self._append(head, made)
            return head.items + len(made)

    def _ends(self, items: int) -> Offsets | None:
        """Where the last slice ends, None before the first."""
        return next(self.entries(range(items - 1, items))).ends if items else None

    def _described(self, entry: Slice) -> Mapping[str, object]:
        return {"starts": nested(entry.starts), "ends": nested(entry.ends)}

    def _read(self, item: int, line: dict[str, Any]) -> Slice:
        return Slice(item, _flat(line["starts"]), _flat(line["ends"]))


def cut(starts: Offsets, ends: Offsets, limit: int | None, item: int) -> list[Slice]:
    """Slices from the one to the other, each with a like share of every partition. Nothing new is no slice."""
    sizes = {place: ends[place] - start for place, start in starts.items()}
    total = sum(size for size in sizes.values() if size > 0)
    if not any(sizes.values()):
        # The place of a topic without records is kept: what comes later must not be taken for what was there before.
        return [Slice(item, starts, ends)] if item == 0 else []
    count = 1 if limit is None else max(1, -(-total // limit))
    made, reached = [], starts
    for number in range(1, count + 1):
        upto = {place: _share(start, sizes[place], number, count) for place, start in starts.items()}
        made.append(Slice(item + number - 1, reached, upto))
        reached = upto
    return made


def _share(start: int, size: int, number: int, count: int) -> int:
    # A partition that begins anew does so at once.
    return start + size if size < 0 else start + size * number // count


def merged(slices: Iterable[Slice]) -> dict[Place, Span]:
    """What slices one behind the other read of each partition; of one that began anew, only since then."""
    found: dict[Place, Span] = {}
    for each in slices:
        for place, start in each.starts.items():
            end, before = each.ends[place], found.get(place)
            if end < start:
                found[place] = Span(0, end, is_anew=True)
            else:
                found[place] = Span(start, end) if before is None else Span(before.start, end, before.is_anew)
    return found


def nested(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """As Spark's Kafka connector writes offsets in JSON: by topic, then by partition."""
    found: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def parsed(text: str) -> Offsets:
    """The offsets of a JSON text of that form."""
    return _flat(json.loads(text))


def _flat(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        Place(topic, int(partition)): int(offset)
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }
