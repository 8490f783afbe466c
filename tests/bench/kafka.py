"""Figures of Kafka sources, on a real broker and a real registry that are started for them.

The baseline is a streaming query as one writes it by hand: the schema is fixed in the code, the same topic, session,
records for each batch and kind of sink. Times are Spark's own `triggerExecution`, so both sides leave out the start.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

import laminae as lm
from laminae.codec.confluent import HEADER, MAGIC
from laminae.registry import RegistryClient, RegistrySettings
from tests.bench.measure import Figure
from tests.bench.streams import _median_ratio, _query, _session, _times
from tests.bench.views import AT, ROCKSDB
from tests.services.jars import ServiceMissing, jars
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry
from tests.support.topics import new_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from tests.support.topics import Topic

ROUNDS = 3
PARTITIONS = 2
RECORDS, RECORDS_PER_EPOCH = 1_250_000, 250_000
SMALL_RECORDS, SMALL_EPOCHS, WARM, EVERY = 1_000, 58, 10, 8
EVENTS, EVENTS_PER_EPOCH, KEYS = 3_000_000, 500_000, 100_000
EVENTS_PER_SECOND = 150_000
INTERLEAVED = 5
FIELDS = {
    "id": "long",
    "customer": "string",
    "amount": "double",
    "quantity": "int",
    "placed": {"type": "long", "logicalType": "timestamp-micros"},
    "paid": "boolean",
    "note": "string",
    "code": "int",
    "region": "string",
    "price": "double",
}
COLUMNS = {
    "id": "BIGINT",
    "customer": "STRING",
    "amount": "DOUBLE",
    "quantity": "INT",
    "placed": "TIMESTAMP",
    "paid": "BOOLEAN",
    "note": "STRING",
    "code": "INT",
    "region": "STRING",
    "price": "DOUBLE",
}
ROW = (
    "id",
    "concat('c', id % 997) AS customer",
    "id * 1.5D AS amount",
    "int(id % 7) AS quantity",
    "timestamp_seconds(1700000000 + id) AS placed",
    "id % 2 = 0 AS paid",
    "'some words about it' AS note",
    "int(id % 1000) AS code",
    "'eu-west' AS region",
    "id * 0.25D AS price",
)
ORDER = "STRUCT<id: BIGINT, k: BIGINT, amount: BIGINT>"
ENVELOPE = f"op STRING, before {ORDER}, after {ORDER}, source STRUCT<lsn: BIGINT>"


def connector_jars() -> tuple[str, ...]:
    """What Spark's class path must have from the start of its JVM; nothing where it cannot be had."""
    try:
        return tuple(map(str, sorted(jars("spark-kafka").glob("*.jar"))))
    except ServiceMissing as missing:
        print(f"kafka: NOT measured: {missing}", file=sys.stderr)
        return ()


def figures() -> Iterator[Figure]:
    if not connector_jars():
        return
    with (
        tempfile.TemporaryDirectory() as place,
        running_kafka(Path(place) / "kafka") as broker,
        running_registry(Path(place) / "registry") as registry,
        _session(place) as spark,
    ):
        for name, value in ROCKSDB.items():
            spark.conf.set(name, value)
        bench = _Bench(spark, Path(place), broker, registry)
        yield bench.pass_through(1)
        yield bench.pass_through(INTERLEAVED)
        yield bench.new_ids()
        yield bench.debezium()


def avro_schema(renamed: int = 0, added: int = 0) -> str:
    """Ten fields. Renaming one leaves the bytes as they are, so that one fixed schema reads them all."""
    fields: list[dict[str, object]] = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
    if renamed:
        fields[6] = {"name": f"note{renamed}", "type": "string", "aliases": _former_names(renamed)}
    fields += [{"name": f"added{n}", "type": ["null", "string"], "default": None} for n in range(added)]
    return json.dumps({"type": "record", "name": "Purchase", "fields": fields})


def _former_names(renamed: int) -> list[str]:
    return ["note", *(f"note{n}" for n in range(1, renamed))]


class _Bench:
    def __init__(self, spark: SparkSession, place: Path, broker: str, registry: str) -> None:
        self.spark = spark
        self.place = place
        self.broker = broker
        self.registry = registry
        self.client = RegistryClient(RegistrySettings(registry, "bench"))
        self.made = 0

    def pass_through(self, ids: int) -> Figure:
        schemas = [avro_schema(renamed) for renamed in range(ids)]
        topic = new_topic(self.broker, PARTITIONS)
        self._send(topic, schemas, self.spark.range(0, RECORDS, numPartitions=PARTITIONS), F.col("id") % ids)
        source = self._avro_source(topic, RECORDS_PER_EPOCH)
        ours, native = [], []
        for _ in range(1 + ROUNDS):
            # Neither side's first epoch: ours meets the ids in it, theirs plans.
            native.append(sum(self._native(topic, schemas[0])[1:]))
            ours.append(sum(self._ours(source, RECORDS)[1:]))
        # The first run of each has the JVM compile.
        ours, native = ours[1:], native[1:]
        speeds = [(RECORDS - RECORDS_PER_EPOCH) / statistics.median(times) * 1000 for times in (ours, native)]
        told = f"{ids} schema {'id' if ids == 1 else 'ids, record by record'}"
        how = f"1M records of 10 fields to a Parquet sink: {speeds[0]:,.0f} against {speeds[1]:,.0f} records/s"
        return Figure(f"Avro from Kafka, {told}, time", _median_ratio(ours, native), 1 / 0.9, "x native", how)

    def new_ids(self) -> Figure:
        """Epochs in turn, one in eight with an id that nobody has seen, which adds a column."""
        news = list(range(WARM + EVERY - WARM % EVERY, SMALL_EPOCHS - 3, EVERY))
        schemas = [avro_schema(added=added) for added in range(len(news) + 1)]
        topic = new_topic(self.broker)
        records = self.spark.range(0, SMALL_RECORDS * SMALL_EPOCHS, numPartitions=1)
        epoch = F.expr(f"id DIV {SMALL_RECORDS}")
        which = sum((F.when(epoch >= number, 1).otherwise(0) for number in news), F.lit(0))
        self._send(topic, schemas, records, which)
        more: list[float] = []
        for _ in range(ROUNDS):
            times = self._ours(self._avro_source(topic, SMALL_RECORDS), SMALL_RECORDS * SMALL_EPOCHS)
            assert len(times) == SMALL_EPOCHS, "an epoch was lost or repeated"
            for number in news:
                neighbours = [times[n] for n in range(number - 3, number + 4) if n != number]
                more.append(times[number] - statistics.median(neighbours))
        usual = statistics.median(times[WARM:])
        how = f"{len(more)} epochs of 1,000 records with a new id and column; an epoch takes {usual:.0f} ms"
        return Figure("epoch with a new schema id", statistics.median(more), 300, "ms more", how)

    def debezium(self) -> Figure:
        topic = new_topic(self.broker, PARTITIONS)
        self._send_events(topic)
        columns = "id BIGINT NOT NULL, k BIGINT, amount BIGINT, PRIMARY KEY (id)"
        source = (
            f"CREATE SOURCE s ({columns}) WITH (connector = 'kafka', format = 'debezium-json', topic = '{topic.name}', "
            f"kafka.bootstrap.servers = '{self.broker}', max_records_per_epoch = {EVENTS_PER_EPOCH})"
        )
        view = "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n, SUM(amount) AS s FROM s GROUP BY k"
        ours, native = [], []
        for _ in range(1 + ROUNDS):
            # Neither side's first epoch, in which both plan.
            native.append(sum(self._native_events(topic)[1:]))
            with self._home() as db:
                db.sql(source)
                db.sql(view)
                ours.append(sum(self._run(db, EVENTS)[1:]))
        # The first run of each has the JVM compile.
        measured = EVENTS - EVENTS_PER_EPOCH
        spent = statistics.median(ours[1:]) / measured * 1000
        speeds = [measured / statistics.median(times[1:]) * 1000 for times in (ours, native)]
        how = (
            f"3M events of orders in epochs of 500,000, {KEYS:,} keys: {speeds[0]:,.0f} events/s; Spark's own "
            f"aggregation of before and after, without a table of the orders: {speeds[1]:,.0f}"
        )
        name = "Debezium JSON from Kafka, COUNT and SUM"
        return Figure(name, spent, 1e6 / EVENTS_PER_SECOND, "us an event", how)

    def _send(self, topic: Topic, schemas: Sequence[str], records: DataFrame, which: Column) -> None:
        """Each record in the schema that `which` numbers; fields beyond the ten are NULL."""
        from pyspark.sql.avro.functions import to_avro

        subject = f"{topic.name}-value"
        frames = [HEADER.pack(MAGIC, self.client.register(subject, schema)) for schema in schemas]
        value, body = F.lit(None).cast("binary"), F.struct(*map(F.expr, ROW))
        written = to_avro(body, avro_schema())
        for number, frame in enumerate(frames):
            # NULL is the first branch of its union: a byte of 0 for each field that was added.
            added = len(json.loads(schemas[number])["fields"]) - len(FIELDS)
            framed = F.concat(F.lit(bytearray(frame)), written, F.lit(bytearray(added)))
            value = F.when(which == number, framed).otherwise(value)
        self._write(topic, records.select(value.alias("value")))

    def _send_events(self, topic: Topic) -> None:
        """Orders that come, half of which change and a fifth of which go, as a connector tells of them in full."""
        events = order_events(self.spark, int(EVENTS / 1.7), KEYS).limit(EVENTS)
        numbered = events.withColumn("lsn", F.row_number().over(Window.orderBy(AT, "id")))
        envelope = F.struct(
            "before",
            "after",
            F.expr(
                "named_struct('version', '3.4.3.Final', 'connector', 'postgresql', 'name', 'shop', "
                "'ts_ms', 1700000000000L + lsn, 'db', 'shop', 'schema', 'public', 'table', 'orders', "
                "'txId', lsn, 'lsn', lsn)"
            ).alias("source"),
            "op",
            F.expr("1700000000000L + lsn").alias("ts_ms"),
        )
        messages = numbered.select(
            F.to_json(envelope, {"ignoreNullFields": "false"}).alias("value"),
            F.to_json(F.struct("id")).alias("key"),
            F.expr(f"CAST(id % {PARTITIONS} AS INT)").alias("partition"),
            "lsn",
        )
        self._write(topic, messages.coalesce(1).sortWithinPartitions("lsn").drop("lsn"))

    def _write(self, topic: Topic, messages: DataFrame) -> None:
        messages.write.format("kafka").option("kafka.bootstrap.servers", self.broker).option("topic", topic.name).save()

    def _stream(self, topic: Topic, records_per_epoch: int) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self.broker,
            "subscribe": topic.name,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(records_per_epoch),
        }
        return self.spark.readStream.format("kafka").options(**options).load()

    def _native(self, topic: Topic, schema: str) -> list[float]:
        from pyspark.sql.avro.functions import from_avro

        out, checkpoint = self._fresh("out"), self._fresh("checkpoint")
        body = F.expr(f"substring(value, {HEADER.size + 1})")
        rows = self._stream(topic, RECORDS_PER_EPOCH).select(from_avro(body, schema).alias("row")).select("row.*")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(out))
        query.awaitTermination()
        shutil.rmtree(out)
        return _times(query)

    def _native_events(self, topic: Topic) -> list[float]:
        out, checkpoint = self._fresh("out"), self._fresh("checkpoint")

        def write(batch: DataFrame, number: int) -> None:
            batch.write.parquet(str(out / str(number)))

        events = self._stream(topic, EVENTS_PER_EPOCH).select(
            F.from_json(F.col("value").cast("string"), ENVELOPE).alias("e")
        )
        sides = "array(named_struct('row', e.before, 'w', -1), named_struct('row', e.after, 'w', 1))"
        rows = events.selectExpr(f"inline(filter({sides}, s -> s.row IS NOT NULL))")
        grouped = rows.groupBy("row.k").agg(F.expr("sum(w) AS n"), F.expr("sum(w * row.amount) AS s"))
        writer = grouped.writeStream.outputMode("update").foreachBatch(write)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(out)
        return _times(query)

    def _avro_source(self, topic: Topic, records_per_epoch: int) -> str:
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in COLUMNS.items())
        return (
            f"CREATE SOURCE s ({columns}) WITH (connector = 'kafka', format = 'avro', topic = '{topic.name}', "
            f"kafka.bootstrap.servers = '{self.broker}', registry = '{self.registry}', compatibility = 'BACKWARD', "
            f"max_records_per_epoch = {records_per_epoch})"
        )

    def _ours(self, source: str, expected: int) -> list[float]:
        with self._home() as db:
            out = self._fresh("sink")
            db.sql(source)
            db.sql(f"CREATE SINK k FROM s WITH (connector = 'files', format = 'parquet', path = '{out}')")
            times = self._run(db, expected)
            shutil.rmtree(out)
            return times

    def _run(self, db: lm.Database, expected: int) -> list[float]:
        pipeline = db.start("0 seconds")
        try:
            pipeline.process_all_available()
            (found,) = pipeline.status()
            assert (found.rows, found.dead_letters) == (expected, 0), found
            assert all(row["lag"] == 0 for row in db.status().to_pylist() if row["kind"] == "sink")
            return _times(_query(pipeline))
        finally:
            pipeline.stop()

    @contextmanager
    def _home(self) -> Iterator[lm.Database]:
        home = self._fresh("home")
        with lm.connect(str(home), spark=self.spark) as db:
            yield db
        shutil.rmtree(home)

    def _fresh(self, name: str) -> Path:
        self.made += 1
        return self.place / f"{name}-{self.made}"


def order_events(spark: SparkSession, orders: int, keys: int) -> DataFrame:
    """Rows (id, op, before, after, at): orders that are inserted, half of them updated, a fifth deleted."""
    order = spark.range(orders).selectExpr(
        "id",
        f"id / {orders} AS t0",
        f"id / {orders} + (1 + abs(xxhash64(id, 9)) % 1000) / 10000D AS t1",
        f"named_struct('id', id, 'k', abs(xxhash64(id, 2)) % {keys}, 'amount', abs(xxhash64(id, 5)) % 1000) AS first",
        f"named_struct('id', id, 'k', IF(abs(xxhash64(id, 3)) % 10 = 0, abs(xxhash64(id, 4)) % {keys}, "
        f"abs(xxhash64(id, 2)) % {keys}), 'amount', abs(xxhash64(id, 6)) % 1000) AS second",
        "abs(xxhash64(id, 1)) % 10 < 5 AS changes",
        "abs(xxhash64(id, 8)) % 5 = 0 AS goes",
    )
    steps = (
        ("c", "NULL", "first", "t0", "TRUE"),
        ("u", "first", "second", "t1", "changes"),
        ("d", "IF(changes, second, first)", "NULL", "t1 + 0.1D", "goes"),
    )
    made = ", ".join(
        f"named_struct('id', id, 'op', '{op}', 'before', CAST({before} AS {ORDER}), 'after', CAST({after} AS {ORDER}), "
        f"'at', {at}, 'is_there', {is_there})"
        for op, before, after, at, is_there in steps
    )
    return order.selectExpr(f"inline(filter(array({made}), e -> e.is_there))").drop("is_there")
