"""Figures of views, against Spark's own streaming aggregation as a good engineer writes it: RocksDB, update mode.

The stream is a seeded CDC feed of orders: inserted, half of them updated, two fifths of those again, a fifth deleted, a
tenth of the updates moving to another key, one in fifty late. An update is two rows, the old one with weight -1.
Spark's own aggregation emits no retractions and so does less.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

import laminae as lm
from tests.bench.measure import Figure
from tests.bench.memory import sampled
from tests.bench.plots import Point, draw
from tests.bench.streams import _median_ratio, _query, _session, _times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 3
ROWS, ROWS_PER_FILE = 5_000_000, 250_000
ROWS_PER_ORDER = 2.6
ONE_IN_LATE, LATE = 50, 0.2
WARM = 3
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
AT = "at"
COLUMNS = "k BIGINT, amount BIGINT, w INT"
COUNT_AND_SUM = "SELECT k, COUNT(*) AS n, SUM(amount) AS s FROM s GROUP BY k"
STACKED = "SELECT n, COUNT(*) AS groups, SUM(s) AS s FROM v0 GROUP BY n"
PLOTS = Path("docs/explanation/plots")
KEYS_DRAWN, STATES_DRAWN = (1_000, 10_000, 100_000, 1_000_000), (100_000, 1_000_000, 2_000_000, 10_000_000)
DRAWN_ROWS = 1_000_000
MANY_EPOCHS = 200
EXTREMES = "SELECT k, MIN(amount) AS lo, MAX(amount) AS hi FROM s GROUP BY k"


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place, _session(place) as spark:
        for name, value in ROCKSDB.items():
            spark.conf.set(name, value)
        bench = _Bench(spark, Path(place))
        yield bench.throughput(100_000, 1 / 1.7)
        yield bench.throughput(1_000, 1.0)
        yield bench.small_epochs()
        yield bench.growth_with_state()
        yield bench.extremes()
        yield bench.stacked()
        yield bench.flat_memory()
        bench.draw(PLOTS)


class _Bench:
    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place
        self.made = 0

    def throughput(self, keys: int, limit: float) -> Figure:
        files = self._files(f"cdc-{keys}", ROWS, ROWS_PER_FILE, keys)
        ours, native = [], []
        for _ in range(ROUNDS):
            native.append(sum(self._native(files)))
            ours.append(sum(self._ours(files, [COUNT_AND_SUM])))
        speed = ROWS / statistics.median(ours)
        how = f"5M CDC rows, 20 epochs, {keys:,} keys: {speed * 1000:,.0f} rows/s with the changelog written"
        return Figure(f"COUNT and SUM at {keys:,} keys, time", 1 / _median_ratio(native, ours), limit, "x native", how)

    def small_epochs(self) -> Figure:
        first = self._state_file("two-million", 2_000_000)
        files = self._small("small-2m", first, 2_000_000, 20)
        ours, native = [], []
        for _ in range(ROUNDS):
            native.append(statistics.median(self._native(files)[1 + WARM :]))
            ours.append(statistics.median(self._ours(files, [COUNT_AND_SUM])[1 + WARM :]))
        how = f"1,000 rows over 2M keys: {statistics.median(ours):.0f} ms against {statistics.median(native):.0f} ms"
        return Figure("small epoch over 2M keys, time", 1 / _median_ratio(native, ours), 0.75, "x native", how)

    def growth_with_state(self) -> Figure:
        few = self._small("small-100k", self._state_file("few", 100_000), 100_000, 20)
        many = self._small("small-10m", self._state_file("many", 10_000_000), 10_000_000, 20)
        low, high = [], []
        for _ in range(ROUNDS):
            low.append(statistics.median(self._ours(few, [COUNT_AND_SUM])[1 + WARM :]))
            high.append(statistics.median(self._ours(many, [COUNT_AND_SUM])[1 + WARM :]))
        how = f"1,000-row epochs: {statistics.median(high):.0f} ms against {statistics.median(low):.0f} ms"
        return Figure("small epoch at 10M keys against 100k", _median_ratio(high, low), 1.5, "x", how)

    def extremes(self) -> Figure:
        files = self._files("cdc-100000", ROWS, ROWS_PER_FILE, 100_000)
        ours, native = [], []
        for _ in range(ROUNDS):
            native.append(sum(self._native(files, "min(amount) AS lo", "max(amount) AS hi", where="w > 0")))
            ours.append(sum(self._ours(files, [EXTREMES])))
        how = "5M rows with deletions, 100k keys, against Spark's insert-only MIN and MAX"
        return Figure("MIN and MAX, time", 1 / _median_ratio(native, ours), 2.0, "x native", how)

    def stacked(self) -> Figure:
        files = self._files("cdc-100000", ROWS, ROWS_PER_FILE, 100_000)
        one, two = [], []
        for _ in range(ROUNDS):
            one.append(sum(self._ours(files, [COUNT_AND_SUM])))
            two.append(sum(self._ours(files, [COUNT_AND_SUM, STACKED])))
        return Figure("two stacked views against one, time", _median_ratio(two, one), 1.6, "x", "5M rows, 100k keys")

    def flat_memory(self) -> Figure:
        """Of all processes, over epochs of 1,000 rows at 10M keys: the last quarter against the second."""
        files = self._small("small-10m-long", self._state_file("many", 10_000_000), 10_000_000, MANY_EPOCHS)
        with sampled() as found:
            self._ours(files, [COUNT_AND_SUM])
        quarter = len(found) // 4
        early, late = statistics.median(found[quarter : 2 * quarter]), statistics.median(found[3 * quarter :])
        how = f"{MANY_EPOCHS} epochs at 10M keys: peak {max(found) / 1e9:.2f} GB, at the end {late / 1e9:.2f} GB"
        return Figure("memory of all processes, late against early", late / early, 1.1, "x", how)

    def draw(self, target: Path) -> None:
        """Rows a second over keys, and milliseconds of a small epoch over the state, against Spark's own."""
        speeds, epochs = [], []
        for keys in KEYS_DRAWN:
            files = self._files(f"drawn-{keys}", DRAWN_ROWS, ROWS_PER_FILE, keys)
            our_ms, native_ms = sum(self._ours(files, [COUNT_AND_SUM])), sum(self._native(files))
            speeds.append(Point(keys, DRAWN_ROWS / our_ms * 1000, DRAWN_ROWS / native_ms * 1000))
        for keys in STATES_DRAWN:
            files = self._small(f"small-drawn-{keys}", self._state_file(f"drawn-{keys}", keys), keys, 10)
            ours, native = self._ours(files, [COUNT_AND_SUM]), self._native(files)
            epochs.append(Point(keys, statistics.median(ours[1 + WARM :]), statistics.median(native[1 + WARM :])))
        draw(target / "rows-per-second", speeds, "keys", "rows/s (1M CDC rows in epochs of 250k)")
        draw(target / "epoch-over-state", epochs, "keys in the state", "ms of an epoch of 1,000 rows")

    def _native(self, files: Path, *sums: str, where: str = "TRUE") -> list[float]:
        wanted = sums or ("sum(w) AS n", "sum(w * amount) AS s")
        out, checkpoint = self._fresh("out"), self._fresh("checkpoint")

        def write(batch: DataFrame, number: int) -> None:
            batch.write.parquet(str(out / str(number)))

        rows = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(files)).where(where)
        grouped = rows.groupBy("k").agg(*map(F.expr, wanted))
        writer = grouped.writeStream.outputMode("update").foreachBatch(write)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        times = _times(query)
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(checkpoint, ignore_errors=True)
        return times

    def _ours(self, files: Path, queries: list[str]) -> list[float]:
        with self._home(files, queries) as db:
            pipeline = db.start("0 seconds")
            try:
                pipeline.process_all_available()
                return _times(_query(pipeline))
            finally:
                pipeline.stop()

    @contextmanager
    def _home(self, files: Path, queries: list[str]) -> Iterator[lm.Database]:
        home = self._fresh("home")
        with lm.connect(str(home), spark=self.spark) as db:
            db.sql(
                f"CREATE SOURCE s ({COLUMNS}) WITH (connector = 'files', format = 'parquet', path = '{files}', "
                "max_files_per_epoch = 1, changelog = 'retract', weight_field = 'w')"
            )
            for number, query in enumerate(queries):
                db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
            yield db
        shutil.rmtree(home, ignore_errors=True)

    def _files(self, name: str, rows: int, rows_per_file: int, keys: int) -> Path:
        """The feed, in the order in which its events happen, in files of equal size."""
        made = self.place / name
        if not made.exists():
            orders = int(rows / ROWS_PER_ORDER)
            self._write(cdc(self.spark, orders, keys).limit(rows), made, rows // rows_per_file)
        return made

    def _state_file(self, name: str, keys: int) -> Path:
        made = self.place / f"state-{name}"
        if not made.exists():
            self._write(self.spark.range(keys).selectExpr("id AS k", "id % 1000 AS amount", "1 AS w"), made, 1)
        return made

    def _small(self, name: str, first: Path, keys: int, epochs: int) -> Path:
        """One file that fills the state, then files of 1,000 rows."""
        made = self.place / name
        if not made.exists():
            rows = self.spark.range(epochs * 1000).selectExpr(
                f"abs(xxhash64(id)) % {keys} AS k", "id % 100 AS amount", "1 AS w"
            )
            self._write(rows, made, epochs)
            for file in first.glob("*.parquet"):
                target = made / "000000.parquet"
                os.link(file, target)
                os.utime(target, (1e8, 1e8))
        return made

    def _write(self, rows: DataFrame, target: Path, files: int) -> None:
        ordered = rows.repartitionByRange(files, AT).drop(AT) if AT in rows.columns else rows.repartition(files)
        ordered.write.parquet(str(target))
        for number, file in enumerate(sorted(target.glob("part-*"))):
            renamed = file.rename(target / f"{number + 1:06}.parquet")
            os.utime(renamed, (1e9 + number, 1e9 + number))
        for other in target.glob("[._]*"):
            other.unlink()

    def _fresh(self, name: str) -> Path:
        self.made += 1
        return self.place / f"{name}-{self.made}"


def cdc(spark: SparkSession, orders: int, keys: int) -> DataFrame:
    """Rows (k, amount, w, at) of every version of every order; later versions come within a tenth of the feed.

    One order in fifty comes late, by a fifth of the feed.
    """
    begun = f"(id / {orders} + IF(abs(xxhash64(id, 11)) % {ONE_IN_LATE} = 0, {LATE}D, 0D))"
    order = spark.range(orders).selectExpr(
        "id",
        f"{begun} AS t0",
        f"{begun} + (abs(xxhash64(id, 9)) % 1000) / 10000D AS t1",
        f"{begun} + 0.1D + (abs(xxhash64(id, 10)) % 1000) / 10000D AS t2",
        "abs(xxhash64(id, 1)) % 10 AS dice",
        f"abs(xxhash64(id, 2)) % {keys} AS k0",
        f"IF(abs(xxhash64(id, 3)) % 10 = 0, abs(xxhash64(id, 4)) % {keys}, abs(xxhash64(id, 2)) % {keys}) AS k1",
        "abs(xxhash64(id, 5)) % 1000 AS a0",
        "abs(xxhash64(id, 6)) % 1000 AS a1",
        "abs(xxhash64(id, 7)) % 1000 AS a2",
    )
    versions = (
        ("k0", "a0", 1, "t0", "TRUE"),
        ("k0", "a0", -1, "t1", "dice < 5"),
        ("k1", "a1", 1, "t1", "dice < 5"),
        ("k1", "a1", -1, "t2", "dice < 2"),
        ("k1", "a2", 1, "t2", "dice < 2"),
        (
            "IF(dice < 5, k1, k0)",
            "IF(dice < 2, a2, IF(dice < 5, a1, a0))",
            -1,
            "t2 + 0.01D",
            "abs(xxhash64(id, 8)) % 5 = 0",
        ),
    )
    made = ", ".join(
        f"named_struct('k', {k}, 'amount', {amount}, 'w', {w}, 'at', {at}, 'is_there', {is_there})"
        for k, amount, w, at, is_there in versions
    )
    events = order.selectExpr(f"inline(filter(array({made}), e -> e.is_there))")
    return events.selectExpr("CAST(k AS BIGINT) AS k", "CAST(amount AS BIGINT) AS amount", "w", AT)
