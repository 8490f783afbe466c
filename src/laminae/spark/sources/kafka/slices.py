"""The durable, numbered list of the slices of a topic. A slice is a range of offsets for each partition.

A slice is stored before its offset is reported to Spark, so an epoch, its replay and a later SELECT read the same
records, whatever has happened to the topic meanwhile. This module does not call Kafka.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from laminae.spark.sources.item_log import EntryList

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laminae.spark.sources.log_head import LogDirectory


class Place(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = dict[Place, int]


class Broker(Protocol):
    """The Kafka queries that a slice list needs. Each method is one request; SourceUnavailable if it fails."""

    def beginning(self) -> Offsets:
        """The starting offsets, according to the source's option `start`."""
        ...

    def ends(self, known: Offsets) -> Offsets:
        """The current end offset of each partition, including partitions that are not in `known`."""
        ...

    def starts(self) -> Offsets:
        """The earliest offset that each partition still has."""
        ...


@dataclass(frozen=True, slots=True)
class Slice:
    """The start and end offset of every partition known by then, also of those without new records.

    A partition whose topic was deleted and recreated restarts at offset 0: it is recognised by an end below its start.
    """

    item: int
    starts: Offsets
    ends: Offsets


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets of one partition that a range reads; `is_anew`: the topic was recreated, so earlier offsets belong to
    a deleted topic of the same name.
    """

    start: int
    end: int
    is_anew: bool = False


class SliceList(EntryList[Slice]):
    """Cuts new records into slices of about `limit` records (None: one slice for all of them), one slice per epoch."""

    def __init__(self, directory: LogDirectory, broker: Broker, limit: int | None) -> None:
        super().__init__(directory)
        self._broker = broker
        self._limit = limit

    def items(self, seen: int) -> int:
        items = self._directory.items(seen)
        # Existing slices are read before the broker is queried for more.
        return items if items > seen else self._grown(seen)

    def all_items(self) -> int:
        """The number of slices after slices for everything that the topic has now were added."""
        return self._grown(0)

    def _grown(self, seen: int) -> int:
        known = self._ends(self._directory.items(seen))
        begins = self._broker.beginning() if known is None else known
        # A topic that no longer matches the pattern keeps its offsets: it may come back.
        ends = {**begins, **self._broker.ends(begins)}
        if known is not None and ends == known:
            return self._directory.items(seen)
        first = self._broker.starts() if ends.keys() - begins.keys() else {}
        with self._directory.writing() as head:
            # Another process may have stored them meanwhile.
            last = self._ends(head.items)
            if last is not None and last != known:
                return head.items
            starts = {place: begins.get(place, first.get(place, 0)) for place in ends}
            slices = cut(starts, ends, self._limit, head.items)
            self._append(head, slices)
            return head.items + len(slices)

    def _ends(self, items: int) -> Offsets | None:
        """The end offsets of the last slice; None if there is no slice yet."""
        return next(self.entries(range(items - 1, items))).ends if items else None

    def _described(self, entry: Slice) -> Mapping[str, object]:
        return {"starts": nested(entry.starts), "ends": nested(entry.ends)}

    def _read(self, item: int, line: dict[str, Any]) -> Slice:
        return Slice(item, _flat(line["starts"]), _flat(line["ends"]))


def cut(starts: Offsets, ends: Offsets, limit: int | None, item: int) -> list[Slice]:
    """Slices from `starts` to `ends`, each with an equal share of every partition; none if there is nothing new."""
    sizes = {place: ends[place] - start for place, start in starts.items()}
    total = sum(size for size in sizes.values() if size > 0)
    if not any(sizes.values()):
        # The first slice records the offsets of an empty topic, too: with start = 'latest', records that arrive later
        # must not be skipped as if they had been there before.
        return [Slice(item, starts, ends)] if item == 0 else []
    count = 1 if limit is None else max(1, -(-total // limit))
    slices, reached = [], starts
    for number in range(1, count + 1):
        upto = {place: _share(start, sizes[place], number, count) for place, start in starts.items()}
        slices.append(Slice(item + number - 1, reached, upto))
        reached = upto
    return slices


def _share(start: int, size: int, number: int, count: int) -> int:
    # The offsets of a recreated partition restart in the first slice.
    return start + size if size < 0 else start + size * number // count


def merged(slices: Iterable[Slice]) -> dict[Place, Span]:
    """The offsets that consecutive slices cover of each partition; of a recreated one, only those since then."""
    spans: dict[Place, Span] = {}
    for slice_ in slices:
        for place, start in slice_.starts.items():
            end, before = slice_.ends[place], spans.get(place)
            if end < start:
                spans[place] = Span(0, end, is_anew=True)
            else:
                spans[place] = Span(start, end) if before is None else Span(before.start, end, before.is_anew)
    return spans


def nested(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """Offsets in the JSON structure of Spark's Kafka connector: by topic, then by partition."""
    by_topic: dict[str, dict[str, int]] = {}
    for place in sorted(offsets):
        by_topic.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return by_topic


def parsed(text: str) -> Offsets:
    """The offsets in a JSON text of that structure."""
    return _flat(json.loads(text))


def _flat(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        Place(topic, int(partition)): int(offset)
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }
