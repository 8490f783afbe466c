"""The insert of a moved row that is read before the delete under its old key: it waits, with all that follows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from laminae.trace.store import RunStore
from laminae.views.kernels.upsert.kernel import rows
from laminae.views.kernels.upsert.keyed_table import AWAITS, KEPT, MOVED, MOVES, POSTPONED, KeyedTable
from laminae.views.kernels.upsert.postponed import HOME
from laminae.views.kernels.upsert.shard import KeyedShard
from tests.support.build import col
from tests.support.traces import spread_hash, upsert_delta

NAME, ID, SIZE = col("name", "string", id=1), col("id", "bigint", id=2, null=False), col("size", "int", id=3)
THINGS = KeyedTable(("id",), (NAME, ID, SIZE), pa.int64(), has_snapshots=True)
LACKS = "not sent"
SHARDS = 2


class Things:
    """A table in shards by the parity of keys. Events are (id, name or None for a delete, size, sequence).

    `moves` are the places of moves that a header told of.
    """

    def __init__(self, store: RunStore) -> None:
        self.store, self.table, self.manifests = store, THINGS, {}

    def __call__(self, *events, moves=(), truncate_at=None):
        """How many anomalies there are more than before."""
        delta, own = self._delta(events, moves), [place for _, name, _, place in events if name and place in moves]
        at = None if truncate_at is None else pa.scalar(truncate_at)
        shards = [KeyedShard(self.table, shard, self.manifests, self.store) for shard in range(SHARDS)]
        is_spread = any(each.needs_all(delta) for each in shards)
        steps = [each.step(delta, np.array(own, dtype=np.int64), at, is_spread) for each in shards]
        self.manifests = {shard: step.manifest for shard, step in enumerate(steps)}
        return sum(step.counts.anomalies - step.counts.recovered for step in steps)

    def rows(self):
        found = (batch for each in self.manifests.values() for batch in rows(self.table, each, self.store))
        return {row["id"]: (row["name"], row["size"]) for batch in found for row in batch.to_pylist()}

    def kept(self, trace):
        return sum(run.rows for manifest in self.manifests.values() for run in manifest.runs(trace))

    def _delta(self, events, moves):
        names = [field.name for field in self.table.columns]
        empty = dict.fromkeys(names)
        made = [
            ({**empty, "name": name, "id": key, "size": size}, name is None, order, place)
            for order, (key, name, size, place) in enumerate(events)
        ]
        delta = upsert_delta(self.table, made, spread_hash)
        kept = [[names.index("name")] if name == LACKS else None for _, name, *_ in events]
        told = [place in moves for *_, place in events]
        inserts = [name is not None and is_told for (_, name, *_), is_told in zip(events, told, strict=True)]
        delta = delta.append_column(KEPT, pa.array(kept, pa.list_(pa.int32())))
        delta = delta.append_column(MOVES, pa.array(told, pa.bool_())).append_column(
            AWAITS, pa.array(inserts, pa.bool_())
        )
        return delta.append_column(HOME, pa.array([key % SHARDS for key, *_ in events], pa.int32()))


@pytest.fixture
def things(tmp_path) -> Things:
    return Things(RunStore.at(str(tmp_path)))


def test_row_stays_under_its_old_key_until_the_delete_is_read(things):
    things((1, "long", 5, 1))
    assert things((8, LACKS, 6, 11), moves=[11]) == 1
    assert things.rows() == {1: ("long", 5)}
    assert things((1, None, None, 11), moves=[11]) == -1
    assert things.rows() == {8: ("long", 6)}
    assert (things.kept(POSTPONED), things.kept(MOVED)) == (0, 0)


def test_value_is_that_at_the_time_of_the_move(things):
    things((1, "old", 5, 1))
    things((8, LACKS, 6, 11), moves=[11])
    things((1, "new", 5, 7))
    assert things.rows() == {1: ("new", 5)}
    things((8, LACKS, 9, 13), (1, None, None, 11), (1, "another row", 5, 15), moves=[11])
    assert things.rows() == {1: ("another row", 5), 8: ("new", 9)}


def test_row_that_moved_on_waits_for_the_first_of_its_deletes(things):
    things((1, "long", 5, 1))
    things((2, LACKS, 6, 11), moves=[11])
    things((3, LACKS, 7, 13), moves=[13])
    things((2, None, None, 13), (2, LACKS, 6, 11), moves=[11, 13])
    assert things.rows() == {1: ("long", 5)}
    things((1, None, None, 11), moves=[11])
    assert things.rows() == {3: ("long", 7)}
    assert (things.kept(POSTPONED), things.kept(MOVED)) == (0, 0)


def test_update_that_sends_the_value_ends_the_wait(things):
    assert things((8, LACKS, 6, 11), moves=[11]) == 1
    assert things((8, "whole", 7, 13)) == -1
    assert things.rows() == {8: ("whole", 7)}


def test_delete_and_truncation_end_the_wait(things):
    things((8, LACKS, 6, 11), (6, LACKS, 6, 13), moves=[11, 13])
    things((8, None, None, 15))
    assert things.kept(POSTPONED) == 1
    things(truncate_at=17)
    assert (things.rows(), things.kept(POSTPONED)) == ({}, 0)


def test_key_that_waits_for_long_keeps_few_events(things):
    things((8, LACKS, 0, 11), moves=[11])
    for number in range(20):
        things((8, LACKS, number, 13 + 2 * number))
    assert things.kept(POSTPONED) == 2
    things((1, "long", 5, 1), (1, None, None, 11), moves=[11])
    assert things.rows() == {8: ("long", 19)}


def test_delete_whose_header_was_lost_ends_the_wait(things):
    """As that of a dead letter that is replayed."""
    things((1, "long", 5, 1))
    things((8, LACKS, 6, 11), moves=[11])
    things((1, None, None, 11))
    assert things.rows() == {8: ("long", 6)}


def test_insert_does_not_wait_for_a_delete_of_a_row_that_was_never_seen(things):
    assert things((1, None, None, 11), moves=[11]) == 1
    assert things((8, LACKS, 6, 11), moves=[11]) == 0
    assert (things.rows(), things.kept(POSTPONED), things.kept(MOVED)) == ({8: (None, 6)}, 0, 0)


def test_postponed_events_follow_the_columns_of_the_table(things):
    things((1, "long", 5, 1))
    things((8, LACKS, 6, 11), moves=[11])
    # Another order, another type, and a column more.
    wider = (col("size", "bigint", id=3), ID, col("more", "int", id=4), NAME)
    things.table = KeyedTable(("id",), wider, pa.int64(), has_snapshots=True)
    things((1, None, None, 11), moves=[11])
    assert things.rows() == {8: ("long", 6)}
