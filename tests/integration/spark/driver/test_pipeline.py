"""Streams that evolve while they run, on a real Spark session: every row arrives once, whatever happens between."""

import shutil
import threading

import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.engine import faults
from laminae.errors import (
    CheckpointDiverged,
    DeadLetterLimit,
    IncompatibleChange,
    LeaseHeld,
    PipelineFailed,
    RecordRefused,
)
from tests.support.crashing import EpochCrashError, crash_at


@pytest.fixture
def db(spark, tmp_path):
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        database.sql("CREATE SOURCE orders (id BIGINT NOT NULL, amount INT, note STRING DEFAULT 'none')")
        yield database


def rows(db, columns="*", source="orders"):
    return db.sql(f"SELECT {columns} FROM {source} ORDER BY id").fetchall()  # noqa: S608  # fixed by each test


def delivered(directory):
    found = [row for file in sorted(directory.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def test_pushed_rows_are_a_table(db):
    assert db.insert("orders", [{"id": 1, "amount": 5}, {"id": 2, "amount": None, "note": None}]) == 2
    db.run()
    assert rows(db) == [(1, 5, "none"), (2, None, None)]


def test_what_is_not_committed_yet_is_not_seen(db):
    db.insert("orders", [{"id": 1}])
    assert rows(db) == []


def test_a_second_run_goes_on_where_the_first_ended(db):
    for number in range(3):
        db.insert("orders", [{"id": number}])
        db.run()
    assert [row[0] for row in rows(db)] == [0, 1, 2]
    epochs = db.sql("SELECT batch_id, rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall()
    assert epochs == [(0, 1), (1, 1), (2, 1)]


def test_alter_source_changes_take_effect_on_a_running_stream_without_a_restart(db):
    pipeline = db.start("100 milliseconds")
    try:
        db.insert("orders", [{"id": 1, "amount": 1, "note": "old"}])
        pipeline.process_all_available()
        (before,) = pipeline.status()
        db.sql("ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR'")
        db.insert("orders", [{"id": 2, "amount": 2, "currency": "USD"}])
        db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
        db.insert("orders", [{"id": 3, "amount": 2**40}])
        db.sql("ALTER SOURCE orders RENAME COLUMN amount TO cents")
        db.insert("orders", [{"id": 4, "cents": 4}, {"id": 5, "amount": 5}])
        db.sql("ALTER SOURCE orders DROP COLUMN note")
        db.insert("orders", [{"id": 6, "cents": 6, "note": "dropped"}])
        with pytest.raises(IncompatibleChange):
            db.sql("ALTER SOURCE orders ALTER COLUMN cents TYPE INT")
        db.insert("orders", [{"id": 7, "cents": 7}])
        pipeline.process_all_available()
        (after,) = pipeline.status()
    finally:
        pipeline.stop()
    assert rows(db, "id, cents, currency") == [
        (1, 1, "EUR"), (2, 2, "USD"), (3, 2**40, "EUR"), (4, 4, "EUR"), (5, 5, "EUR"), (6, 6, "EUR"), (7, 7, "EUR"),
    ]  # fmt: skip
    assert (after.run_id, after.rows, after.dead_letters) == (before.run_id, 7, 0)


def test_a_column_dropped_and_added_again_does_not_bring_old_values_back(db):
    db.insert("orders", [{"id": 1, "note": "old"}])
    db.sql("ALTER SOURCE orders DROP COLUMN note; ALTER SOURCE orders ADD COLUMN note STRING")
    db.insert("orders", [{"id": 2, "note": "new"}])
    db.run()
    assert rows(db, "id, note") == [(1, None), (2, "new")]


def test_bad_records_are_dead_letters_and_come_back_after_a_fix_exactly_once(db):
    db.insert("orders", [{"id": 1, "amount": 2**40}, {"amount": 3}, {"id": 2, "amount": 2}])
    db.run()
    assert [row[0] for row in rows(db)] == [2]
    dead = db.sql("SELECT CAST(value AS STRING), reason FROM laminar_catalog.dead_letters ORDER BY 1").fetchall()
    assert [value for value, _ in dead] == ['{"amount":3}', '{"id":1,"amount":1099511627776}']
    db.sql("ALTER SOURCE orders ALTER COLUMN amount TYPE BIGINT")
    replayed = db.replay_dead_letters("orders")
    assert (replayed.rows, replayed.refused) == (1, 1)
    assert rows(db, "id, amount") == [(1, 2**40), (2, 2)]
    assert db.replay_dead_letters("orders").rows == 0
    assert rows(db, "id, amount") == [(1, 2**40), (2, 2)]


def test_on_error_fail_stops_the_source_at_the_record(db):
    db.sql("ALTER SOURCE orders SET (on_error = 'fail')")
    db.insert("orders", [{"amount": 3}])
    with pytest.raises(RecordRefused, match="orders stopped"):
        db.run()
    assert db.sql("SELECT * FROM laminar_catalog.epochs").fetchall() == []


def test_too_many_dead_letters_stop_the_source(db):
    db.sql("ALTER SOURCE orders SET (dead_letter_limit = 2)")
    db.insert("orders", [{"amount": number} for number in range(3)])
    with pytest.raises(DeadLetterLimit, match="its limit is 2"):
        db.run()


def test_a_sink_begins_with_the_present_rows_and_follows_the_schema(db, tmp_path):
    target = tmp_path / "out"
    db.insert("orders", [{"id": 1, "amount": 1}])
    db.run()
    db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'parquet', path = '{target}')")
    db.insert("orders", [{"id": 2, "amount": 2}])
    db.run()
    db.sql("ALTER SOURCE orders ADD COLUMN currency STRING DEFAULT 'EUR'")
    db.insert("orders", [{"id": 3, "amount": 3, "currency": "USD"}])
    db.run()
    assert delivered(target) == [
        {"id": 1, "amount": 1, "note": "none"},
        {"id": 2, "amount": 2, "note": "none"},
        {"id": 3, "amount": 3, "note": "none", "currency": "USD"},
    ]


@pytest.mark.parametrize("point", faults.EPOCH_POINTS)
def test_a_crash_at_any_step_changes_nothing(db, tmp_path, point):
    target = tmp_path / "out"
    db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'parquet', path = '{target}')")
    db.sql("ALTER SOURCE orders SET (evolve = 'auto')")
    db.run()
    db.insert("orders", [{"id": 1, "amount": 1, "city": "Ghent"}, {"amount": 9}])
    with crash_at(point, EpochCrashError):
        db.run()
    db.insert("orders", [{"id": 2, "amount": 2}])
    db.run()
    assert [(row["id"], row["city"]) for row in delivered(target)] == [(1, "Ghent"), (2, None)]
    assert rows(db, "id, city") == [(1, "Ghent"), (2, None)]
    assert db.sql("SELECT count(*) FROM laminar_catalog.dead_letters").fetchall() == [(1,)]


def test_a_lost_checkpoint_is_noticed_and_repaired_without_losing_or_doubling_a_row(db, tmp_path):
    db.insert("orders", [{"id": 1}])
    db.run()
    (checkpoint,) = (tmp_path / "home" / "sources").glob("*/checkpoint")
    shutil.rmtree(checkpoint)
    db.insert("orders", [{"id": 2}])
    with pytest.raises(CheckpointDiverged):
        db.run()
    assert db.repair("orders") == 0
    db.run()
    assert [row[0] for row in rows(db)] == [1, 2]


def test_a_second_driver_is_refused_by_name(db, spark, tmp_path):
    pipeline = db.start("100 milliseconds")
    try:
        with (
            lm.connect(str(tmp_path / "home"), spark=spark) as other,
            pytest.raises(LeaseHeld, match="is being run by"),
        ):
            other.start()
    finally:
        pipeline.stop()


def test_sources_come_and_go_while_the_pipeline_runs(db):
    pipeline = db.start("100 milliseconds")
    try:
        db.sql("CREATE SOURCE more (id INT)")
        db.insert("more", [{"id": 1}])
        pipeline.process_all_available()
        assert rows(db, source="more") == [(1,)]
        db.sql("DROP SOURCE more")
        pipeline.process_all_available()
        assert [status.source for status in pipeline.status()] == ["orders"]
    finally:
        pipeline.stop()


def test_new_fields_evolve_the_schema_and_the_first_record_keeps_its_value(db):
    db.sql("ALTER SOURCE orders SET (evolve = 'auto')")
    db.insert("orders", [{"id": 1}, {"id": 2, "city": "Ghent", "place": {"zip": 9000}}])
    db.run()
    assert rows(db, "id, city, place.zip") == [(1, None, None), (2, "Ghent", 9000)]
    assert [(row.column_name, row.trigger) for row in db.history("orders")][-2:] == [
        ("city", "Data"),
        ("place", "Data"),
    ]


def test_a_source_without_columns_takes_those_of_its_first_records(db):
    db.sql("CREATE SOURCE notes WITH (evolve = 'auto')")
    db.insert("notes", [{"id": 1}, {"id": 2, "city": "Ghent"}])
    db.run()
    assert sorted(db.sql("SELECT id, city FROM notes").fetchall()) == [(1, None), (2, "Ghent")]


def test_relations_join_sources_and_the_catalog(db):
    db.insert("orders", [{"id": 1}])
    db.run()
    answer = db.sql(
        "SELECT s.name, e.rows, o.id FROM laminar_catalog.sources s "
        "JOIN laminar_catalog.epochs e ON e.source_name = s.name JOIN orders o ON o.id = 1"
    )
    assert answer.fetchall() == [("orders", 1, 1)]
    assert answer.spark().columns == ["name", "rows", "id"]


def test_what_is_not_ours_and_stops_a_source_is_told_with_its_name(db, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a surprise")

    monkeypatch.setattr("laminae.spark.formats.fast_path.decode", broken)
    db.insert("orders", [{"id": 1}])
    with pytest.raises(PipelineFailed, match="The stream of orders has stopped"):
        db.run()
    monkeypatch.undo()
    db.run()
    assert [row[0] for row in rows(db)] == [1]


def test_what_was_refused_stays_refused_when_the_schema_becomes_laxer(db):
    db.insert("orders", [{"id": 1}, {"amount": 7}])
    db.run()
    db.sql("ALTER SOURCE orders ALTER COLUMN id DROP NOT NULL")
    assert rows(db) == [(1, None, "none")]
    db.insert("orders", [{"amount": 8}])
    db.run()
    assert rows(db, "amount") == [(8,), (None,)]
    assert db.replay_dead_letters("orders").rows == 1
    assert sorted(rows(db, "amount"), key=str) == [(7,), (8,), (None,)]


def test_a_row_stays_a_row_when_the_schema_becomes_stricter(db):
    db.insert("orders", [{"id": 1, "amount": None}])
    db.run()
    db.sql("ALTER SOURCE orders ALTER COLUMN amount SET NOT NULL")
    db.insert("orders", [{"id": 2, "amount": 2}, {"id": 3, "amount": None}])
    db.run()
    assert rows(db, "id, amount") == [(1, None), (2, 2)]


def test_a_stop_lets_the_epoch_under_way_end(db):
    db.insert("orders", [{"id": 1}])
    reached, go_on = threading.Event(), threading.Event()

    def wait():
        reached.set()
        go_on.wait(60)

    faults.install("rows written", wait)
    stopping = threading.Thread(target=db.start("50 milliseconds").stop)
    try:
        assert reached.wait(60)
        stopping.start()
        stopping.join(0.5)
        assert stopping.is_alive()
    finally:
        go_on.set()
        stopping.join(60)
        faults.clear()
    assert [row[0] for row in rows(db)] == [1]


def test_a_home_that_is_run_is_refused_before_spark_starts(db, tmp_path):
    pipeline = db.start("1 second")
    try:
        with lm.connect(str(tmp_path / "home")) as second, pytest.raises(LeaseHeld, match=r"run by process \d+ on"):
            second.start()
        assert second._runtime._in_force is None
    finally:
        pipeline.stop()
