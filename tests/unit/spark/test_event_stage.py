"""The stage of a source's table, given the columns that Spark makes of events: what it asks for, and what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.spark.source_tables.key_changes import EVENT_OP
from laminae.spark.source_tables.keyed import SourceTable
from laminae.spark.tasks.emit import Emit
from laminae.spark.tasks.shard_task import SHARD, ShardTask
from laminae.spark.tasks.task_reports import REPORT, StateReport, report_of
from laminae.trace.manifest import Manifest
from laminae.trace.store import RunStore
from laminae.views.kernels.upsert import kernel as upsert
from laminae.views.kernels.upsert.keyed_table import DELETED, ITEM, KEPT, MOVES, OFFSET, SEQUENCE
from laminae.views.kernels.upsert.postponed import HOME
from tests.support.build import col
from tests.support.traces import spread_hash

if TYPE_CHECKING:
    from pathlib import Path

TAGS = pa.list_(pa.string())
SCHEMA = pa.schema([col("id", "int", id=1, null=False), col("body", "string", id=2), col("tags", TAGS, id=3)])
FIELDS = tuple(field.with_name(f"c{number}") for number, field in enumerate(SCHEMA, 1))
SHARDS = 2
LACKS = "__debezium_unavailable_value"


class Source:
    """Events are (op, id, body, lsn, does a header tell of a move); their shard is the parity of the id.

    The tags of a row have its body in them.
    """

    def __init__(self, home: Path) -> None:
        self.home, self.manifests, self.anomalies = str(home), {}, 0

    def __call__(self, *events) -> bool:
        """Whether all shards had to be given all events."""
        notes = self._notes(events, is_spread=False)
        is_spread = any(note.moved for note in notes)
        if is_spread:
            notes = self._notes(events, is_spread=True)
        self.manifests |= {note.shard: note.manifest for note in notes}
        self.anomalies += sum(note.anomalies - note.recovered for note in notes)
        return is_spread

    def rows(self):
        manifests, store = map(Manifest.from_json, self.manifests.values()), RunStore.at(self.home)
        found = (batch for each in manifests for batch in upsert.rows(self._table().keyed, each, store))
        rows = [row for batch in found for row in batch.to_pylist()]
        assert all(row["c3"] == (row["c2"] and [row["c2"], None]) for row in rows)
        return {row["c1"]: row["c2"] for row in rows}

    def _table(self) -> SourceTable:
        return SourceTable(1, "notes", SCHEMA, ("id",), FIELDS, None, None, True, 0, self.manifests)

    def _notes(self, events, *, is_spread) -> list[StateReport]:
        table = self._table()
        emit = Emit(1, self.home, "changes", table.columns, ("id",), 0)
        stage = ShardTask(table.kernel(is_spread), table.state(self.home), table.output, emit, fails_alone=False)
        given = [[row for row in _sent(events, is_spread) if row[SHARD] == shard] for shard in range(SHARDS)]
        made = [stage(iter([pa.RecordBatch.from_pylist(rows, schema=SENT)])) for rows in given if rows]
        texts = [text for batches in made for batch in batches for text in batch.column(REPORT).drop_null().to_pylist()]
        return [note for note in map(report_of, texts) if isinstance(note, StateReport)]


SENT = pa.schema(
    {
        "_hash": pa.int64(),
        ITEM: pa.int64(),
        OFFSET: pa.int64(),
        SHARD: pa.int32(),
        HOME: pa.int32(),
        DELETED: pa.bool_(),
        SEQUENCE: pa.int64(),
        EVENT_OP: pa.string(),
        MOVES: pa.bool_(),
        KEPT: pa.string(),
        "c1": pa.int32(),
        "c2": pa.string(),
        "c3": TAGS,
    }
)


def _sent(events, is_spread):
    """As `table_delta` makes it."""
    for offset, (op, key, body, lsn, moves) in enumerate(events):
        goes_to_all = is_spread or (op == "c" and moves)
        for shard in range(SHARDS) if goes_to_all else [key % SHARDS]:
            told = {HOME: key % SHARDS, DELETED: op == "d", SEQUENCE: 2 * lsn + 1, EVENT_OP: op, MOVES: moves}
            row = {"_hash": spread_hash((key,)), "c1": key, "c2": body, "c3": body and [body, None]}
            yield {ITEM: 0, OFFSET: offset, SHARD: shard, KEPT: "1,2" if body == LACKS else None, **told, **row}


def test_moved_row_whose_insert_is_read_first_has_its_value_when_the_delete_is_read(tmp_path):
    notes = Source(tmp_path)
    assert not notes(("c", 1, "long", 1, False), ("c", 3, "other", 2, False))
    assert notes(("c", 224, LACKS, 5, True))
    assert (notes.rows(), notes.anomalies) == ({1: "long", 3: "other"}, 1)
    # A delete that nobody waits for needs no events of other shards.
    assert not notes(("d", 3, None, 7, True))
    assert notes(("d", 1, None, 5, True))
    assert (notes.rows(), notes.anomalies) == ({224: "long"}, 0)


def test_insert_that_no_header_told_of_does_not_wait(tmp_path):
    notes = Source(tmp_path)
    notes(("c", 1, "long", 1, False))
    assert notes(("c", 224, LACKS, 5, False))
    assert (notes.rows(), notes.anomalies) == ({1: "long", 224: None}, 2)
    assert notes(("d", 1, None, 7, False), ("c", 226, LACKS, 7, False))
    assert (notes.rows(), notes.anomalies) == ({224: None, 226: "long"}, 2)
