"""JSON from a real broker: every record once, whatever happens to driver, partitions, broker and retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.errors import SourceTruncated
from tests.services.fixtures import said_if_missing
from tests.services.kafka import running_kafka
from tests.services.processes import free_port
from tests.support.topics import Topic, new_topic
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("connector_jars")]

WAIT_SECONDS = 120.0


@pytest.fixture
def topic(kafka_address: str) -> Topic:
    return new_topic(kafka_address, partitions=2)


def create(db: lm.Database, topic: Topic, name: str = "orders", **options: str) -> None:
    given = {"connector": "kafka", "format": "json", "topic": topic.name, "kafka.bootstrap.servers": topic.address}
    told = ", ".join(f"{option} = '{value}'" for option, value in {**given, **options}.items())
    db.sql(f"CREATE SOURCE {name} (id BIGINT NOT NULL, amount INT) WITH ({told})")


def rows(first: int, last: int) -> list[dict[str, object]]:
    return [{"id": number, "amount": number * 10} for number in range(first, last)]


def ids(db: lm.Database, source: str = "orders") -> list[int]:
    found = db.sql(f"SELECT id FROM {source} ORDER BY id").fetchall()  # noqa: S608  # a name of this file
    return [number for (number,) in found]


def test_every_record_is_read_once_across_drivers(db: lm.Database, topic: Topic, spark: SparkSession) -> None:
    create(db, topic)
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders")
    topic.send_rows(rows(0, 5))
    topic.send_rows(rows(5, 8), partition=1)
    db.run()
    topic.send([b"no record", *(f'{{"id": {number}, "amount": null}}'.encode() for number in (8, 9))], partition=1)
    with lm.connect(db.home, spark=spark) as other:
        other.run()
        other.run()
        assert ids(other) == list(range(10))
        assert other.sql("SELECT n, total FROM totals").fetchall() == [(10, 280)]
        (letter,) = other.sql("SELECT partition, offset, value FROM laminar_catalog.dead_letters").fetchall()
        assert letter == (f"{topic.name}-1", 3, b"no record")
        assert other.sql("SELECT rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall() == [(8,), (2,)]


def test_an_epoch_has_about_as_many_records_as_it_may(db: lm.Database, topic: Topic) -> None:
    create(db, topic, max_records_per_epoch="4")
    topic.send_rows(rows(0, 6))
    topic.send_rows(rows(6, 12), partition=1)
    db.run()
    assert db.sql("SELECT rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall() == [(4,), (4,), (4,)]
    assert ids(db) == list(range(12))


def test_a_source_begins_where_it_is_told(db: lm.Database, topic: Topic) -> None:
    topic.send_rows(rows(0, 3))
    create(db, topic, "whole")
    create(db, topic, "news", start="latest")
    create(db, topic, "tail", start=f'{{"{topic.name}": {{"0": 2, "1": 0}}}}')
    create(db, topic, "future", start="4000000000000")
    db.run()
    topic.send_rows(rows(3, 4), partition=1)
    db.run()
    assert [ids(db, name) for name in ("whole", "news", "tail", "future")] == [[0, 1, 2, 3], [3], [2, 3], [3]]


def test_a_version_holds_from_the_record_on_where_it_began(db: lm.Database, topic: Topic) -> None:
    create(db, topic)
    topic.send_rows([{"id": 1, "amount": 1, "note": "ignored"}])
    db.run()
    db.sql("ALTER SOURCE orders ADD COLUMN note STRING")
    topic.send_rows([{"id": 2, "amount": 2, "note": "taken"}])
    topic.send_rows([{"id": 3, "amount": 3, "note": "taken"}], partition=1)
    db.run()
    expected = [(1, None), (2, "taken"), (3, "taken")]
    assert db.sql("SELECT id, note FROM orders ORDER BY id").fetchall() == expected


def test_a_header_names_the_version_of_a_record(db: lm.Database, topic: Topic) -> None:
    create(db, topic, version_header="v")
    db.sql("ALTER SOURCE orders RENAME COLUMN amount TO total; ALTER SOURCE orders ADD COLUMN amount STRING")
    topic.send_rows([{"id": 1, "amount": 5}], v=b"1")
    topic.send_rows([{"id": 2, "amount": "x", "total": 6}], v=b"3")
    topic.send_rows([{"id": 3, "amount": "y", "total": 7}])
    topic.send_rows([{"id": 4}], v=b"9")
    db.run()
    expected = [(1, 5, None), (2, 6, "x"), (3, 7, "y")]
    assert db.sql("SELECT id, total, amount FROM orders ORDER BY id").fetchall() == expected
    ((reason,),) = db.sql("SELECT reason FROM laminar_catalog.dead_letters").fetchall()
    assert "version" in reason


def test_partitions_that_come_while_it_runs_are_read_from_their_first_record(db: lm.Database, topic: Topic) -> None:
    create(db, topic)
    topic.send_rows(rows(0, 3))
    pipeline = db.start("100 milliseconds")
    try:
        pipeline.process_all_available()
        (before,) = pipeline.status()
        topic.grow(4)
        topic.send_rows(rows(3, 6), partition=3)
        until(lambda: pipeline.status()[0].rows == 6, WAIT_SECONDS, "the new partition is read")
        (after,) = pipeline.status()
        assert (after.state, after.run_id) == ("running", before.run_id)
    finally:
        pipeline.stop()
    assert ids(db) == list(range(6))


def test_lost_records_stop_the_source_by_name_or_are_left_out(db: lm.Database, topic: Topic) -> None:
    create(db, topic)
    topic.send_rows(rows(0, 3))
    db.run()
    topic.send_rows(rows(3, 6))
    topic.send_rows(rows(6, 8), partition=1)
    topic.forget_before(5)
    with pytest.raises(SourceTruncated, match=f"{topic.name}-0 from offset 3 was requested, .* is offset 5"):
        db.run()
    db.sql("ALTER SOURCE orders SET (on_data_loss = 'skip')")
    db.run()
    assert ids(db) == [5, 6, 7]
    assert db.sql("SELECT rows FROM laminar_catalog.epochs ORDER BY epoch").fetchall() == [(3,), (3,)]


def test_a_new_view_takes_what_retention_has_left_of_a_topic_only_if_it_says_so(db: lm.Database, topic: Topic) -> None:
    create(db, topic)
    db.sql("CREATE MATERIALIZED VIEW before AS SELECT count(*) AS n FROM orders")
    for first in (0, 3):
        topic.send_rows(rows(first, first + 3))
        db.run()
    topic.send_rows(rows(6, 8), partition=1)
    db.run()
    topic.forget_before(4)
    with pytest.raises(SourceTruncated, match=f"{topic.name}-0 from offset 0 was requested, .* is offset 4"):
        ids(db)
    db.sql("CREATE MATERIALIZED VIEW whole AS SELECT id FROM orders")
    db.sql("CREATE MATERIALIZED VIEW rest WITH (backfill = 'available') AS SELECT id FROM orders")
    db.run()
    states = db.sql("SELECT name, state, problem FROM laminar_catalog.views ORDER BY name").fetchall()
    assert [(name, state) for name, state, _ in states] == [("before", "live"), ("rest", "live"), ("whole", "failed")]
    assert "is offset 4" in states[2][2]
    assert ids(db, "rest") == [4, 5, 6, 7]
    # What comes later reaches all that run.
    topic.send_rows(rows(8, 9))
    db.run()
    assert ids(db, "rest") == [4, 5, 6, 7, 8]
    assert db.sql("SELECT n FROM before").fetchall() == [(9,)]


def test_a_broker_that_goes_away_is_waited_for(db: lm.Database, tmp_path: Path) -> None:
    port, sent = free_port(), 0
    with said_if_missing(), running_kafka(tmp_path / "kafka", port) as address:
        topic = new_topic(address)
        create(db, topic)
        pipeline = db.start("100 milliseconds")
        topic.send_rows(rows(0, 500))
        until(lambda: pipeline.status()[0].rows == 500, WAIT_SECONDS, "the first records are read")
        topic.send_rows(rows(500, 700))
        sent = 700
    try:
        until(lambda: pipeline.status()[0].state == "waiting", WAIT_SECONDS, "the source waits")
        assert "SOURCE_UNAVAILABLE" in str(pipeline.status()[0].problem)
        with running_kafka(tmp_path / "kafka", port):
            topic.send_rows(rows(sent, 1000))
            until(lambda: pipeline.status()[0].rows == 1000, WAIT_SECONDS, "every record is read")
            # An epoch that was under way when the broker went ends Spark's query, which is started again by itself.
            assert pipeline.status()[0].state == "running"
            pipeline.stop()
            assert ids(db) == list(range(1000))
    finally:
        pipeline.stop()


def test_a_topic_that_is_not_there_fails_a_bounded_run_by_name(db: lm.Database, kafka_address: str) -> None:
    create(db, Topic(kafka_address, "nowhere"))
    with pytest.raises(lm.LaminaeError, match="UnknownTopicOrPartitionException"):
        db.run()
