"""Stateful queries over files: one query for each operator, rows for two runs, and what its output must be."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.streaming.stateful_processor import TimerValues

    Build = Callable[[SparkSession], DataStreamWriter]

METADATA = "userId INT, timestamp BIGINT, deviceType STRING, geo STRUCT<city: STRING, zone: INT>"
CHANGES = {
    "unchanged": METADATA,
    "added at the start": f"location STRING, {METADATA}",
    "added in the middle": METADATA.replace("timestamp", "location STRING, amount DECIMAL(30, 2), timestamp"),
    "added at the end": f"{METADATA}, appVersion STRING, sessionId BIGINT",
    "reordered": "geo STRUCT<city: STRING, zone: INT>, deviceType STRING, userId INT, timestamp BIGINT",
    "nested": METADATA.replace("city: STRING", "country: STRING, city: STRING"),
    "all at once": (
        "tag STRING, deviceType STRING, location STRING, geo STRUCT<zone: INT, country: STRING, city: STRING>, "
        "userId INT, timestamp BIGINT, appVersion STRING, sessionId BIGINT"
    ),
}


def schema_of(metadata: str) -> str:
    return f"eventId BIGINT, ts TIMESTAMP, metadata STRUCT<{metadata}>"


def names_of(metadata: str) -> list[str]:
    from pyspark.sql.types import StructType

    struct = StructType.fromDDL(metadata)
    assert isinstance(struct, StructType), metadata
    return struct.names


def event(number: int, second: int, **more: object) -> dict[str, object]:
    geo = {"city": f"city{number % 4}", "zone": number % 3}
    metadata = {"userId": number, "timestamp": 100 + number, "deviceType": f"d{number % 5}", "geo": geo, **more}
    return {"eventId": number % 5, "ts": f"2026-01-01T00:00:{second:02d}", "metadata": metadata}


FIRST = [
    *(event(number, number) for number in range(12)),
    {"eventId": 3, "ts": "2026-01-01T00:00:12", "metadata": None},
]
SECOND = [
    event(3, 14, location="EU", appVersion="v2", sessionId=7, amount=1.5),
    event(1, 15, geo={"city": "Rome", "zone": 9, "country": "IT"}),
    event(2, 2),
    {"eventId": 9, "ts": "2026-01-01T00:00:16", "metadata": None},
]


def put(inbox: Path, name: str, rows: list[dict[str, object]]) -> None:
    """A file that is there all at once, younger than those before it."""
    inbox.mkdir(parents=True, exist_ok=True)
    hidden = inbox / f".{name}"
    hidden.write_text("\n".join(map(json.dumps, rows)))
    moment = 1_767_225_600 + len(list(inbox.iterdir()))
    os.utime(hidden, (moment, moment))
    hidden.rename(inbox / f"{name}.json")


def events(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    return spark.readStream.schema(schema_of(metadata)).option("maxFilesPerTrigger", 1).json(str(inbox))


@dataclass(frozen=True)
class Query:
    """A stateful query for any schema of the metadata; `settings` hold for its session.

    A query with timers of processing time never has nothing to do, so it runs one batch at a time: `once`.
    """

    make: Callable[[SparkSession, Path, str], DataFrame]
    mode: str = "update"
    settings: tuple[tuple[str, str], ...] = ()
    once: bool = False

    def build(self, inbox: Path, metadata: str) -> Build:
        def build(spark: SparkSession) -> DataStreamWriter:
            writer = self.make(spark, inbox, metadata).writeStream.outputMode(self.mode)
            return writer.trigger(once=True) if self.once else writer.trigger(availableNow=True)

        return build


def run(
    build: Callable[[SparkSession], DataStreamWriter], spark: SparkSession, checkpoint: Path | str
) -> list[list[str]]:
    """Everything that is there now; the rows of each batch as sorted texts."""
    batches: list[list[str]] = []

    def keep(frame: DataFrame, batch: int) -> None:
        batches.append(sorted(json.dumps(row.asDict(True), default=str, sort_keys=True) for row in frame.collect()))

    writer = build(spark).foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.start().awaitTermination()
    return batches


def tree_hash(directory: Path) -> str:
    """One number for all names and bytes below a directory."""
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        found.update(str(path.relative_to(directory)).encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def aggregation(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    latest = F.max_by("metadata", "metadata.timestamp").alias("latest")
    return events(spark, inbox, metadata).groupBy("eventId").agg(latest, F.first("metadata"), F.count("*").alias("n"))


def windows(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    late = events(spark, inbox, metadata).withWatermark("ts", "1 hour")
    return late.groupBy(F.window("ts", "10 seconds"), "metadata.geo").agg(F.last("metadata"), F.avg("eventId"))


def duplicates(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    return events(spark, inbox, metadata).select("eventId", "metadata").dropDuplicates()


def duplicates_within(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    return events(spark, inbox, metadata).withWatermark("ts", "1 hour").dropDuplicatesWithinWatermark(["metadata"])


def sessions(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    late = events(spark, inbox, metadata).withWatermark("ts", "2 seconds")
    return late.groupBy(F.session_window("ts", "4 seconds"), "eventId").agg(F.first("metadata"), F.count("*"))


def join(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    left = events(spark, inbox, metadata).withWatermark("ts", "1 hour")
    right = events(spark, inbox, METADATA).selectExpr("eventId AS id", "ts AS rts", "metadata.userId AS who")
    near = "eventId = id AND rts BETWEEN ts - INTERVAL 4 SECONDS AND ts + INTERVAL 4 SECONDS"
    return left.join(right.withWatermark("rts", "1 hour"), F.expr(near))


def chained(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    late = events(spark, inbox, metadata).withWatermark("ts", "0 seconds").dropDuplicatesWithinWatermark(["metadata"])
    # Not the first that comes: duplicates are found by a hash of the struct, so another schema has another order.
    latest = F.max_by("metadata", "metadata.timestamp")
    return late.groupBy(F.window("ts", "5 seconds")).agg(latest, F.count("*"))


def processing(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    return (
        events(spark, inbox, metadata)
        .groupBy("eventId")
        .transformWithState(
            statefulProcessor=remembering(metadata),
            outputStructType="eventId BIGINT, previous STRING, listed INT, oldest STRING, parity STRING, kept STRING",
            outputMode="Update",
            timeMode="ProcessingTime",
        )
    )


def processing_in_pandas(spark: SparkSession, inbox: Path, metadata: str) -> DataFrame:
    return (
        events(spark, inbox, metadata)
        .groupBy("eventId")
        .transformWithStateInPandas(
            statefulProcessor=remembering(metadata, in_pandas=True),
            outputStructType="eventId BIGINT, previous STRING, listed INT, oldest STRING, parity STRING, kept STRING",
            outputMode="Update",
            timeMode="ProcessingTime",
        )
    )


def remembering(metadata: str, *, in_pandas: bool = False) -> StatefulProcessor:
    """A processor that workers get by value: they cannot import the tests."""
    state, names = f"m STRUCT<{metadata}>", names_of(metadata)
    inner = re.search(r"geo STRUCT<(.*?)>", metadata)
    assert inner is not None
    geo_names = [part.split(":")[0].strip() for part in inner[1].split(",")]

    def told(value: Iterable[Any] | None) -> str | None:
        """By name, so that the same fields in another order are the same text; rows of state come without names."""
        if value is None:
            return None
        fields = dict(zip(names, value, strict=True))
        geo = fields["geo"]
        told = {**fields, "geo": geo and dict(zip(geo_names, tuple(geo), strict=True))}
        return json.dumps(told, sort_keys=True, default=str)

    class Remembering(StatefulProcessor):
        """Keeps the metadata of its key in every kind of state there is, and tells what it has."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.last = handle.getValueState("last", state)
            self.all = handle.getListState("all", state)
            self.parity = handle.getMapState("parity", "k STRING", state)
            self.kept = handle.getValueState("kept", state, 3_600_000)

        def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803  # Spark's names
            last = self.last.get() if self.last.exists() else None
            previous = None if last is None else last[0]
            found = [row for frame in rows for row in frame.itertuples()] if in_pandas else list(rows)
            for number, row in enumerate(sorted(found, key=lambda row: str(row.ts))):
                value = (None if row.metadata is None else tuple(row.metadata[name] for name in names),)
                self.last.update(value)
                self.all.appendValue(value)
                self.parity.updateValue((f"p{number % 2}",), value)
                self.kept.update(value)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 10**9)
            listed = [value[0] for value in self.all.get()]
            parity = sorted((found[0], told(value[0])) for found, value in self.parity.iterator())
            kept = self.kept.get()
            assert kept is not None
            seen = {"previous": told(previous), "listed": len(listed), "oldest": told(listed[0])}
            made = {"eventId": key[0], **seen, "parity": str(parity), "kept": told(kept[0])}
            yield pandas.DataFrame([made]) if in_pandas else Row(**made)

        def close(self) -> None:
            pass

    return Remembering()


HDFS = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ),
)
ROCKSDB = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    ),
)
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"

QUERIES = {
    "aggregation": Query(aggregation),
    "windows": Query(windows),
    "duplicates": Query(duplicates, "append"),
    "duplicates within watermark": Query(duplicates_within, "append"),
    "session windows": Query(sessions, "append"),
    "join format 2": Query(join, "append", ((JOIN_FORMAT, "2"),)),
    "join format 3": Query(join, "append", ((JOIN_FORMAT, "3"),)),
    "chained": Query(chained, "append"),
    "transformWithState": Query(processing, once=True),
    "transformWithStateInPandas": Query(processing_in_pandas, once=True),
    "aggregation on HDFS": Query(aggregation, "update", HDFS),
    "duplicates on HDFS": Query(duplicates, "append", HDFS),
    "aggregation, checkpoint format 2": Query(
        aggregation, "update", (("spark.sql.streaming.stateStore.checkpointFormatVersion", "2"),)
    ),
}


def session_for(spark: SparkSession, query: Query) -> SparkSession:
    session = spark.newSession()
    for name, value in (*ROCKSDB, *query.settings):
        session.conf.set(name, value)
    return session
