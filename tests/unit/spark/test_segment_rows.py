"""What an epoch in which a view was replaced does to a table that holds one row for each key."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from laminae.catalog.model import SinkRecord
from laminae.spark.sinks.lakehouse.segment_rows import segment_rows
from laminae.spark.sinks.segment import Holds, Segment

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SINK = SinkRecord(1, "k", "v", (("connector", "delta"), ("mode", "upsert")), "live", None, 1, NOON, 1)


def changes(home: Path, name: str, rows: list[dict[str, object]]) -> Segment:
    own = {"_op": "+I", "_weight": 1, "_timestamp": NOON}
    table = pa.Table.from_pylist([own | row for row in rows])
    pq.write_table(table, home / name)
    return Segment(2, str(home), table.schema, len(rows), Holds.CHANGES, (name,), key=("id",))


def test_rows_of_a_replaced_view_go_unless_their_key_has_a_row_again(tmp_path):
    rows = [{"_op": "-D", "_weight": -1, "id": number, "old": "x"} for number in (1, 2, None)]
    gone = replace(changes(tmp_path, "gone.parquet", rows), holds=Holds.TAKEN_BACK)
    came = changes(tmp_path, "came.parquet", [{"id": 2, "new": 1}, {"id": 3, "new": 1}])
    found = segment_rows(replace(came, former=gone), SINK)
    assert found.rows.to_pylist() == [{"id": 2, "new": 1}, {"id": 3, "new": 1}]
    assert found.gone is not None
    assert found.gone.to_pylist() == [{"id": 1}, {"id": None}]
    alone = segment_rows(gone, SINK)
    assert alone.rows.num_rows == 0
    assert alone.gone is not None
    assert alone.gone.to_pylist() == [{"id": 1}, {"id": 2}, {"id": None}]
