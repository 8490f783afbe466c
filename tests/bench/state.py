"""Figures of state: the codec, its identity with the JVM, and migrations of many keys on Spark.

`python -m tests.bench.state KEYS ...` migrates so many keys and prints the time of each step; `make bench` takes three
sizes, when the JVM is warm.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.state.codec import Migration, row_encoder
from laminae.state.compatibility import resolve
from laminae.state.types import Leaf, struct
from tests.bench.measure import Figure, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = 10_000
CODEC_LIMIT = 1e6 / 300_000
KEY_LIMIT = 1e6 / 80_000
SIZES = (100_000, 1_000_000, 5_000_000)
OLD = "userId INT, timestamp BIGINT, deviceType STRING"
NEW = "deviceType STRING, location STRING, userId INT, timestamp BIGINT, appVersion STRING, sessionId BIGINT"
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.timeType.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


def figures() -> Iterator[Figure]:
    yield Figure("state: a row of 10 fields", codec() * 1e6, CODEC_LIMIT, "us", f"batches of {ROWS} rows, reordered")
    from laminae.spark.catalyst.session import spark_session

    spark = spark_session("checkpoint://", (), SETTINGS)
    yield Figure("state: rows unlike the JVM's", differences(spark), 0, "rows", f"{ROWS} random rows, 100 schemas")
    # What is compiled in the first minute would be taken for work that few keys need.
    migration(spark, SIZES[1])
    small, middle, large = (migration(spark, keys) for keys in SIZES)
    yield Figure("state: a key migrated", middle.per_key * 1e6, KEY_LIMIT, "us", f"{SIZES[1]} keys, all steps")
    # Planning takes its seconds whatever the number of keys, so a key of few is the dearest.
    grown = large.per_key / min(small.per_key, middle.per_key)
    how = ", ".join(f"{found.keys}: {found.per_key * 1e6:.1f} us" for found in (small, middle, large))
    yield Figure("state: a key of many against a key of fewer", grown, 1.3, "x", how)
    yield Figure("state: Python's memory", large.megabytes, 500, "MB", "the largest process of Python's")


def codec() -> float:
    """Seconds of one row, in a batch whose nested struct grows and whose fields all move."""
    names = ("long", "string", "integer", "double", "string", "timestamp", "boolean", "decimal(10,2)", "string")
    inner = struct(("u", Leaf("integer")), ("t", Leaf("long")), ("d", Leaf("string")))
    old = struct(*((f"f{place}", Leaf(name)) for place, name in enumerate(names)), ("m", inner))
    grown = struct(("d", Leaf("string")), ("place", Leaf("string")), *inner.fields[:2])
    new = struct(("m", grown), *old.fields[:-1], ("z", Leaf("long")))
    encode = row_encoder(old)
    rows = [
        encode((n, f"text{n}", n, n / 3, "x" * (n % 20), n, n % 2 == 0, Decimal(n) / 100, None, (n, n, f"device-{n}")))
        for n in range(ROWS)
    ]
    mapping = resolve(old, new).mapping
    assert mapping is not None
    migration, batch = Migration.of(old, new, mapping), pa.array(rows, pa.binary())
    return seconds(lambda: migration.batch(batch)) / ROWS


def differences(spark: SparkSession) -> int:
    from tests.integration.spark.checkpoint.test_unsafe_rows import differences as found

    return sum(found(spark, seed, rows=ROWS // 100) for seed in random.Random(1).sample(range(10_000), 100))


@dataclass(frozen=True, slots=True)
class Measured:
    keys: int
    seconds: float
    megabytes: float
    steps: tuple[tuple[str, float], ...]

    @property
    def per_key(self) -> float:
        return self.seconds / self.keys


def migration(spark: SparkSession, keys: int) -> Measured:
    """A checkpoint of so many keys, made and migrated: the time of the migration without the checkpoint's making."""
    from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

    from laminae.state import migrate_checkpoint

    with tempfile.TemporaryDirectory() as place:
        inbox, old, new = (str(Path(place, name)) for name in ("in", "old", "new"))
        nested = "named_struct('userId', CAST(id % 1000 AS INT), 'timestamp', id, 'deviceType', concat('device-', id))"
        spark.range(keys).selectExpr("id AS eventId", f"{nested} AS metadata").write.parquet(inbox)

        def query(session: SparkSession, metadata: str) -> DataFrame:
            schema = f"eventId BIGINT, metadata STRUCT<{metadata}>"
            newest = F.max_by("metadata", "metadata.timestamp").alias("latest")
            return (
                session.readStream.schema(schema).parquet(inbox).groupBy("eventId").agg(newest, F.count("*").alias("n"))
            )

        writer = query(spark, OLD).writeStream.format("noop").outputMode("update").option("checkpointLocation", old)
        writer.trigger(availableNow=True).start().awaitTermination()
        told: list[tuple[str, float]] = []
        migrated = migrate_checkpoint(
            old,
            new,
            lambda session: query(session, NEW),
            spark=spark,
            on_step=lambda step, *_: told.append((step, time.perf_counter())),
        )
        told.append(("end", time.perf_counter()))
        assert migrated.rows == keys
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(keys, told[-1][1] - told[0][1], max(own, *_workers()), _steps(told))


def _steps(told: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """The seconds of each step, from when it was first told to when the next one was."""
    firsts = [told[place] for place in range(len(told)) if not place or told[place][0] != told[place - 1][0]]
    return tuple((step, after - begun) for (step, begun), (_, after) in pairwise(firsts))


def _workers() -> list[float]:
    """The largest memory that each Python worker of Spark's has had, from /proc."""
    found = [0.0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text, command = status.read_text(), (status.parent / "cmdline").read_bytes()
        except OSError:
            continue  # the process has ended
        if b"pyspark" in command and b"daemon" in command and status.parent.name != str(os.getpid()):
            peak = next((line for line in text.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
            found.append(int(peak.split()[1]) / 1024)
    return found


def main(sizes: list[int]) -> None:
    from laminae.spark.catalyst.session import spark_session

    print(f"codec: {1 / codec():,.0f} rows/s", flush=True)
    spark = spark_session("checkpoint://", (), SETTINGS)
    for keys in sizes:
        found = migration(spark, keys)
        print(f"{keys:,} keys: {1 / found.per_key:,.0f} keys/s, Python at most {found.megabytes:.0f} MB", flush=True)
        for step, spent in found.steps:
            print(f"  {spent:6.1f} s  {step}", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
