"""Tables by primary key as a kernel: order, sequences, remembered deletes and truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.trace.manifest import Manifest
from laminae.views.kernels.upsert.kernel import rows, step
from laminae.views.kernels.upsert.keyed_table import KEPT, KeyedTable
from tests.support.build import col
from tests.support.traces import spread_hash, upsert_delta

if TYPE_CHECKING:
    from laminae.trace.store import RunStore

COLUMNS = (col("name", "string", id=1), col("id", "bigint", id=2, null=False), col("tags", pa.list_(pa.string()), id=3))
BY_LOG = KeyedTable(("id",), COLUMNS)
BY_SEQUENCE = KeyedTable(("id",), COLUMNS, pa.int64())


class Running:
    """A table fed epoch after epoch; events are (id, name or None for a delete, sequence)."""

    def __init__(self, table: KeyedTable, store: RunStore, hashed=spread_hash) -> None:
        self.table, self.store, self.hashed, self.manifest, self.order = table, store, hashed, Manifest(), 0

    def __call__(self, *events, truncate_at=None):
        made = []
        for key, name, *sequence in events:
            self.order += 1
            row = {"id": key, "name": name, "tags": None if name is None else [name]}
            made.append((row, name is None, self.order, *sequence))
        delta = upsert_delta(self.table, made[::-1], self.hashed)
        at = None if truncate_at is None else pa.scalar(truncate_at, self.table.sequence or pa.int64())
        self.last = step(self.table, delta, self.manifest, self.store, at)
        self.manifest = self.last.manifest
        found = [(row["_op"], row["id"], row["name"]) for row in self.last.changes.to_pylist()]
        assert all(row["tags"] == [row["name"]] for row in self.last.changes.to_pylist())
        return sorted(found, key=lambda change: change[1])

    def rows(self):
        found = (row for batch in rows(self.table, self.manifest, self.store) for row in batch.to_pylist())
        return {row["id"]: row["name"] for row in found}


def test_row_appears_changes_and_goes(store, hashed):
    run = Running(BY_LOG, store, hashed)
    assert run((1, "a"), (2, "b")) == [("+I", 1, "a"), ("+I", 2, "b")]
    assert run((1, "c")) == [("-U", 1, "a"), ("+U", 1, "c")]
    assert run.rows() == {1: "c", 2: "b"}
    assert run((1, None)) == [("-D", 1, "c")]
    assert run.rows() == {2: "b"}


def test_last_event_of_the_log_wins_within_an_epoch(store, hashed):
    run = Running(BY_LOG, store, hashed)
    assert run((1, "a"), (1, None), (1, "b"), (2, "x"), (2, None)) == [("+I", 1, "b")]
    assert run((1, None), (1, "b")) == []
    assert run.rows() == {1: "b"}


def test_redelivered_row_says_nothing_and_writes_nothing(store):
    run = Running(BY_LOG, store)
    run((1, "a"), (2, "b"))
    before = run.manifest
    assert run((1, "a"), (2, "b")) == []
    assert run.manifest == before


def test_columns_come_in_the_order_of_the_table(store):
    run = Running(BY_LOG, store)
    run((1, "a"))
    assert run.last.changes.schema.names == ["_op", "_weight", "name", "id", "tags"]
    assert next(rows(BY_LOG, run.manifest, store)).schema.equals(pa.schema(COLUMNS))


def test_delete_of_a_key_never_seen_is_counted(store):
    run = Running(BY_LOG, store)
    assert run((1, None)) == []
    assert run.last.counts.anomalies == 1
    assert run.manifest == Manifest()
    assert run((1, "a"), (1, None), (1, None), (2, "b")) == [("+I", 2, "b")]
    assert run.last.counts.anomalies == 1
    assert run((2, None), (2, "c"), (2, None)) == [("-D", 2, "b")]
    assert run.last.counts.anomalies == 0


def test_event_that_is_not_newer_is_dropped_and_counted(store, hashed):
    run = Running(BY_SEQUENCE, store, hashed)
    assert run((1, "b", 5), (1, "a", 3), (1, "c", 5), (2, "x", 1)) == [("+I", 1, "b"), ("+I", 2, "x")]
    assert run.last.counts.dropped == 2
    assert run((1, "old", 4), (1, "same", 5)) == []
    assert run.last.counts.dropped == 2
    assert run((1, "old", 4), (1, "new", 6), (1, "newer", 7), (1, "late", 6)) == [("-U", 1, "b"), ("+U", 1, "newer")]
    assert run.last.counts.dropped == 2
    assert run.rows() == {1: "newer", 2: "x"}


def test_delete_is_remembered_with_its_sequence(store, hashed):
    run = Running(BY_SEQUENCE, store, hashed)
    run((1, "a", 1), (2, "b", 1))
    assert run((1, None, 5)) == [("-D", 1, "a")]
    assert run((1, "late", 4)) == []
    assert run.last.counts.dropped == 1
    assert run((1, "again", 6)) == [("+I", 1, "again")]


def test_delete_that_overtakes_its_insert_keeps_the_row_away(store):
    run = Running(BY_SEQUENCE, store)
    assert run((1, None, 5), (1, None, 6)) == []
    assert run.last.counts.anomalies == 1
    assert run((1, "late", 4), (1, None, 7)) == []
    assert (run.last.counts.anomalies, run.last.counts.dropped) == (0, 1)
    assert run.rows() == {}


def test_event_without_a_sequence_is_older_than_any_other(store):
    run = Running(BY_SEQUENCE, store)
    assert run((1, "first", None)) == [("+I", 1, "first")]
    assert run((1, "second", None)) == []
    assert run((1, "third", -5)) == [("-U", 1, "first"), ("+U", 1, "third")]


def test_sequences_of_text_are_ordered_as_text(store):
    run = Running(KeyedTable(("id",), COLUMNS, pa.string()), store)
    assert run((1, "a", "bin.000002:10"), (1, "b", "bin.000001:99")) == [("+I", 1, "a")]
    assert run((1, "c", "bin.000010:1")) == [("-U", 1, "a"), ("+U", 1, "c")]


def test_truncation_retracts_all_that_came_before(store, hashed):
    run = Running(BY_LOG, store, hashed)
    run((1, "a"), (2, "b"), (3, "c"))
    found = run((1, "x"), (2, "b"), (4, "d"), (5, "e"), truncate_at=6)
    assert found == [("-D", 1, "a"), ("-D", 2, "b"), ("-D", 3, "c"), ("+I", 4, "d"), ("+I", 5, "e")]
    assert run.rows() == {4: "d", 5: "e"}


def test_row_written_again_after_a_truncation_is_an_update_or_nothing(store):
    run = Running(BY_LOG, store)
    run((1, "a"), (2, "b"))
    assert run((1, "a"), (2, "c"), truncate_at=3) == [("-U", 2, "b"), ("+U", 2, "c")]
    assert run.rows() == {1: "a", 2: "c"}


def test_truncation_by_sequence_leaves_newer_rows_and_stops_older_events(store, hashed):
    run = Running(BY_SEQUENCE, store, hashed)
    run((1, "a", 10), (2, "b", 30), (3, "c", 10), (4, None, 10))
    assert run((3, "d", 21), truncate_at=20) == [("-D", 1, "a"), ("-U", 3, "c"), ("+U", 3, "d")]
    assert run.rows() == {2: "b", 3: "d"}
    assert run((1, "late", 15), (5, "late", 19), (6, "new", 20)) == [("+I", 6, "new")]
    assert run.last.counts.dropped == 2
    assert run((7, "x", 25), truncate_at=5) == [("+I", 7, "x")]
    assert run((8, "late", 19)) == []


def test_truncation_of_an_empty_table_is_nothing(store):
    assert Running(BY_LOG, store)(truncate_at=1) == []
    run = Running(BY_SEQUENCE, store)
    assert run(truncate_at=9) == []
    assert run((1, "late", 8)) == []


def test_table_follows_its_columns(store):
    run = Running(BY_LOG, store)
    run((1, "a"), (2, "b"), (3, "c"))
    added = col("city", "string", id=9, default='"?"')
    run.table = KeyedTable(("id",), (*COLUMNS[:2], col("labels", pa.list_(pa.string()), id=3), added))
    found = [row for batch in rows(run.table, run.manifest, store) for row in batch.to_pylist()]
    assert sorted(found, key=lambda row: row["id"])[0] == {"name": "a", "id": 1, "labels": ["a"], "city": "?"}


def test_column_that_an_event_does_not_have_keeps_the_value_of_the_row_before_it(store, hashed):
    run = Running(BY_SEQUENCE, store, hashed)
    run((1, "a", 10), (2, "b", 10))
    events = [
        # Of the trace; of an earlier event of the epoch; of nothing, as the row was never seen; not newer than 10.
        ({"id": 1, "name": "??", "tags": ["x"]}, False, 1, 11),
        ({"id": 2, "name": "c", "tags": None}, False, 2, 12),
        ({"id": 2, "name": "??", "tags": ["y"]}, False, 3, 13),
        ({"id": 3, "name": "??", "tags": []}, False, 4, 14),
        ({"id": 2, "name": "late", "tags": []}, False, 5, 9),
    ]
    delta = upsert_delta(BY_SEQUENCE, events, hashed)
    kept = [[0] if name == "??" else None for name in delta.column("name").to_pylist()]
    delta = delta.append_column(KEPT, pa.array(kept, pa.list_(pa.int32())))
    found = step(BY_SEQUENCE, delta, run.manifest, store)
    after = {row["id"]: (row["name"], row["tags"]) for row in found.changes.to_pylist() if row["_op"] in ("+U", "+I")}
    assert after == {1: ("a", ["x"]), 2: ("c", ["y"]), 3: (None, [])}
    assert (found.counts.anomalies, found.counts.dropped) == (1, 1)


def test_change_under_way_when_a_snapshot_was_taken_counts_behind_its_row(store, hashed):
    run = Running(KeyedTable(("id",), COLUMNS, pa.int64(), has_snapshots=True), store, hashed)
    # Even: rows of a snapshot. The change that comes behind one, of an earlier place, is the newer row.
    assert run((1, "snapshot", 200), (2, "snapshot", 200), (2, "changed", 191)) == [
        ("+I", 1, "snapshot"),
        ("+I", 2, "changed"),
    ]
    assert run((1, "changed", 195), (1, "late", 193), (2, "again", 191)) == [
        ("-U", 1, "snapshot"),
        ("+U", 1, "changed"),
    ]
    assert run.last.counts.dropped == 2
    # A snapshot that is taken later has read what all changes before it have left.
    assert run((1, "changed", 195), (1, "anew", 300)) == [("-U", 1, "changed"), ("+U", 1, "anew")]
