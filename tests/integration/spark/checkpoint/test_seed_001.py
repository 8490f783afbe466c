"""The example of seed 001 on real Spark: events with nested metadata evolve, and what is not supported is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

import laminae.state
from laminae.errors import (
    CheckpointExists,
    CheckpointInUse,
    CheckpointInvalid,
    InvalidQuery,
    MigrationFailed,
    StateEvolutionDisabled,
    StateRefused,
)
from laminae.state.rules import RULES, Rule
from tests.support.stateful import Query, put, run, session_for, tree_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.stateful import Build

OLD = "userId INT, timestamp BIGINT, deviceType STRING"
NEW = "deviceType STRING, location STRING, userId INT, timestamp BIGINT, appVersion STRING, sessionId BIGINT"


def latest(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    events = spark.readStream.schema(f"eventId BIGINT, metadata STRUCT<{metadata}>").json(str(inbox))
    newest = F.max_by("metadata", "metadata.timestamp").alias("latest")
    return events.groupBy("eventId").agg(newest, F.count("*").alias("n"))


QUERY = Query(latest)
NOT_NULL_STAYS = (("spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled", "false"),)


@dataclass(frozen=True)
class Stopped:
    """A query that ran over some events and was stopped."""

    spark: SparkSession
    inbox: Path
    checkpoint: Path

    def build(self, metadata: str) -> Build:
        return QUERY.build(self.inbox, metadata)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    place = tmp_path_factory.mktemp("events")
    session = session_for(spark, QUERY)
    old = [{"userId": 7, "timestamp": 5, "deviceType": "phone"}, {"userId": 8, "timestamp": 9, "deviceType": "tablet"}]
    put(place / "in", "old", [{"eventId": number, "metadata": one} for number, one in enumerate(old)])
    found = Stopped(session, place / "in", place / "checkpoint")
    run(found.build(OLD), session, found.checkpoint)
    return found


def test_evolved_events_go_on_with_the_state_of_the_old_ones(stopped: Stopped, tmp_path: Path) -> None:
    before, target = tree_hash(stopped.checkpoint), tmp_path / "evolved"
    report = laminae.state.check_checkpoint(str(stopped.checkpoint), stopped.build(NEW), spark=stopped.spark)
    assert report.kind == "compatible_after_migration"
    origins = {line.path: line.origin for line in report.families[0].fields}
    assert "new, NULL" in {origin for path, origin in origins.items() if path.endswith("location")}
    laminae.state.migrate_checkpoint(str(stopped.checkpoint), str(target), stopped.build(NEW), spark=stopped.spark)
    assert tree_hash(stopped.checkpoint) == before
    new = {"deviceType": "watch", "location": "EU", "userId": 9, "timestamp": 8, "appVersion": "2", "sessionId": 3}
    put(stopped.inbox, "new", [{"eventId": 0, "metadata": new}, {"eventId": 1, "metadata": {**new, "timestamp": 1}}])
    rows = [json.loads(row) for row in run(stopped.build(NEW), stopped.spark, target)[-1]]
    kept = {
        "deviceType": "tablet",
        "userId": 8,
        "timestamp": 9,
        "location": None,
        "appVersion": None,
        "sessionId": None,
    }
    assert rows == [{"eventId": 0, "latest": new, "n": 2}, {"eventId": 1, "latest": kept, "n": 2}]
    assert tree_hash(stopped.checkpoint) == before


REFUSED = {
    "removed": ("deviceType STRING, timestamp BIGINT", Rule.FIELD_REMOVED, "userId"),
    "retyped": (OLD.replace("timestamp BIGINT", "timestamp TIMESTAMP"), Rule.TYPE_CHANGED, "timestamp"),
    "renamed": (OLD.replace("userId", "user"), Rule.FIELD_RENAMED, "userId"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_flip_does_not_support_is_refused(stopped: Stopped, tmp_path: Path, name: str) -> None:
    metadata, rule, field = REFUSED[name]
    target, checkpoint = tmp_path / "new", str(stopped.checkpoint)
    with pytest.raises(StateRefused, match=field) as refusal:
        laminae.state.migrate_checkpoint(checkpoint, str(target), stopped.build(metadata), spark=stopped.spark)
    assert RULES[rule].remedy in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_new_field_that_is_not_null_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    """Files make every field nullable; a literal does not. From Spark 4.3 on, state may be NULL anyway unless told."""
    session, old = session_for(stopped.spark, Query(latest, settings=NOT_NULL_STAYS)), tmp_path / "old"
    run(stopped.build(OLD), session, old)

    def build(spark: SparkSession) -> DataFrame:
        events = spark.readStream.schema(f"eventId BIGINT, metadata STRUCT<{OLD}>").json(str(stopped.inbox))
        sited = events.withColumn("metadata", F.col("metadata").withField("site", F.lit("x")))
        newest = F.max_by("metadata", "metadata.timestamp").alias("latest")
        return sited.groupBy("eventId").agg(newest, F.count("*").alias("n"))

    report = laminae.state.check_checkpoint(str(old), build, spark=session)
    assert [reason.rule for reason in report.reasons] == [Rule.REQUIRED_ADDED]


def adding(*aggregates: str) -> Callable[[Stopped], Build]:
    def build(stopped: Stopped) -> Build:
        def make(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
            events = spark.readStream.schema(f"eventId BIGINT, metadata STRUCT<{metadata}>").json(str(inbox))
            newest = F.max_by("metadata", "metadata.timestamp").alias("latest")
            return events.groupBy("eventId").agg(*map(F.expr, aggregates), newest, F.count("*").alias("n"))

        return Query(make).build(stopped.inbox, OLD)

    return build


def test_an_added_aggregate_is_refused_and_never_shifts_a_buffer(stopped: Stopped, tmp_path: Path) -> None:
    new, old = adding("sum(metadata.userId) AS s")(stopped), stopped.build(OLD)
    checkpoint, target = str(stopped.checkpoint), str(tmp_path / "new")
    report = laminae.state.check_checkpoint(checkpoint, new, spark=stopped.spark)
    assert [reason.rule for reason in report.reasons] == [Rule.AGGREGATES_CHANGED]
    report = laminae.state.check_checkpoint(checkpoint, new, spark=stopped.spark, from_build=old, add_aggregates=True)
    assert report.reasons == ()
    assert any("starts empty" in note for note in report.notes)
    laminae.state.migrate_checkpoint(checkpoint, target, new, spark=stopped.spark, from_build=old, add_aggregates=True)
    (sample,) = laminae.state.inspect_checkpoint(target, spark=stopped.spark).families
    found = sorted((key["eventId"], value["sum"], value["count"]) for key, value in sample.samples)
    assert found == [(0, None, 1), (1, None, 1)]


def test_start_migrates_only_when_that_is_enabled(stopped: Stopped, tmp_path: Path) -> None:
    target = tmp_path / "new"

    def build(spark: SparkSession):
        return stopped.build(NEW)(spark).format("noop")

    with pytest.raises(StateEvolutionDisabled, match="location"):
        laminae.state.start(build, str(stopped.checkpoint), str(target), spark=stopped.spark)
    assert not target.exists()
    query = laminae.state.start(build, str(stopped.checkpoint), str(target), spark=stopped.spark, enable=True)
    query.awaitTermination()
    assert query.exception() is None
    again = laminae.state.start(build, str(stopped.checkpoint), str(target), spark=stopped.spark)
    again.awaitTermination()
    assert str(again.id) == str(query.id)


def test_start_needs_a_sink(stopped: Stopped, tmp_path: Path) -> None:
    def build(spark: SparkSession) -> DataFrame:
        return latest(spark, stopped.inbox, NEW)

    with pytest.raises(InvalidQuery, match="sink"):
        laminae.state.start(build, str(stopped.checkpoint), str(tmp_path / "n"), spark=stopped.spark, enable=True)


def test_a_target_that_is_there_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    with pytest.raises(CheckpointExists):
        laminae.state.migrate_checkpoint(
            str(stopped.checkpoint), str(tmp_path), stopped.build(NEW), spark=stopped.spark
        )


def test_a_target_that_cannot_be_made_leaves_nothing(stopped: Stopped, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    target = str(tmp_path / "file" / "new")
    with pytest.raises(MigrationFailed):
        laminae.state.migrate_checkpoint(str(stopped.checkpoint), target, stopped.build(NEW), spark=stopped.spark)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_damaged_state_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(stopped.checkpoint, damaged)
    for snapshot in damaged.rglob("*.zip"):
        snapshot.write_bytes(b"no snapshot")
    for checksum in damaged.rglob(".*.crc"):
        checksum.unlink()
    with pytest.raises(CheckpointInvalid, match="cannot be read"):
        laminae.state.check_checkpoint(str(damaged), stopped.build(NEW), spark=stopped.spark)


def test_a_migration_is_refused_when_the_old_query_went_on(stopped: Stopped, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(stopped.checkpoint, moved)

    def go_on(step: str, done: int, total: int) -> None:
        if step.startswith("rewrite"):
            (moved / "offsets" / "1").write_bytes((moved / "offsets" / "0").read_bytes())

    with pytest.raises(CheckpointInUse, match="offsets/1"):
        laminae.state.migrate_checkpoint(
            str(moved), str(tmp_path / "new"), stopped.build(NEW), spark=stopped.spark, on_step=go_on
        )
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]


def failing(spark: SparkSession) -> DataFrame:
    raise KeyError("no such table")


@pytest.mark.parametrize(
    ("build", "told"),
    [(failing, "KeyError"), (lambda spark: spark.range(1), "streaming"), (lambda spark: 7, "int"), (7, "function")],
)
def test_a_query_that_cannot_be_used_is_refused(stopped: Stopped, build: Build, told: str) -> None:
    with pytest.raises(InvalidQuery, match=told):
        laminae.state.check_checkpoint(str(stopped.checkpoint), build, spark=stopped.spark)


def test_a_changed_number_of_partitions_is_refused(stopped: Stopped) -> None:
    def build(spark: SparkSession):
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        return stopped.build(NEW)(spark)

    report = laminae.state.check_checkpoint(str(stopped.checkpoint), build, spark=stopped.spark)
    assert [reason.rule for reason in report.reasons] == [Rule.PARTITIONS_CHANGED]


def test_a_query_that_keeps_its_own_session_is_planned_as_well(stopped: Stopped) -> None:
    own = stopped.build(NEW)
    report = laminae.state.check_checkpoint(str(stopped.checkpoint), lambda _: own(stopped.spark), spark=stopped.spark)
    assert report.kind == "compatible_after_migration"


def test_other_operators_are_refused(stopped: Stopped) -> None:
    def build(spark: SparkSession) -> DataFrame:
        schema = f"eventId BIGINT, metadata STRUCT<{OLD}>"
        return spark.readStream.schema(schema).json(str(stopped.inbox)).dropDuplicates(["eventId"])

    report = laminae.state.check_checkpoint(str(stopped.checkpoint), build, spark=stopped.spark)
    assert [reason.rule for reason in report.reasons] == [Rule.OPERATORS_CHANGED]


def test_a_running_query_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    writer = stopped.build(OLD)(stopped.spark).format("noop").trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", str(tmp_path / "live")).start()
    try:
        query.processAllAvailable()
        with pytest.raises(CheckpointInUse):
            laminae.state.check_checkpoint(str(tmp_path / "live"), stopped.build(NEW), spark=stopped.spark)
    finally:
        query.stop()


def test_a_directory_that_is_no_checkpoint_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    with pytest.raises(CheckpointInvalid, match="no offsets"):
        laminae.state.check_checkpoint(str(tmp_path), stopped.build(NEW), spark=stopped.spark)


def test_a_checkpoint_is_looked_into(stopped: Stopped) -> None:
    (found,) = laminae.state.inspect_checkpoint(str(stopped.checkpoint), spark=stopped.spark).families
    assert (found.operator_name, found.rows, found.partitions) == ("stateStoreSave", 2, 2)
    assert found.key == "struct<eventId: long>"
    assert len(found.samples) == 2
