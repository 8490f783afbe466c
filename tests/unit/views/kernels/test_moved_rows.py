"""Rows that move to another key: their values come along, also where the event that inserts them lacks some."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels.upsert.kernel import rows, step
from laminae.views.kernels.upsert.key_changes import resolve
from laminae.views.kernels.upsert.keyed_table import KEPT, MOVED, MOVES, TABLE, KeyedTable
from tests.support.build import col
from tests.support.traces import few_hashes, spread_hash, upsert_delta

COLUMNS = (col("name", "string", id=1), col("id", "bigint", id=2, null=False), col("raw", pa.binary(), id=3))
THINGS = KeyedTable(("id",), COLUMNS, pa.int64(), has_snapshots=True)
LACKS = "not sent"
# As Spark names the parts of an array.
MARKS = pa.list_(pa.field("element", pa.int32()))


class Things:
    """A table of one shard; events are (id, name or None for a delete, sequence), and `moves` the places of moves."""

    def __init__(self, store: RunStore, hashed) -> None:
        self.store, self.hashed, self.manifest = store, hashed, Manifest()

    def __call__(self, *events, moves=(), truncate_at=None):
        made = [
            ({"id": key, "name": name, "raw": None if name is None else b"r"}, name is None, order, place)
            for order, (key, name, place) in enumerate(events)
        ]
        delta = upsert_delta(THINGS, made, self.hashed)
        kept = [[0] if name == LACKS else None for _, name, _ in events]
        delta = delta.append_column(KEPT, pa.array(kept, MARKS))
        delta = delta.append_column(MOVES, pa.array([place in moves for *_, place in events], pa.bool_()))
        delta = resolve(THINGS, delta, self._runs(TABLE), self._runs(MOVED)).ready
        arrived = np.array([place for _, name, place in events if name and place in moves], dtype=np.int64)
        at = None if truncate_at is None else pa.scalar(truncate_at)
        found = step(THINGS, delta, self.manifest, self.store, at, arrived)
        self.manifest = found.manifest
        return found.counts

    def names(self):
        found = (row for batch in rows(THINGS, self.manifest, self.store) for row in batch.to_pylist())
        return {row["id"]: row["name"] for row in found}

    def under_way(self):
        return sum(len(run) for run in self._runs(MOVED))

    def _runs(self, trace):
        return [self.store.open(run) for run in self.manifest.runs(trace)]


@pytest.fixture(params=[spread_hash, few_hashes], ids=["spread", "colliding"])
def things(request, tmp_path) -> Things:
    return Things(RunStore.at(str(tmp_path)), request.param)


def test_value_that_a_moved_row_lacks_is_that_of_its_old_key(things):
    things((1, "of the trace", 1), (2, "old", 1))
    things(
        (2, "of this epoch", 11),
        (1, None, 13),
        (7, LACKS, 13),
        (2, None, 15),
        (8, LACKS, 15),
        (2, "comes behind it", 17),
        moves=[13, 15],
    )
    assert things.names() == {2: "comes behind it", 7: "of the trace", 8: "of this epoch"}


def test_rows_that_leave_one_key_in_one_epoch_are_told_apart(things):
    things((1, "a", 1))
    things((1, None, 11), (1, "b", 13), (1, None, 15), (7, LACKS, 11), (8, LACKS, 15), moves=[11, 15])
    assert things.names() == {7: "a", 8: "b"}


def test_row_that_moves_on_within_an_epoch_keeps_its_value(things):
    things((1, "a", 1))
    # As two partitions give them: keys 3 and 2, then key 1.
    moves = [(3, LACKS, 13), (3, LACKS, 15), (2, LACKS, 11), (2, None, 13), (1, None, 11)]
    counts = things(*moves, moves=[11, 13])
    assert (things.names(), counts.anomalies) == ({3: "a"}, 0)


def test_row_is_remembered_until_the_epoch_that_has_its_new_key(things):
    things((1, "long", 1), (2, "other", 1))
    things((1, None, 11), (2, None, 13), moves=[11])
    assert things.names() == {}
    assert things.under_way() == 1
    counts = things((7, LACKS, 11), moves=[11])
    assert (things.names(), counts.anomalies, things.under_way()) == ({7: "long"}, 0, 0)


def test_row_that_left_is_remembered_while_its_key_has_others(things):
    things((1, "a", 1))
    things((1, None, 11), (1, "b", 13), (1, None, 15), moves=[11, 15])
    things((1, "c", 17))
    # The delete is sent again.
    things((1, None, 11), (7, LACKS, 11), moves=[11])
    things((8, LACKS, 15), moves=[15])
    assert things.names() == {1: "c", 7: "a", 8: "b"}
    assert things.under_way() == 0


def test_row_whose_insert_has_all_values_is_not_remembered(things):
    things((1, "a", 1))
    things((1, None, 11), (7, "a", 11), moves=[11])
    assert things.under_way() == 0
    things((7, None, 13), moves=[13])
    things((8, "a", 13), moves=[13])
    assert things.under_way() == 0


def test_value_that_nobody_knows_is_null_and_not_that_of_the_row_before(things):
    things((1, "gone", 1), (2, "there", 1))
    counts = things((1, None, 11), (1, LACKS, 13), (2, LACKS, 15), (3, LACKS, 17), moves=[11, 13, 15, 17])
    assert (things.names(), counts.anomalies) == ({1: None, 2: None, 3: None}, 3)
    counts = things((1, LACKS, 19))
    assert (things.names()[1], counts.anomalies) == (None, 0)


def test_truncation_forgets_rows_under_way(things):
    things((1, "a", 1), (2, "b", 1))
    things((1, None, 11), (2, None, 21), moves=[11, 21])
    things(truncate_at=20)
    assert things.under_way() == 1
    things((7, LACKS, 11), (8, LACKS, 21), moves=[11, 21])
    assert (things.names(), things.under_way()) == ({8: "b"}, 0)
