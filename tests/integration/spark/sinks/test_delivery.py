"""Committed segments in the hands of sinks: once, whole, and the same when it is done again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.model import SinkRecord
from laminae.errors import InvalidOption, NotAvailable, SinkUnavailable
from laminae.spark.sinks import Delivery, Segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(20, 2)),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("x", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
ROWS = [
    {
        "id": 1,
        "at": NOON,
        "price": Decimal("123456789012345678.10"),
        "raw": b"\xff",
        "day": date(2026, 3, 1),
        "x": 0.5,
        "tags": ["a"],
    },
    {"id": 2, "at": None, "price": None, "raw": None, "day": None, "x": float("nan"), "tags": None},
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Two parts, as two tasks leave them."""
    return segment_of(tmp_path / "segment", [ROWS[:1], ROWS[1:]])


def segment_of(path: Path, parts: list[list[dict[str, object]]], epoch: int = 7) -> Segment:
    path.mkdir()
    (path / "_SUCCESS").touch()
    for number, rows in enumerate(parts):
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path / f"part-{number:05}.parquet")
    return Segment(epoch, str(path), SCHEMA, sum(map(len, parts)))


def sink(**options: str) -> SinkRecord:
    return SinkRecord(1, "shipped", "orders", tuple(sorted(options.items())), "live", None, 0, NOON, 1)


def files_sink(out: Path, **options: str) -> SinkRecord:
    return sink(connector="files", path=str(out), **options)


def content(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def visible(out: Path) -> list[str]:
    return sorted(name for name in os.listdir(out) if not name.startswith(".")) if out.exists() else []


PARQUET = ["epoch-000000000007-0.parquet", "epoch-000000000007-1.parquet"]
JSON = ["epoch-000000000007-0.json", "epoch-000000000007-1.json"]


def test_parquet_sink_takes_the_parts_of_the_segment(spark: SparkSession, segment: Segment, out: Path) -> None:
    Delivery().deliver(spark, segment, files_sink(out))
    assert content(out) == dict(zip(PARQUET, [Path(file).read_bytes() for file in segment.files()], strict=True))
    assert spark.read.parquet(str(out)).count() == 2


def test_parts_are_copied_where_they_cannot_be_linked(
    spark: SparkSession, segment: Segment, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    Delivery().deliver(spark, segment, files_sink(out))
    assert sorted(content(out)) == PARQUET
    assert {os.stat(out / name).st_nlink for name in PARQUET} == {1}


def test_an_epoch_delivered_again_with_fewer_parts_leaves_none_of_the_old_ones(
    spark: SparkSession, segment: Segment, out: Path, tmp_path: Path
) -> None:
    """A snapshot is the one segment that a crash can make anew, and Spark may cut it otherwise."""
    Delivery().deliver(spark, segment, files_sink(out))
    Delivery().deliver(spark, segment_of(tmp_path / "again", [ROWS]), files_sink(out))
    assert visible(out) == PARQUET[:1]
    assert spark.read.parquet(str(out)).count() == 2


def test_json_sink_writes_lines_that_lose_nothing(spark: SparkSession, segment: Segment, out: Path) -> None:
    Delivery().deliver(spark, segment, files_sink(out, format="json"))
    first, second = content(out).values()
    assert sorted(content(out)) == JSON
    assert first == (
        b'{"id":1,"at":"2026-03-01T12:00:00.123456+00:00","price":123456789012345678.10,'
        b'"raw":"/w==","day":"2026-03-01","x":0.5,"tags":["a"]}\n'
    )
    assert json.loads(second) == {**dict.fromkeys(SCHEMA.names), "id": 2, "x": "NaN"}


def test_json_of_a_segment_that_spark_wrote_has_times_in_utc(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    path, schema = (
        tmp_path / "segment",
        pa.schema([("at", pa.timestamp("us", "UTC")), ("m", pa.map_("string", "int64"))]),
    )
    frame = spark.sql("SELECT timestamp'2026-03-01 12:00:00Z' AS at, map('a', 1L) AS m").coalesce(1)
    frame.write.parquet(str(path))
    Delivery().deliver(spark, Segment(7, str(path), schema, 1), files_sink(out, format="json"))
    assert content(out) == {JSON[0]: b'{"at":"2026-03-01T12:00:00+00:00","m":{"a":1}}\n'}


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_delivery_again_gives_the_same_content(spark: SparkSession, segment: Segment, out: Path, kind: str) -> None:
    Delivery().deliver(spark, segment, files_sink(out, format=kind))
    first = content(out)
    Delivery().deliver(spark, segment, files_sink(out, format=kind))
    assert content(out) == first


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_delivery_that_died_before_the_rename_shows_nothing_and_is_made_good(
    spark: SparkSession, segment: Segment, out: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with suppress(KeyboardInterrupt):
            Delivery().deliver(spark, segment, files_sink(out, format=kind))
    assert visible(out) == []
    assert os.listdir(out) != []
    Delivery().deliver(spark, segment, files_sink(out, format=kind))
    assert sorted(os.listdir(out)) == (PARQUET if kind == "parquet" else JSON)


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_reader_never_sees_an_unfinished_part(
    spark: SparkSession, segment: Segment, out: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    rename = os.replace

    def look(start: str, end: str) -> None:
        seen.append(visible(out))
        assert all(
            (out / f".{name}.tmp").exists() for name in (PARQUET if kind == "parquet" else JSON)[len(seen) - 1 :]
        )
        rename(start, end)

    monkeypatch.setattr(os, "replace", look)
    Delivery().deliver(spark, segment, files_sink(out, format=kind))
    assert seen[0] == []


def test_epoch_without_rows_or_files_leaves_no_file(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    Delivery().deliver(spark, segment_of(tmp_path / "segment", []), files_sink(out))
    assert content(out) == {}


def test_epochs_lie_side_by_side(spark: SparkSession, segment: Segment, out: Path) -> None:
    Delivery().deliver(spark, segment, files_sink(out))
    Delivery().deliver(spark, replace(segment, epoch=12), files_sink(out))
    assert len(content(out)) == 4
    assert spark.read.parquet(str(out)).count() == 4


def test_target_that_cannot_be_written_is_named_with_its_sink(spark: SparkSession, segment: Segment, out: Path) -> None:
    out.write_text("a file is in the way")
    with pytest.raises(SinkUnavailable) as found:
        Delivery().deliver(spark, segment, files_sink(out))
    assert (found.value.params["sink"], found.value.params["location"]) == ("shipped", str(out))


def test_full_disk_is_named_with_its_sink(
    spark: SparkSession, segment: Segment, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SinkUnavailable, match="No space left"):
        Delivery().deliver(spark, segment, files_sink(out, format="json"))
    assert visible(out) == []


def test_files_sink_needs_a_path_of_this_machine(spark: SparkSession, segment: Segment) -> None:
    with pytest.raises(InvalidOption, match="path"):
        Delivery().deliver(spark, segment, sink(connector="files"))
    with pytest.raises(NotAvailable, match="shipped"):
        Delivery().deliver(spark, segment, sink(connector="files", path="s3://bucket/out"))


def test_connector_or_format_that_is_not_built_is_named(spark: SparkSession, segment: Segment, out: Path) -> None:
    for wanted in (sink(), files_sink(out, format="avro")):
        with pytest.raises(NotAvailable, match="shipped"):
            Delivery().deliver(spark, segment, wanted)


def test_console_shows_count_and_rows(
    spark: SparkSession, segment: Segment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    Delivery().deliver(spark, segment, sink(connector="console"))
    shown = capsys.readouterr().out
    assert "shipped: epoch 7, 2 rows" in shown
    assert "123456789012345678.10" in shown
    assert "NULL" in shown


def test_console_shows_at_most_twenty_rows(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = segment_of(tmp_path / "segment", [[{"id": number, "tags": ["[red]"]} for number in range(100, 150)]])
    Delivery().deliver(spark, segment, sink(connector="console"))
    shown = capsys.readouterr().out
    assert "50 rows, the first 20" in shown
    assert sum(str(number) in shown for number in range(100, 150)) == 20
