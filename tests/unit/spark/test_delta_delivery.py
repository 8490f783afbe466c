"""Epochs as commits of a Delta table: each once, however often it is delivered, under columns that grow."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laminae.catalog.model import SinkRecord
from laminae.errors import InvalidOption, NotAvailable, SinkUnavailable
from laminae.spark.sinks.lakehouse.delta import deliver_delta, take_back_delta
from laminae.spark.sinks.segment import Holds, Segment
from laminae.spark.sources.delta.table import table_path

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN = [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))]
WEIGHTS = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "a table"


def sink(place: Path, mode: str = "append", created: datetime = NOON) -> SinkRecord:
    options = {"connector": "delta", "mode": mode, "path": str(place)}
    return SinkRecord(1, "shipped", "orders", tuple(sorted(options.items())), "live", None, 0, created, 1)


def rows(place: Path, epoch: int, table: pa.Table, holds: Holds = Holds.ROWS, key: str = "id") -> Segment:
    directory = place.parent / f"segment {epoch}"
    directory.mkdir(exist_ok=True)
    pq.write_table(table, directory / "0.parquet")
    return Segment(epoch, str(directory), table.schema, table.num_rows, holds, time=NOON, key=(key,))


def changes(place: Path, epoch: int, *found: tuple[str, float | None, str], key: str = "id") -> Segment:
    schema = pa.schema([*OWN, (key, pa.float64()), ("na`me", pa.string())])
    full = [(op, WEIGHTS[op], NOON, number, name) for op, number, name in found]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*full, strict=True), schema, strict=True)]
    return rows(place, epoch, pa.table(columns, schema=schema), Holds.CHANGES, key)


def held(place: Path) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in DeltaTable(place).to_pyarrow_table().to_pylist()), key=str)


def test_an_epoch_is_appended_once_to_a_table_that_is_made_for_it(place: Path) -> None:
    first, second = rows(place, 3, pa.table({"id": [1, 2]})), rows(place, 5, pa.table({"id": [3], "city": ["Rome"]}))
    for segment in (first, first, second, first, second):
        deliver_delta(segment, sink(place))
    assert held(place) == [(1, None), (2, None), (3, "Rome")]
    assert DeltaTable(place).version() == 1
    deliver_delta(first, sink(place, created=NOON + timedelta(seconds=1)))
    assert len(held(place)) == 5


def test_keys_are_put_and_deleted_in_one_commit(place: Path) -> None:
    upsert = sink(place, "upsert")
    deliver_delta(changes(place, 1, ("+I", 1, "a"), ("+I", 2, "b"), ("+I", None, "n"), ("+I", math.nan, "x")), upsert)
    second = changes(
        place, 2, ("-U", 1, "a"), ("+U", 1, "A"), ("-D", 2, "b"), ("-U", None, "n"), ("+U", None, "N"),
        ("-D", math.nan, "x"), ("+I", 9, "new"), ("-D", 7, "never"),
    )  # fmt: skip
    for _ in range(2):
        deliver_delta(second, upsert)
    assert held(place) == [(1.0, "A"), (9.0, "new"), (None, "N")]
    assert DeltaTable(place).version() == 1
    deliver_delta(changes(place, 3, ("-D", 1, "A")), upsert)
    assert held(place) == [(9.0, "new"), (None, "N")]


def test_columns_come_with_a_merge(place: Path) -> None:
    upsert = sink(place, "upsert")
    deliver_delta(changes(place, 1, ("+I", 1, "a")), upsert)
    wide = pa.table({"id": [1.0, 2.0], "na`me": ["A", "b"], "city": ["Rome", None]})
    deliver_delta(rows(place, 2, wide, Holds.SNAPSHOT), upsert)
    assert held(place) == [(1.0, "A", "Rome"), (2.0, "b", None)]


def test_a_key_that_the_table_does_not_know_is_refused(place: Path) -> None:
    write_deltalake(place, pa.table({"number": [1.0], "na`me": ["a"]}))
    with pytest.raises(SinkUnavailable, match="it has no column id, which is part of the key"):
        deliver_delta(changes(place, 1, ("+I", 1, "a")), sink(place, "upsert"))
    assert DeltaTable(place).version() == 0


def test_what_the_table_cannot_take_is_said_and_changes_nothing(place: Path) -> None:
    write_deltalake(place, pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(SinkUnavailable, match="1099511627776"):
        deliver_delta(rows(place, 1, pa.table({"id": [2**40]})), sink(place))
    assert held(place) == [(1,)]


def test_a_commit_is_not_put_on_top_of_anothers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the same epoch, of a driver that was thought dead."""
    deliver_delta(rows(place, 1, pa.table({"id": [1]})), sink(place))
    segment, stale = rows(place, 2, pa.table({"id": [2]})), DeltaTable(place)
    deliver_delta(segment, sink(place))
    monkeypatch.setattr("laminae.spark.sinks.lakehouse.delta._table", lambda *_: stale)
    with pytest.raises(SinkUnavailable):
        deliver_delta(segment, sink(place))
    monkeypatch.undo()
    deliver_delta(segment, sink(place))
    assert held(place) == [(1,), (2,)]


def test_later_epochs_are_taken_back(place: Path) -> None:
    take_back_delta(sink(place), 0)
    for epoch in (1, 2, 3):
        deliver_delta(rows(place, epoch, pa.table({"id": [epoch]})), sink(place))
    for _ in range(2):
        take_back_delta(sink(place), 1)
    assert held(place) == [(1,)]
    deliver_delta(rows(place, 2, pa.table({"id": [20]})), sink(place))
    assert held(place) == [(1,), (20,)]
    write_deltalake(place, pa.table({"id": [99]}), mode="append")
    with pytest.raises(SinkUnavailable, match="it was written by others since epoch 1"):
        take_back_delta(sink(place), 1)
    assert held(place) == [(1,), (20,), (99,)]


def test_all_of_it_is_taken_back(place: Path) -> None:
    for epoch in (1, 2):
        deliver_delta(rows(place, epoch, pa.table({"id": [epoch]})), sink(place))
    take_back_delta(sink(place), 0)
    assert held(place) == []
    deliver_delta(rows(place, 1, pa.table({"id": [5]})), sink(place))
    assert held(place) == [(5,)]


def test_the_path_must_be_one_of_this_machine(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="it is missing"):
        table_path({}, "k")
    with pytest.raises(NotAvailable, match="needs a directory on a local or mounted file system"):
        table_path({"path": "s3://bucket/t"}, "k")
    with pytest.raises(InvalidOption, match=r"its name contains \["):
        table_path({"path": "/tmp/a[1]"}, "k")
    assert table_path({"path": f"file://{tmp_path}/a%20b"}, "k") == f"{tmp_path}/a b"
