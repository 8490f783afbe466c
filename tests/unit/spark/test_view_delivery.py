"""What the modes and formats of a sink make of a view's changelog, and that it is the same when it is done again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.model import SinkRecord
from laminae.errors import InvalidOption
from laminae.spark.sinks import Segment
from laminae.spark.sinks.console import deliver_console
from laminae.spark.sinks.debezium import with_whole_updates
from laminae.spark.sinks.files import deliver_files
from laminae.spark.sinks.segment import Holds

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
ROW = pa.schema([("customer", pa.string()), ("n", pa.int64())])
CHANGES = pa.schema(
    [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC")), *ROW],
)
FIRST = [("-U", -1, "a", 1), ("+U", 1, "a", 2), ("+I", 1, None, 1)]
SECOND = [("-D", -1, "c", 4), ("-U", -1, "d", 1)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def changes(home: Path, *parts: list[tuple], epoch: int = 7) -> Segment:
    names = [f"{len(parts) - place}.parquet" for place in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        rows = [(op, weight, NOON, *rest) for op, weight, *rest in part]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), CHANGES, strict=True)]
        pq.write_table(pa.table(columns, schema=CHANGES), home / name)
    (home / "attempt.parquet").write_bytes(b"of a task that was given up")
    total = sum(map(len, parts))
    return Segment(epoch, str(home), CHANGES, total, Holds.CHANGES, tuple(names), key=("customer",))


def snapshot(home: Path, epoch: int = 3) -> Segment:
    pq.write_table(pa.table({"customer": ["a", None], "n": [1, 4]}, schema=ROW), home / "s.parquet")
    return Segment(epoch, str(home), ROW, 2, Holds.SNAPSHOT, ("s.parquet",), NOON, ("customer",))


def sink(out: Path | None, **options: str) -> SinkRecord:
    given = {"connector": "console" if out is None else "files", "mode": "changelog", "path": str(out), **options}
    return SinkRecord(1, "shipped", "totals", tuple(sorted(given.items())), "live", None, 0, NOON, 1)


def content(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def events(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for text in content(out).values() for line in text.splitlines()]


def test_a_changelog_has_its_own_columns_first_in_every_format(tmp_path, out):
    segment = changes(tmp_path, FIRST, SECOND)
    deliver_files(segment, sink(out / "p"))
    deliver_files(segment, sink(out / "j", format="json"))
    assert sorted(content(out / "p")) == ["epoch-000000000007-0.parquet", "epoch-000000000007-1.parquet"]
    table = pq.read_table(out / "p" / "epoch-000000000007-0.parquet")
    assert table.column_names == ["_epoch", "_op", "_weight", "_timestamp", "customer", "n"]
    assert [tuple(row.values()) for row in table.to_pylist()] == [(7, *row[:2], NOON, *row[2:]) for row in FIRST]
    assert content(out / "j")["epoch-000000000007-1.json"].splitlines()[0] == (
        b'{"_epoch":7,"_op":"-D","_weight":-1,"_timestamp":"2026-03-01T12:00:00.123456+00:00","customer":"c","n":4}'
    )


def test_a_snapshot_is_new_rows_at_the_time_of_the_sink(tmp_path, out):
    deliver_files(snapshot(tmp_path), sink(out))
    (row, _) = pq.read_table(out).to_pylist()
    assert row == {"_epoch": 3, "_op": "+I", "_weight": 1, "_timestamp": NOON, "customer": "a", "n": 1}


def test_an_upsert_sink_gets_one_change_of_each_key_from_all_files(tmp_path, out):
    segment = changes(tmp_path, FIRST, [*SECOND, ("-U", -1, "a", 2), ("+U", 1, "a", 3)])
    deliver_files(segment, sink(out, mode="upsert"))
    found = [(row["_op"], row["customer"], row["n"]) for row in pq.read_table(out).to_pylist()]
    assert found == [("+U", "a", 3), ("+I", None, 1), ("-D", "c", 4), ("-D", "d", 1)]


def test_an_append_sink_gets_the_rows_as_often_as_they_weigh_and_no_retraction(tmp_path, out):
    deliver_files(changes(tmp_path, [("+I", 1, "a", 1), ("+I", 2, "b", 1)]), sink(out, mode="append"))
    assert pq.read_table(out).to_pylist() == [{"customer": c, "n": 1} for c in ("a", "b", "b")]
    with pytest.raises(InvalidOption, match="totals retracted a row in epoch 7"):
        deliver_files(changes(tmp_path, FIRST), sink(out, mode="append"))


def test_debezium_events_pair_updates_and_are_numbered_within_the_epoch(tmp_path, out):
    deliver_files(changes(tmp_path, FIRST, SECOND), sink(out, format="debezium-json"))
    assert list(content(out)) == ["epoch-000000000007-0.json"]
    found = events(out)
    assert [(event["op"], event.get("before"), event.get("after")) for event in found] == [
        ("u", {"customer": "a", "n": 1}, {"customer": "a", "n": 2}),
        ("c", None, {"customer": None, "n": 1}),
        ("d", {"customer": "c", "n": 4}, None),
        ("d", {"customer": "d", "n": 1}, None),
    ]
    own = {"name": "totals", "db": "laminae", "table": "totals", "snapshot": "false", "epoch": 7}
    assert [event["source"] for event in found] == [{**own, "sequence": number} for number in range(4)]
    assert {event["ts_ms"] for event in found} == {NOON_MS}
    assert "before" not in found[1]


def test_debezium_nulls_repeats_and_snapshots(tmp_path, out):
    deliver_files(
        changes(tmp_path, [("+I", 2, "a", 1)]), sink(out, format="debezium-json", **{"debezium.nulls": "explicit"})
    )
    first, second = events(out)
    assert first["before"] is None
    assert {**first, "source": None} == {**second, "source": None}
    deliver_files(snapshot(tmp_path), sink(out / "r", format="debezium-json"))
    assert [(e["op"], e["source"]["snapshot"], e["ts_ms"]) for e in events(out / "r")] == [("r", "true", NOON_MS)] * 2


def test_an_update_is_whole_wherever_a_batch_ends():
    ops = ["-U", "+U", "+I", "-U", "+U", "-U"]
    batch = pa.RecordBatch.from_pydict({"_op": ops})
    for size in range(1, 7):
        cut = [batch.slice(place, size) for place in range(0, 6, size)]
        tables = [table.column("_op").to_pylist() for table in with_whole_updates(cut)]
        assert [op for table in tables for op in table] == ops
        assert all(table[-1] != "-U" for table in tables[:-1] if table)


@pytest.mark.parametrize("mode", ["changelog", "upsert"])
@pytest.mark.parametrize("kind", ["parquet", "json", "debezium-json"])
def test_delivered_again_it_is_the_same_bytes(tmp_path, out, mode, kind):
    segment = changes(tmp_path, FIRST, SECOND)
    deliver_files(segment, sink(out, mode=mode, format=kind))
    first = content(out)
    deliver_files(segment, sink(out, mode=mode, format=kind))
    assert content(out) == first


@pytest.mark.parametrize(
    ("options", "heading", "line"),
    [
        ({}, "shipped: epoch 7, 5 changes", "-U"),
        ({"mode": "upsert"}, "4 changes", "+U"),
        ({"format": "json"}, "5 changes", '{"_epoch":7,"_op":"-U","_weight":-1'),
        ({"format": "debezium-json"}, "4 events", '{"before":{"customer":"a","n":1},"after"'),
    ],
)
def test_a_console_shows_changes(tmp_path, capsys, monkeypatch, options, heading, line):
    monkeypatch.setenv("COLUMNS", "200")
    deliver_console(changes(tmp_path, FIRST, SECOND), sink(None, **options))
    shown = capsys.readouterr().out
    assert heading in shown
    assert line in shown
