"""Figures of running streams, each a ratio to a plain Spark job in the same session, with the same settings.

Times are Spark's own `triggerExecution` of each batch, so both sides leave out the start of a query.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import laminae as lm
from laminae.catalog.updates import CommitEpoch, SetPosition
from tests.bench.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COLUMNS = (
    "id BIGINT, customer STRING, amount DOUBLE, quantity INT, placed TIMESTAMP, paid BOOLEAN, note STRING, code INT, "
    "region STRING, price DOUBLE"
)
ROW = """to_json(named_struct('id', id, 'customer', concat('c', id % 997), 'amount', id * 1.5D, 'quantity', int(id % 7),
    'placed', timestamp_seconds(1700000000 + id), 'paid', id % 2 = 0, 'note', 'some words about it', 'code',
    int(id % 1000), 'region', 'eu-west', 'price', id * 0.25D)) AS value"""
PASS_ROWS, PASS_FILES, FILES_PER_EPOCH = 5_000_000, 20, 5
SMALL_ROWS, SMALL_EPOCHS, WARM = 1_000, 30, 10
ROUNDS = 5
READ_VERSIONS = 100


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place, _session(place) as spark:
        bench = _Bench(spark, Path(place))
        yield bench.pass_through()
        yield bench.cost_of_evolve()
        yield bench.small_epochs()
        yield bench.altered_epochs()
        yield bench.growth_with_versions()
        yield bench.growth_with_epochs()
        yield bench.reread_of_versions()


@contextmanager
def _session(place: str) -> Iterator[SparkSession]:
    from laminae.spark.catalyst.session import spark_session

    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }
    spark = spark_session(place, (), settings)
    try:
        yield spark
    finally:
        spark.stop()


class _Bench:
    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place
        self.homes = 0

    def pass_through(self) -> Figure:
        files = self._files("large", PASS_ROWS, PASS_FILES)
        ours, native = [], []
        for _ in range(ROUNDS):
            native.append(self._native(files, FILES_PER_EPOCH))
            ours.append(sum(self._ours(files, FILES_PER_EPOCH)))
        speed = PASS_ROWS / statistics.median(ours)
        ratio = _median_ratio(native, ours)
        how = f"5M rows to a Parquet sink, 1.25M an epoch: {speed * 1000:,.0f} rows/s; native / ours, at least 0.8"
        return Figure("pass-through, time against native", 1 / ratio, 1 / 0.8, "x", how)

    def cost_of_evolve(self) -> Figure:
        files = self._files("large", PASS_ROWS, PASS_FILES)
        off, auto = [], []
        for _ in range(ROUNDS):
            off.append(sum(self._ours(files, FILES_PER_EPOCH, evolve="off")))
            auto.append(sum(self._ours(files, FILES_PER_EPOCH, evolve="auto")))
        how = "5M rows to a Parquet sink, evolve = 'auto' against 'off'; at most 15% of the rows/s"
        return Figure("looking for new columns, time", _median_ratio(auto, off), 1 / 0.85, "x", how)

    def small_epochs(self) -> Figure:
        files = self._files("small", SMALL_ROWS * SMALL_EPOCHS, SMALL_EPOCHS)
        ours, native = [], []
        for _ in range(ROUNDS):
            native.append(statistics.median(self._foreach(files)[WARM:]))
            ours.append(statistics.median(self._ours(files, 1)[WARM:]))
        how = f"an epoch of 1,000 rows: {statistics.median(ours):.0f} ms against {statistics.median(native):.0f} ms"
        return Figure("small epoch, time against foreachBatch", 1 / _median_ratio(native, ours), 1.3, "x", how)

    def altered_epochs(self) -> Figure:
        """Epochs in turn, one in eight after an ALTER; what such an epoch takes beyond the median of its neighbours."""
        waiting = sorted(self._files("altered", SMALL_ROWS * 60, 60).glob("*.json"))
        incoming = self.place / "incoming"
        incoming.mkdir()
        more: list[float] = []
        with self._home(incoming, 1) as db:
            pipeline = db.start("0 seconds")
            try:
                times: list[float] = []
                altered: list[int] = []
                for number, file in enumerate(waiting):
                    if number >= WARM and number % 8 == 0:
                        db.sql(f"ALTER SOURCE s ADD COLUMN added_{number} STRING DEFAULT 'none'")
                        altered.append(number)
                    os.rename(file, incoming / file.name)
                    pipeline.process_all_available()
                    times = _times(_query(pipeline))
                assert len(times) == len(waiting), "an epoch was lost or repeated"
                for number in altered:
                    neighbours = [times[n] for n in range(number - 3, number + 4) if n != number and n < len(times)]
                    more.append(times[number] - statistics.median(neighbours))
            finally:
                pipeline.stop()
            assert db.sql("SELECT sum(rows) FROM laminar_catalog.epochs").fetchall() == [(SMALL_ROWS * len(waiting),)]
        how = f"{len(more)} epochs of 1,000 rows that apply an ALTER, beyond the median of their neighbours"
        return Figure("epoch that applies an ALTER", statistics.median(more), 150, "ms more", how)

    def growth_with_versions(self) -> Figure:
        files = self._files("small", SMALL_ROWS * SMALL_EPOCHS, SMALL_EPOCHS)
        few, many = [], []
        for _ in range(ROUNDS):
            few.append(statistics.median(self._ours(files, 1)[WARM:]))
            many.append(statistics.median(self._ours(files, 1, versions=1000)[WARM:]))
        how = f"an epoch of 1,000 rows: {statistics.median(many):.0f} ms against {statistics.median(few):.0f} ms"
        return Figure("epoch at 1,000 versions against 1", _median_ratio(many, few), 1.15, "x", how)

    def growth_with_epochs(self) -> Figure:
        files = self._files("small", SMALL_ROWS * SMALL_EPOCHS, SMALL_EPOCHS)
        few, many = [], []
        for _ in range(ROUNDS):
            few.append(statistics.median(self._ours(files, 1, epochs=100)[WARM:]))
            many.append(statistics.median(self._ours(files, 1, epochs=10_000)[WARM:]))
        how = f"an epoch of 1,000 rows: {statistics.median(many):.0f} ms against {statistics.median(few):.0f} ms"
        return Figure("epoch after 10,000 epochs against 100", _median_ratio(many, few), 1.15, "x", how)

    def reread_of_versions(self) -> Figure:
        """Against the same rows under one version with the same columns: what is read is the same."""
        few, many = [], []
        for _ in range(ROUNDS):
            few.append(self._reread(versions=1))
            many.append(self._reread(versions=READ_VERSIONS))
        seconds = f"{statistics.median(many):.1f} s against {statistics.median(few):.1f} s"
        how = f"SELECT count(*) over {READ_VERSIONS} inserts of 100 rows, with an ADD COLUMN between each: {seconds}"
        return Figure(f"SELECT over {READ_VERSIONS} versions against 1", _median_ratio(many, few), 4, "x", how)

    def _reread(self, versions: int) -> float:
        home = self._fresh("home")
        added = [f"c{number} BIGINT" for number in range(READ_VERSIONS)]
        with lm.connect(str(home), spark=self.spark) as db:
            db.sql(f"CREATE SOURCE s ({', '.join(['id BIGINT', *(added if versions == 1 else [])])})")
            for number, column in enumerate(added):
                if versions > 1:
                    db.sql(f"ALTER SOURCE s ADD COLUMN {column}")
                db.insert("s", [{"id": row, f"c{number}": row} for row in range(100)])
            db.run()
            began = time.monotonic()
            assert db.sql("SELECT count(*) FROM s").fetchall() == [(100 * READ_VERSIONS,)]
            seconds = time.monotonic() - began
        shutil.rmtree(home)
        return seconds

    def _files(self, name: str, rows: int, files: int) -> Path:
        made = self.place / name
        if not made.exists():
            lines = self.spark.range(0, rows, numPartitions=files).selectExpr(ROW)
            lines.write.text(str(made), lineSep="\n")
            for number, file in enumerate(sorted(made.glob("part-*"))):
                renamed = file.rename(made / f"{number:05}.json")
                os.utime(renamed, (1e9 + number, 1e9 + number))
            for other in made.glob("[._]*"):
                other.unlink()
        return made

    def _native(self, files: Path, files_per_epoch: int) -> float:
        """A streaming job as one writes it by hand, its schema fixed in the code: milliseconds of all its batches."""
        out, checkpoint = self._fresh("out"), self._fresh("checkpoint")
        source = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", files_per_epoch).json(str(files))
        writer = source.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(out))
        query.awaitTermination()
        return sum(_times(query))

    def _foreach(self, files: Path) -> list[float]:
        """The same small epochs by a foreachBatch that decodes with a fixed schema and writes Parquet."""
        out, checkpoint = self._fresh("out"), self._fresh("checkpoint")

        def write(batch: DataFrame, number: int) -> None:
            rows = batch.selectExpr(f"from_json(value, '{COLUMNS}') AS row").select("row.*")
            rows.write.parquet(str(out / str(number)))

        lines = self.spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(files))
        writer = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return _times(query)

    def _ours(
        self, files: Path, files_per_epoch: int, versions: int = 1, epochs: int = 0, evolve: str = "off"
    ) -> list[float]:
        with self._home(files, files_per_epoch, evolve) as db:
            _fill(db, versions, epochs)
            pipeline = db.start("0 seconds")
            try:
                pipeline.process_all_available()
                times = _times(_query(pipeline))
                (lag,) = [row["lag"] for row in db.status().to_pylist() if row["kind"] == "sink"]
                assert lag == 0, "the sink has not everything"
                return times
            finally:
                pipeline.stop()

    @contextmanager
    def _home(self, files: Path, files_per_epoch: int, evolve: str = "off") -> Iterator[lm.Database]:
        home, out = self._fresh("home"), self._fresh("sink")
        with lm.connect(str(home), spark=self.spark) as db:
            db.sql(
                f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'files', format = 'json', path = '{files}', "
                f"max_files_per_epoch = '{files_per_epoch}', evolve = '{evolve}')"
            )
            db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'parquet', path = '{out}')")
            yield db
        shutil.rmtree(home)
        shutil.rmtree(out, ignore_errors=True)

    def _fresh(self, name: str) -> Path:
        self.homes += 1
        return self.place / f"{name}-{self.homes}"


def _fill(db: lm.Database, versions: int, epochs: int) -> None:
    """A past that was never processed: versions that differ in nothing but a column, epochs of nothing."""
    catalog = db._catalog
    for number in range(versions - 1):
        db.sql(f"ALTER SOURCE s {'DROP' if number % 2 else 'ADD'} COLUMN filler{'' if number % 2 else ' STRING'}")
    source = catalog.source("s")
    assert source is not None
    if versions > 1:
        catalog.commit([SetPosition(source.id, number, "0") for number in range(1, versions + 1)])
    done = CommitEpoch(source.id, "s", 0, "", "", source.version, 0, datetime.now(UTC))
    # Before the first batch, as replays are: they have no place in the log.
    for first in range(0, epochs, 1000):
        catalog.commit([replace(done, batch_id=-1 - n) for n in range(first, min(first + 1000, epochs))])


def _query(pipeline: object) -> StreamingQuery:
    (stream,) = pipeline._running()  # type: ignore[attr-defined]  # Spark's own figures are not part of the API
    query: StreamingQuery = stream.query
    return query


def _times(query: StreamingQuery) -> list[float]:
    """Milliseconds of each batch that had something to do."""
    found = [progress["durationMs"] for progress in query.recentProgress]
    return [float(each["triggerExecution"]) for each in found if "addBatch" in each]


def _median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Of neighbouring runs: both see the same noise."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
