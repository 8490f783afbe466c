"""Savepoints, collections and metrics of a home on a real Spark session."""

import os
import time

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.errors import LeaseHeld, SourceTruncated, UnknownObject
from laminae.spark.epoch.metrics import EpochCommitted, SparkProgress
from tests.support.waiting import until


@pytest.fixture
def db(spark, tmp_path):
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE s (id BIGINT NOT NULL)")
        database.sql(f"CREATE SINK k FROM s WITH (connector = 'files', path = '{tmp_path / 'out'}')")
        yield database


def delivered(directory):
    return sorted(row["id"] for file in directory.glob("*.parquet") for row in pq.read_table(file).to_pylist())


def ids(db):
    return [row[0] for row in db.sql("SELECT id FROM s ORDER BY id").fetchall()]


def push(db, *numbers):
    db.insert("s", [{"id": number} for number in numbers])
    db.run()


def test_going_back_to_a_savepoint_processes_again_what_came_after_it_and_nothing_twice(db, tmp_path):
    push(db, 1, 2)
    assert db.savepoint("before") == 1
    push(db, 3)
    db.insert("s", [{"id": 4}])
    assert db.restore("before") == 1
    assert ids(db) == [1, 2]
    db.run()
    assert ids(db) == [1, 2, 3, 4]
    assert delivered(tmp_path / "out") == [1, 2, 3, 4]
    epochs = db.sql("SELECT epoch, batch_id FROM laminar_catalog.epochs ORDER BY epoch").fetchall()
    assert epochs == [(1, 0), (3, 1)]


def test_a_sink_made_after_the_savepoint_begins_anew(db, tmp_path):
    push(db, 1)
    db.savepoint("before")
    db.sql(f"CREATE SINK late FROM s WITH (connector = 'files', path = '{tmp_path / 'late'}')")
    push(db, 2)
    assert delivered(tmp_path / "late") == [1, 2]
    db.restore("before")
    db.run()
    assert delivered(tmp_path / "late") == [1, 2]


def test_a_running_home_cannot_go_back(db):
    db.savepoint("start")
    pipeline = db.start("1 second")
    try:
        with pytest.raises(LeaseHeld):
            db.restore("start")
    finally:
        pipeline.stop()


def test_a_collection_takes_what_was_delivered_and_what_a_crash_left_and_the_table_stays_whole(db, tmp_path):
    push(db, 1)
    orphan = tmp_path / "home" / "sources" / "1" / "segments" / "orphan"
    orphan.mkdir()
    long_ago = time.time() - 86_400
    os.utime(orphan, (long_ago, long_ago))
    assert [removal.kind for removal in db.gc(dry_run=True)] == ["orphan"]
    db.sql("SET changelog_retention = '0 seconds'")
    assert sorted(removal.kind for removal in db.gc()) == ["delivered", "orphan"]
    assert not orphan.exists()
    assert db.gc() == ()
    push(db, 2)
    assert ids(db) == [1, 2]
    assert delivered(tmp_path / "out") == [1, 2]


def test_rows_that_the_spool_no_longer_keeps_are_missed_by_name(db):
    push(db, 1)
    push(db, 2)
    db.sql("ALTER SOURCE s SET (spool_retention = '0 seconds')")
    assert [removal.kind for removal in db.gc()] == ["spool", "spool"]
    with pytest.raises(SourceTruncated, match="first available is item 2"):
        ids(db)
    db.insert("s", [{"id": 3}])
    db.run()
    assert db.sql("SELECT rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall() == [(1,), (1,), (1,)]


def test_the_files_of_a_dropped_source_go(db, tmp_path):
    push(db, 1)
    db.sql("DROP SINK k")
    db.sql("DROP SOURCE s")
    place = tmp_path / "home" / "sources" / "1"
    assert db.gc() == ()
    long_ago = time.time() - 86_400
    for path in [place, *place.rglob("*")]:
        os.utime(path, (long_ago, long_ago))
    assert [removal.kind for removal in db.gc()] == ["dropped"]
    assert not place.exists()


def test_epochs_and_sparks_own_progress_come_through_one_callback(db):
    found = []
    # Before it starts: the first epoch of a stream has what is there then, and that may be nothing.
    db.insert("s", [{"id": 1}, {"id": 2}, {"no": 0}])
    pipeline = db.start("100 milliseconds", on_metric=found.append)
    try:
        pipeline.process_all_available()
        until(lambda: any(isinstance(each, SparkProgress) for each in found), 30.0, "Spark reports its progress")
    finally:
        pipeline.stop()
    (epoch,) = [each for each in found if isinstance(each, EpochCommitted)]
    assert (epoch.source, epoch.epoch, epoch.batch_id, epoch.version) == ("s", 1, 0, 1)
    assert (epoch.rows, epoch.dead_letters) == (2, 1)
    assert epoch.seconds > 0
    progress = next(each for each in found if isinstance(each, SparkProgress))
    assert progress.source == "s"
    assert "triggerExecution" in progress.progress["durationMs"]


def test_a_callback_that_fails_is_logged_and_stops_nothing(db, caplog):
    def broken(_):
        raise RuntimeError("no metrics today")

    pipeline = db.start("100 milliseconds", on_metric=broken)
    try:
        db.insert("s", [{"id": 1}])
        pipeline.process_all_available()
    finally:
        pipeline.stop()
    assert ids(db) == [1]
    assert "the metrics callback failed" in caplog.text


def test_a_home_can_be_opened_at_a_savepoint(db, spark, tmp_path):
    push(db, 1, 2)
    db.savepoint("before")
    push(db, 3)
    db.close()
    with lm.connect(str(tmp_path / "home"), spark=spark, from_savepoint="before") as again:
        assert ids(again) == [1, 2]
        again.run()
        assert ids(again) == [1, 2, 3]


def test_a_home_cannot_be_opened_at_a_savepoint_that_is_not_there(db, spark, tmp_path):
    with pytest.raises(UnknownObject, match="nowhere"):
        lm.connect(str(tmp_path / "home"), spark=spark, from_savepoint="nowhere")
