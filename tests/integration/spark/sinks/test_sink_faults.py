"""Sinks that are created, crash, lag and go while their source runs: no row is missed, none comes twice."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.engine import faults
from laminae.errors import DeliveryFailed, InvalidOption
from laminae.net.backoff import Backoff
from tests.support.crashing import crash_at
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SECONDS = 60.0


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (id BIGINT NOT NULL)")
        yield database
    faults.clear()


def create_sink(db: lm.Database, directory: Path, name: str = "k") -> None:
    db.sql(f"CREATE SINK {name} FROM orders WITH (connector = 'files', path = '{directory}')")


def delivered(directory: Path) -> list[int]:
    return sorted(row["id"] for file in directory.glob("*.parquet") for row in pq.read_table(file).to_pylist())


@pytest.mark.parametrize("point", faults.SINK_POINTS)
def test_a_crash_at_any_step_of_a_delivery_changes_nothing(
    db: lm.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    # Only `run` itself delivers, so that the crash is raised here and not in a thread.
    monkeypatch.setattr("laminae.spark.driver.pipeline.WATCH_SECONDS", SECONDS)
    db.insert("orders", [{"id": 1}, {"id": 2}])
    db.run()
    create_sink(db, tmp_path / "out")
    if point == "segment delivered":
        # Its beginning, a snapshot, is behind it.
        db.run()
    db.insert("orders", [{"id": 3}])
    with crash_at(point):
        db.run()
    db.insert("orders", [{"id": 4}])
    db.run()
    assert delivered(tmp_path / "out") == [1, 2, 3, 4]


def test_a_sink_created_during_an_epoch_misses_nothing(db: lm.Database, tmp_path: Path) -> None:
    planned, go_on = hold_at("rows written")
    pipeline = db.start("50 milliseconds")
    try:
        db.insert("orders", [{"id": 1}])
        assert planned.wait(SECONDS)
        # The epoch was planned without a reader and keeps no rows: the sink's snapshot must have them.
        create_sink(db, tmp_path / "out")
        db.insert("orders", [{"id": 2}])
        faults.clear()
        go_on.set()
        pipeline.process_all_available()
        db.insert("orders", [{"id": 3}])
        pipeline.process_all_available()
        until(lambda: delivered(tmp_path / "out") == [1, 2, 3], SECONDS, "the sink has every row once")
    finally:
        go_on.set()
        pipeline.stop()
    assert delivered(tmp_path / "out") == [1, 2, 3]


def test_a_sink_or_source_dropped_during_an_epoch_is_gone_and_the_others_go_on(db: lm.Database, tmp_path: Path) -> None:
    db.sql("CREATE SOURCE short_lived (id BIGINT)")
    db.sql(f"CREATE SINK gone FROM short_lived WITH (connector = 'files', path = '{tmp_path / 'gone'}')")
    create_sink(db, tmp_path / "out")
    pipeline = db.start("50 milliseconds")
    try:
        pipeline.process_all_available()
        planned, go_on = hold_at("files synced")
        db.insert("short_lived", [{"id": 1}])
        assert planned.wait(SECONDS)
        faults.clear()
        db.sql("DROP SINK gone; DROP SOURCE short_lived")
        go_on.set()
        db.insert("orders", [{"id": 1}])
        until(lambda: delivered(tmp_path / "out") == [1], SECONDS, "the other source goes on")
        pipeline.process_all_available()
        assert [status.source for status in pipeline.status()] == ["orders"]
    finally:
        go_on.set()
        pipeline.stop()
    assert delivered(tmp_path / "gone") == []
    assert db.sql("SELECT DISTINCT source_name FROM laminar_catalog.epochs").fetchall() == [("orders",)]


def hold_at(point: str) -> tuple[threading.Event, threading.Event]:
    """(reached, go on): the first epoch that comes there waits until it is let go."""
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert go_on.wait(SECONDS)

    faults.install(point, hold)
    return reached, go_on


def test_an_unwritable_sink_lags_with_its_reason_and_catches_up(
    db: lm.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laminae.spark.sinks.outbox.BACKOFF", Backoff(first=0.0))
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    create_sink(db, in_the_way / "out", "broken")
    create_sink(db, tmp_path / "good", "good")
    for number in (1, 2):
        db.insert("orders", [{"id": number}])
        with pytest.raises(DeliveryFailed, match="to sink broken failed: "):
            db.run()
    assert delivered(tmp_path / "good") == [1, 2]
    (broken,) = [row for row in db.status().to_pylist() if row["name"] == "broken"]
    assert (broken["state"], broken["lag"]) == ("failing", 2)
    assert "Sink broken cannot write to" in broken["detail"]
    in_the_way.unlink()
    db.run()
    assert delivered(in_the_way / "out") == [1, 2]
    assert {row["name"]: row["state"] for row in db.status().to_pylist() if row["kind"] == "sink"} == {
        "broken": "live", "good": "live",
    }  # fmt: skip


def test_two_sinks_do_not_share_a_directory(db: lm.Database, tmp_path: Path) -> None:
    create_sink(db, tmp_path / "out", "first")
    with pytest.raises(InvalidOption, match="sink first writes there"):
        create_sink(db, tmp_path / "other" / ".." / "out", "second")
    db.sql("DROP SINK first")
    create_sink(db, tmp_path / "out", "second")
