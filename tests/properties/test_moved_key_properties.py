"""The law of rows that move between keys: what is not sent, sent twice or read late, no row has values of another."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laminae.trace.cache import BoundedCache
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels import upsert
from laminae.views.kernels.keyed_table import KEPT, MOVED, MOVES, TABLE, KeyedTable
from laminae.views.kernels.moved import HOME, with_old_values
from tests.support.build import col
from tests.support.moving_rows import CHANGES, KEYS, LONG, epochs_of, partitions_of, played
from tests.support.traces import few_hashes, integrate, rows_of, spread_hash, upsert_delta

LAWFUL = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
COLUMNS = (
    col("id", "int", id=1, null=False),
    col("n", "int", id=2),
    *(col(name, "string", id=number) for number, name in enumerate(LONG, 3)),
)
NOTES = KeyedTable(("id",), COLUMNS, pa.int64(), has_snapshots=True)
SHARDS = 2


SHARD_OF = st.fixed_dictionaries({key: st.integers(0, SHARDS - 1) for key in KEYS})
HASHES = st.sampled_from([spread_hash, few_hashes])


class Shards:
    """A table in shards, fed as the stage of a source feeds it where an insert lacks values."""

    def __init__(self, shard_of, hashed) -> None:
        self.shard_of, self.hashed, self.anomalies, self.built = shard_of, hashed, 0, Counter()
        filesystem = pa.fs._MockFileSystem()
        self.store = RunStore(filesystem, "home", cache=BoundedCache(0), verified=BoundedCache(1 << 20))
        self.manifests = [Manifest()] * SHARDS

    def __call__(self, epoch) -> None:
        delta = with_old_values(NOTES, self._delta(epoch), self._runs(TABLE), self._runs(MOVED))
        arrived = [place_of(event) for _, event in epoch if event.op == "c" and event.moves]
        made = []
        for shard, manifest in enumerate(self.manifests):
            own = delta.filter(pc.equal(delta.column(HOME), shard))
            step = upsert.step(NOTES, own, manifest, self.store, arrived=np.array(arrived, dtype=np.int64))
            integrate(self.built, step.changes)
            self.anomalies += step.counts.anomalies
            made.append(step.manifest)
        self.manifests = made

    def rows(self):
        """By key, as the oracle has it, and as its changelog says."""
        found = rows_of(batch for each in self.manifests for batch in upsert.rows(NOTES, each, self.store))
        assert found == self.built
        return {row["id"]: (row["n"], row["body"], row["tags"]) for row in map(dict, found.elements())}

    def _runs(self, trace):
        return [self.store.open(run) for found in self.manifests for run in found.runs(trace)]

    def _delta(self, epoch) -> pa.Table:
        events = [event for _, event in sorted(epoch, key=lambda item: item[0])]
        names = [field.name for field in COLUMNS]
        rows = [
            ({"id": each.key, "n": each.n, "body": each.body, "tags": each.tags}, each.op == "d", order, place_of(each))
            for order, each in enumerate(events)
        ]
        kept = [[names.index(name) for name in each.lacks] or None for each in events]
        delta = upsert_delta(NOTES, rows, self.hashed)
        delta = delta.append_column(KEPT, pa.array(kept, pa.list_(pa.int32())))
        delta = delta.append_column(MOVES, pa.array([each.moves for each in events], pa.bool_()))
        return delta.append_column(HOME, pa.array([self.shard_of[each.key] for each in events], pa.int32()))


def place_of(event) -> int:
    """Odd: a change."""
    return 2 * event.lsn + 1


@LAWFUL
@given(CHANGES, SHARD_OF, HASHES, st.data())
def test_prop_rows_keep_their_values_under_every_key(changes, shard_of, hashed, data):
    table, events = played(changes)
    shards = Shards(shard_of, hashed)
    for epoch in data.draw(epochs_of(data.draw(partitions_of(events)))):
        shards(epoch)
    assert shards.rows() == {key: (row.n, row.body, row.tags) for key, row in table.items()}
    assert shards.anomalies == 0
    # Both events of every change were read, so nothing is under way.
    assert not any(each.runs(MOVED) for each in shards.manifests)


@LAWFUL
@given(CHANGES, SHARD_OF, HASHES, st.data())
def test_prop_value_of_an_insert_that_is_read_before_its_delete_is_null_and_counted(changes, shard_of, hashed, data):
    table, events = played(changes)
    shards = Shards(shard_of, hashed)
    for epoch in data.draw(epochs_of(data.draw(partitions_of(events)), deletes_first=False)):
        shards(epoch)
    found = shards.rows()
    assert found.keys() == table.keys()
    lost = 0
    for key, row in table.items():
        n, *values = found[key]
        assert n == row.n
        pairs = list(zip(values, (row.body, row.tags), strict=True))
        assert all(value in (None, expected) for value, expected in pairs)
        lost += sum(value != expected for value, expected in pairs)
    assert shards.anomalies >= lost
