"""The law of rows that move between keys: what is not sent, sent twice or read late, no row has values of another.

Shards are fed as the stage of a source feeds them: a shard is given its own events first, and those of all only if one
of them asks for it.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.trace.cache import BoundedCache
from laminae.trace.store import RunStore
from laminae.views.kernels.upsert import kernel as upsert
from laminae.views.kernels.upsert.keyed_table import AWAITS, KEPT, MOVED, MOVES, POSTPONED, KeyedTable
from laminae.views.kernels.upsert.postponed import HOME
from laminae.views.kernels.upsert.shard import KeyedShard
from tests.support.build import col
from tests.support.examples import examples
from tests.support.moved_cases import CASES, cases_in
from tests.support.moving_rows import KEYS, LONG, Read, epochs_of, history, partitions_of
from tests.support.traces import few_hashes, integrate, rows_of, spread_hash, upsert_delta

COLUMNS = (
    col("id", "int", id=1, null=False),
    col("n", "int", id=2),
    *(col(name, "string", id=number) for number, name in enumerate(LONG, 3)),
)
NOTES = KeyedTable(("id",), COLUMNS, pa.int64(), has_snapshots=True)
MOST_SHARDS = 3

ENOUGH = 5
"""Histories of each kind, at least."""


class Shards:
    """A table in shards. With `is_replayed` each epoch is computed twice, as after a kill before its commit."""

    def __init__(self, shard_of, hashed, is_replayed=False) -> None:
        self.shard_of, self.hashed, self.is_replayed = shard_of, hashed, is_replayed
        self.anomalies, self.built = 0, Counter()
        filesystem = pa.fs._MockFileSystem()
        self.store = RunStore(filesystem, "home", cache=BoundedCache(0), verified=BoundedCache(1 << 20))
        self.manifests = {}

    def __call__(self, epoch) -> None:
        if self.is_replayed:
            self._computed(epoch)
        for shard, step in self._computed(epoch).items():
            integrate(self.built, step.changes)
            self.anomalies += step.counts.anomalies - step.counts.recovered
            self.manifests[shard] = step.manifest

    def rows(self):
        """By key, as the oracle has it, and as its changelog says."""
        found = rows_of(batch for each in self.manifests.values() for batch in upsert.rows(NOTES, each, self.store))
        assert found == self.built
        return {row["id"]: (row["n"], row["body"], row["tags"]) for row in map(dict, found.elements())}

    def has(self, trace) -> bool:
        return any(each.runs(trace) for each in self.manifests.values())

    def _computed(self, epoch):
        shards = {
            shard: KeyedShard(NOTES, shard, self.manifests, self.store)
            for shard in range(max(self.shard_of.values()) + 1)
        }
        events = [event for _, event in sorted(epoch, key=lambda item: item[0])]
        cuts = [place_of(each) for each in events if each.op == "t"]
        truncate_at = pa.scalar(max(cuts)) if cuts else None
        moved = [each for each in events if each.is_insert_of_moved_row]
        arrived = np.array([place_of(each) for each in moved], dtype=np.int64)
        rows = self._delta([each for each in events if each.op != "t"])
        given = {shard: self._given(rows, shard) for shard in shards}
        is_spread = any(each.needs_all(given[shard]) for shard, each in shards.items())
        return {
            shard: each.step(rows if is_spread else given[shard], arrived, truncate_at, is_spread)
            for shard, each in shards.items()
            if is_spread or cuts or moved or given[shard].num_rows
        }

    @staticmethod
    def _given(rows, shard):
        is_moved_insert = pc.and_not(rows.column(MOVES), rows.column("_deleted"))
        return rows.filter(pc.or_(pc.equal(rows.column(HOME), shard), is_moved_insert))

    def _delta(self, events) -> pa.Table:
        names = [field.name for field in COLUMNS]
        rows = [(each.sent(), each.op == "d", order, place_of(each)) for order, each in enumerate(events)]
        kept = [[names.index(name) for name in each.lacks] or None for each in events]
        delta = upsert_delta(NOTES, rows, self.hashed)
        delta = delta.append_column(KEPT, pa.array(kept, pa.list_(pa.int32())))
        delta = delta.append_column(MOVES, pa.array([each.moves for each in events], pa.bool_()))
        delta = delta.append_column(AWAITS, pa.array([each.is_insert_of_moved_row for each in events], pa.bool_()))
        return delta.append_column(HOME, pa.array([self.shard_of[each.key] for each in events], pa.int32()))


def place_of(event) -> int:
    """Odd: a change."""
    return 2 * event.lsn + (event.op != "r")


def checked(dice: random.Random, *, deletes_first: bool) -> Counter[str]:
    """What one run of one history has shown, after the law was held against every epoch of it."""
    events = history(dice)
    shards = dice.randint(1, MOST_SHARDS)
    shard_of = {key: dice.randint(0, shards - 1) for key in KEYS}
    table = Shards(shard_of, dice.choice((spread_hash, few_hashes)), is_replayed=dice.randint(0, 3) == 0)
    read, found, postponed = Read(events), {}, 0
    epochs = epochs_of(dice, partitions_of(dice, events), deletes_first=deletes_first)
    for epoch in epochs:
        table(epoch)
        read.add(epoch)
        found, expected, waiting = table.rows(), read.rows(), read.keys_to_wait()
        # Only while a value of its key cannot be known a row is left out, or is the one before a truncation to come.
        assert {key for key in KEYS if found.get(key) != expected.get(key)} <= waiting
        for key in waiting & found.keys():
            assert found[key] == expected.get(key) or found[key] in read.rows_before_unread_truncations(key)
        assert table.has(POSTPONED) == (table.anomalies > 0)
        postponed += table.has(POSTPONED)
    assert found == read.rows()
    assert not table.has(POSTPONED)
    assert table.anomalies == 0
    if deletes_first:
        assert not postponed
        # Both events of every change were read, so nothing is under way.
        assert not table.has(MOVED)
    return cases_in(events, epochs, shard_of) + Counter({"epochs with postponed events": postponed})


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans())
def test_prop_table_has_only_rows_of_the_database_after_every_epoch_and_all_in_the_end(dice, deletes_first):
    checked(dice, deletes_first=deletes_first)


def test_law_holds_in_every_kind_of_move():
    """The same with histories that are long from the start, and are counted."""
    seen = Counter()
    for seed in range(700):
        try:
            seen += checked(random.Random(seed), deletes_first=seed % 4 == 0)
        except AssertionError as broken:
            raise AssertionError(f"with seed {seed}") from broken
    rare = {case: seen[case] for case in ("epochs with postponed events", *CASES) if seen[case] < ENOUGH}
    assert not rare, seen
