"""The law of tables without a key: wherever epochs are cut, the bag and its changelog are what a Counter counts."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.fs
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from laminae.trace.cache import BoundedCache
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels.multiset import kernel
from laminae.views.kernels.multiset.kernel import Multiset
from laminae.views.kernels.multiset.truncation import (
    EventPosition,
    effective_truncations,
    is_covered,
    is_late,
    is_taken,
    progress_of,
    with_progress,
)
from tests.support.build import col
from tests.support.examples import examples
from tests.support.traces import few_hashes, spread_hash

LAWFUL = settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
BAG = Multiset((col("c1", "string", id=1), col("c2", "int", id=2)))
SCHEMA = pa.schema(
    [
        ("_hash", pa.int64()),
        ("c1", pa.string()),
        ("c2", pa.int32()),
        ("_weight", pa.int64()),
        ("_partition", pa.string()),
        ("_item", pa.int64()),
        ("_offset", pa.int64()),
        ("_sequence", pa.int64()),
    ]
)
ROWS = st.tuples(st.sampled_from([None, "", "a"]), st.sampled_from([None, 0, 1]))
INSERT, DELETE, UPDATE, TRUNCATE = "c", "d", "u", "t"
# The row that goes is one of those that are there, by its place among them.
CHANGES = st.lists(
    st.tuples(st.sampled_from([INSERT, INSERT, INSERT, DELETE, UPDATE, UPDATE, TRUNCATE]), ROWS, st.integers(0, 99)),
    max_size=30,
)
LANES = ("p", "q")


def played(changes):
    """Events (weighted rows, or None for a truncation), and what they leave."""
    there, events = [], []
    for op, row, pick in changes:
        if op == TRUNCATE:
            there, event = [], None
        else:
            event = []
            if op != INSERT and there:
                event.append((there.pop(pick % len(there)), -1))
            if op != DELETE:
                there.append(row)
                event.append((row, 1))
        events.append(event)
    return events, Counter(there)


class Shards:
    """A bag in two shards, fed as the stage of a source feeds it."""

    def __init__(self, hashed) -> None:
        self.hashed, self.built, self.refused = hashed, Counter(), 0
        filesystem = pa.fs._MockFileSystem()
        self.store = RunStore(filesystem, "home", cache=BoundedCache(0), verified=BoundedCache(1 << 20))
        self.manifests = [Manifest()] * 2

    def __call__(self, epoch) -> None:
        """Events with their places."""
        partitions = progress_of((manifest, self.store) for manifest in self.manifests)
        truncations = [place for event, place in epoch if event is None]
        cuts = effective_truncations(truncations, partitions)
        self.refused += sum(is_late(each, partitions) and not is_covered(each, partitions) for each in truncations)
        former = [partition.cut for partition in partitions if partition.cut is not None]
        made = []
        for shard, manifest in enumerate(self.manifests):
            rows = self._rows(epoch, shard)
            taken = rows.filter(pa.array(is_taken(rows, [*former, *cuts])))
            step = kernel.step(BAG, taken, manifest, self.store, is_cut=bool(cuts))
            for row in step.changes.to_pylist():
                self.built[row["c1"], row["c2"]] += row["_weight"]
            made.append(with_progress(step.manifest, self.store, partitions, taken, cuts))
        self.manifests = made
        assert all(weight >= 0 for weight in self.built.values())

    def rows(self):
        found = Counter()
        for manifest in self.manifests:
            for batch in kernel.rows(BAG, manifest, self.store):
                for row in batch.to_pylist():
                    found[row["c1"], row["c2"]] += row["_weight"]
        return found

    def _rows(self, epoch, shard: int) -> pa.Table:
        found = []
        for event, place in epoch:
            for row, weight in event or ():
                if spread_hash(row) % 2 == shard:
                    where = dict(zip(("_partition", "_item", "_offset", "_sequence"), astuple(place), strict=True))
                    found.append({"_hash": self.hashed(row), "c1": row[0], "c2": row[1], "_weight": weight, **where})
        return pa.Table.from_pylist(found, SCHEMA)


def astuple(place: EventPosition) -> tuple[str, int, int, int]:
    return place.partition, place.item, place.offset, place.sequence


def cut_into(events, lengths):
    """Epochs of these lengths, and one with the rest."""
    at = 0
    for length in lengths:
        yield events[at : at + length]
        at += length
    yield events[at:]


HASHES = st.sampled_from([spread_hash, few_hashes])
LENGTHS = st.lists(st.integers(0, 6), max_size=8)


@LAWFUL
@given(CHANGES, LENGTHS, HASHES)
def test_bag_and_its_changelog_equal_what_the_events_leave(changes, lengths, hashed):
    events, expected = played(changes)
    shards = Shards(hashed)
    placed = [(event, EventPosition("", 0, number, number)) for number, event in enumerate(events)]
    for epoch in cut_into(placed, lengths):
        shards(epoch)
    assert shards.rows() == expected
    assert +shards.built == expected
    assert shards.refused == 0


@settings(LAWFUL, max_examples=examples(150))
@given(CHANGES, HASHES, st.data())
def test_events_of_two_partitions_read_in_any_order_leave_the_same_or_a_truncation_is_refused(changes, hashed, data):
    events, expected = played(changes)
    partitions = {partition: [] for partition in LANES}
    for number, event in enumerate(events):
        partition = data.draw(st.sampled_from(LANES))
        partitions[partition].append((event, EventPosition(partition, 0, len(partitions[partition]), number)))
    shards = Shards(hashed)
    while any(partitions.values()):
        # Each epoch takes what is there of each partition.
        epoch = []
        for waiting in partitions.values():
            count = data.draw(st.integers(0, 5))
            epoch += waiting[:count]
            del waiting[:count]
        shards(epoch)
    if not shards.refused:
        assert shards.rows() == expected
        assert +shards.built == expected


@LAWFUL
@given(CHANGES, LENGTHS, st.integers(0, 30), HASHES)
def test_events_that_are_sent_again_from_before_a_truncation_on_change_nothing(changes, lengths, back, hashed):
    first, expected = played(changes)
    again = first[max(len(first) - back, 0) :]
    assume(None in again)
    shards = Shards(hashed)
    for epoch in cut_into([(event, EventPosition("", 0, n, n)) for n, event in enumerate([*first, *again])], lengths):
        shards(epoch)
    assert shards.rows() == expected
