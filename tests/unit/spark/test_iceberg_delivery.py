"""Epochs as commits of an Iceberg table: each once, however often it is delivered, under columns that grow."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.model import SinkRecord
from laminae.errors import SinkUnavailable
from laminae.spark.sinks.lakehouse.iceberg import deliver_iceberg, take_back_iceberg
from laminae.spark.sinks.lakehouse.key_filter import key_filter
from laminae.spark.sinks.segment import Holds, Segment
from tests.support.iceberg import put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.iceberg import Lake

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN = [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))]
WEIGHTS = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}


def sink(lake: Lake, mode: str = "append", name: str = "shipped", created: datetime = NOON) -> SinkRecord:
    options = {**lake.settings("totals"), "connector": "iceberg", "mode": mode}
    return SinkRecord(1, name, "orders", tuple(sorted(options.items())), "live", None, 0, created, 1)


def rows(place: Path, epoch: int, table: pa.Table, holds: Holds = Holds.ROWS) -> Segment:
    directory = place / f"segment {epoch}"
    directory.mkdir(exist_ok=True)
    pq.write_table(table, directory / "0.parquet")
    return Segment(epoch, str(directory), table.schema, table.num_rows, holds, time=NOON, key=("id",))


def changes(place: Path, epoch: int, *found: tuple[str, int | None, str]) -> Segment:
    schema = pa.schema([*OWN, ("id", pa.int64()), ("name", pa.string())])
    full = [(op, WEIGHTS[op], NOON, number, name) for op, number, name in found]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*full, strict=True), schema, strict=True)]
    return rows(place, epoch, pa.table(columns, schema=schema), Holds.CHANGES)


def held(lake: Lake, *columns: str) -> list[dict[str, object]]:
    found = lake.load("totals").scan(selected_fields=columns or ("*",)).to_arrow()
    return sorted(found.to_pylist(), key=str)


def test_an_epoch_is_appended_once_to_a_table_that_is_made_for_it(lake: Lake, tmp_path: Path) -> None:
    first = rows(tmp_path, 3, pa.table({"id": [1, 2], "void": pa.nulls(2)}))
    for _ in range(2):
        deliver_iceberg(first, sink(lake))
    second = rows(tmp_path, 5, pa.table({"id": [3], "void": ["x"]}))
    for segment in (second, first, second):
        deliver_iceberg(segment, sink(lake))
    table = lake.load("totals")
    assert held(lake) == [{"id": 1, "void": None}, {"id": 2, "void": None}, {"id": 3, "void": "x"}]
    assert [snapshot.summary["laminae.epoch"] for snapshot in table.snapshots()] == ["3", "5"]


def test_another_sink_of_the_same_name_counts_anew(lake: Lake, tmp_path: Path) -> None:
    segment = rows(tmp_path, 3, pa.table({"id": [1]}))
    deliver_iceberg(segment, sink(lake))
    deliver_iceberg(segment, sink(lake, created=NOON + timedelta(seconds=1)))
    assert held(lake) == [{"id": 1}] * 2


def test_keys_are_put_and_deleted_in_one_commit(lake: Lake, tmp_path: Path) -> None:
    put(lake.table("totals", {"id": pa.int64(), "name": pa.string()}), id=[1, 9], name=["former", "other"])
    upsert = sink(lake, "upsert")
    deliver_iceberg(changes(tmp_path, 1, ("+I", 1, "a"), ("+I", 2, "b"), ("+I", None, "n")), upsert)
    before = lake.load("totals").metadata.last_sequence_number
    second = changes(tmp_path, 2, ("-U", 1, "a"), ("+U", 1, "A"), ("-D", 2, "b"), ("-U", None, "n"), ("+U", None, "N"))
    for _ in range(2):
        deliver_iceberg(second, upsert)
    assert held(lake) == [{"id": 1, "name": "A"}, {"id": 9, "name": "other"}, {"id": None, "name": "N"}]
    table = lake.load("totals")
    assert {s.summary["laminae.epoch"] for s in table.snapshots() if s.sequence_number > before} == {"2"}
    deliver_iceberg(changes(tmp_path, 3, ("-D", 1, "A")), upsert)
    deliver_iceberg(changes(tmp_path, 4, ("-D", 1, "A"), ("+I", 1, "A")), upsert)
    assert held(lake, "id") == [{"id": 9}, {"id": None}]


def test_changes_are_rows_of_their_own(lake: Lake, tmp_path: Path) -> None:
    deliver_iceberg(changes(tmp_path, 1, ("+I", 1, "a"), ("-D", 1, "a")), sink(lake, "changelog"))
    found = held(lake, "_epoch", "_op", "_weight", "id")
    assert found == [
        {"_epoch": 1, "_op": "+I", "_weight": 1, "id": 1},
        {"_epoch": 1, "_op": "-D", "_weight": -1, "id": 1},
    ]


def test_columns_are_added_widened_and_by_their_ids_renamed(lake: Lake, tmp_path: Path) -> None:
    def segment(epoch: int, **columns: tuple[int, pa.Array]) -> Segment:
        fields = [pa.field(name, a.type, metadata={"laminae:id": str(i)}) for name, (i, a) in columns.items()]
        return rows(tmp_path, epoch, pa.table([a for _, a in columns.values()], schema=pa.schema(fields)))

    deliver_iceberg(segment(1, id=(1, pa.array([1])), n=(2, pa.array([10], pa.int32()))), sink(lake))
    wide = segment(2, id=(1, pa.array([2])), m=(2, pa.array([2**40])), city=(3, pa.array(["Rome"])))
    deliver_iceberg(wide, sink(lake))
    assert held(lake) == [{"id": 1, "m": 10, "city": None}, {"id": 2, "m": 2**40, "city": "Rome"}]
    deliver_iceberg(segment(3, id=(1, pa.array([3])), n=(4, pa.array([5], pa.int64()))), sink(lake))
    assert held(lake, "id", "n")[2] == {"id": 3, "n": 5}


def test_a_key_that_the_table_does_not_know_is_refused(lake: Lake, tmp_path: Path) -> None:
    put(lake.table("totals", {"number": pa.int64(), "name": pa.string()}), number=[1], name=["a"])
    with pytest.raises(SinkUnavailable, match="it has no column id, which is part of the key"):
        deliver_iceberg(changes(tmp_path, 1, ("+I", 1, "a")), sink(lake, "upsert"))
    assert lake.load("totals").schema().column_names == ["number", "name"]


def test_what_the_table_cannot_take_is_said_and_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    put(lake.table("totals", {"id": pa.string()}), id=["a"])
    with pytest.raises(SinkUnavailable, match=r"table shop\.totals of catalog lake"):
        deliver_iceberg(rows(tmp_path, 1, pa.table({"id": [1]})), sink(lake))
    assert held(lake) == [{"id": "a"}]


def test_a_commit_is_not_put_on_top_of_anothers(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the same epoch, of a driver that was thought dead."""
    deliver_iceberg(rows(tmp_path, 1, pa.table({"id": [1]})), sink(lake))
    segment = rows(tmp_path, 2, pa.table({"id": [2]}))

    def meanwhile(*_: object) -> None:
        monkeypatch.undo()
        deliver_iceberg(segment, sink(lake))
        monkeypatch.setattr("laminae.spark.sinks.lakehouse.iceberg._evolve", lambda *_: None)

    monkeypatch.setattr("laminae.spark.sinks.lakehouse.iceberg._evolve", meanwhile)
    with pytest.raises(SinkUnavailable):
        deliver_iceberg(segment, sink(lake))
    monkeypatch.undo()
    deliver_iceberg(segment, sink(lake))
    assert held(lake) == [{"id": 1}, {"id": 2}]


def test_later_epochs_are_taken_back(lake: Lake, tmp_path: Path) -> None:
    take_back_iceberg(sink(lake), 0)
    for epoch in (1, 2, 3):
        deliver_iceberg(rows(tmp_path, epoch, pa.table({"id": [epoch]})), sink(lake))
    take_back_iceberg(sink(lake), 1)
    take_back_iceberg(sink(lake), 1)
    assert held(lake) == [{"id": 1}]
    deliver_iceberg(rows(tmp_path, 2, pa.table({"id": [20]})), sink(lake))
    assert held(lake) == [{"id": 1}, {"id": 20}]
    put(lake.load("totals"), id=[99])
    with pytest.raises(SinkUnavailable, match="it was written by others since epoch 1"):
        take_back_iceberg(sink(lake), 1)
    take_back_iceberg(sink(lake), 2)


def test_all_of_it_is_taken_back(lake: Lake, tmp_path: Path) -> None:
    for epoch in (1, 2):
        deliver_iceberg(rows(tmp_path, epoch, pa.table({"id": [epoch]})), sink(lake))
    take_back_iceberg(sink(lake), 0)
    assert held(lake) == []
    deliver_iceberg(rows(tmp_path, 1, pa.table({"id": [5]})), sink(lake))
    assert held(lake) == [{"id": 5}]


def test_keys_of_every_type_are_found_and_no_others(lake: Lake) -> None:
    values: dict[str, list[object]] = {
        "n": [1, 2, None],
        "f": [1.5, math.nan, None],
        "d": [date(2024, 1, 1), date(2024, 1, 2), None],
        "t": [NOON, NOON + timedelta(microseconds=1), None],
        "x": [Decimal("1.50"), Decimal("2.50"), None],
        "b": [b"a", b"b", None],
        "s": ["it's", 'say "x"', None],
        "w": [True, False, None],
    }
    kinds = {"n": pa.int64(), "f": pa.float64(), "d": pa.date32(), "t": pa.timestamp("us", "UTC")}
    kinds |= {"x": pa.decimal128(9, 2), "b": pa.binary(), "s": pa.string(), "w": pa.bool_()}
    table = put(lake.table("totals", kinds), **values)
    for name, kind in kinds.items():
        for chosen in ([0], [1], [2], [0, 2], [0, 1, 2]):
            keys = pa.table({name: pa.array([values[name][i] for i in chosen], kind)})
            found = table.scan(row_filter=key_filter(keys)).to_arrow().num_rows
            assert (name, chosen, found) == (name, chosen, len(chosen))
    pairs = pa.table({"n": pa.array([1, 1, 2, None]), "s": pa.array(["it's", "no", None, None], pa.string())})
    assert table.scan(row_filter=key_filter(pairs)).to_arrow().column("n").to_pylist() == [1, None]
