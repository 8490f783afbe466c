"""Spark's own Kafka stream, opened without a query: offsets of topics, and the records of exact ranges as an RDD.

So security, topic patterns and starting offsets behave as in Spark's connector, and the consumer of a partition and the
records that it has prefetched survive from epoch to epoch. Offsets are in the JSON form of Spark's connector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.catalyst.jvm import SESSIONS, TO_SEQUENCES, gateway, java_class, scala_object
from laminae.spark.catalyst.spark_errors import java_causes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

PACKAGE = "org.apache.spark.sql.kafka010"
READ_LIMIT = "org.apache.spark.sql.connector.read.streaming.ReadLimit"


class KafkaStream:
    """A stream of Spark's Kafka connector with these options. It belongs to the JVM that it was opened in."""

    __slots__ = ("_gateway", "_schema", "_stream")

    def __init__(self, options: Mapping[str, str], metadata_path: str) -> None:
        """Open no connection yet. The stream stores its initial offsets in `metadata_path` when they are requested."""
        self._gateway = gateway()
        jvm = self._gateway.jvm
        active = SparkSession.getActiveSession()
        if active is not None:
            # The stream stores its initial offsets through the active session of its thread; a py4j thread has none.
            java_class(jvm, SESSIONS).setActiveSession(active._jsparkSession)
        # Created without the lookup of the connector by name.
        settings = java_class(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap")(dict(options))
        scan = java_class(jvm, f"{PACKAGE}.KafkaSourceProvider")().getTable(settings).newScanBuilder(settings).build()
        self._schema, self._stream = scan.readSchema(), scan.toMicroBatchStream(metadata_path)

    @property
    def is_usable(self) -> bool:
        """Whether the JVM in which the stream was opened is the one that runs now."""
        return self._gateway is gateway()

    def initial_offsets(self) -> str:
        return str(self._stream.initialOffset().json())

    def latest_offsets(self, start: str) -> str:
        limit = java_class(self._gateway.jvm, READ_LIMIT).allAvailable()
        return str(self._stream.latestOffset(self._stream.deserializeOffset(start), limit).json())

    def earliest_offsets(self) -> str:
        earliest = self._stream.kafkaOffsetReader().fetchEarliestOffsets()
        return str(scala_object(self._gateway.jvm, f"{PACKAGE}.JsonUtils").partitionOffsets(earliest))

    def plan(self, start: str, end: str) -> KafkaPartitions:
        """The records between two offsets, each partition of which has some, as tasks will read them."""
        begin, stop = self._stream.deserializeOffset(start), self._stream.deserializeOffset(end)
        partitions, factory = self._stream.planInputPartitions(begin, stop), self._stream.createReaderFactory()
        return KafkaPartitions(self._schema, partitions, factory)

    def stop(self) -> None:
        self._stream.stop()


class KafkaPartitions:
    """The input partitions of a range of offsets."""

    __slots__ = ("_factory", "_partitions", "_schema")

    def __init__(self, schema: Any, partitions: Any, factory: Any) -> None:
        self._schema, self._partitions, self._factory = schema, partitions, factory

    def rows(self, spark: SparkSession) -> object:
        """The RDD of Spark's internal rows."""
        jvm: Any = spark.sparkContext._jvm
        option, sequences = java_class(jvm, "scala.Option"), java_class(jvm, TO_SEQUENCES)
        partitions = sequences.toSeq([option.apply(partition) for partition in self._partitions])
        no_metrics = sequences.toScalaMap(java_class(jvm, "java.util.HashMap")())
        rdd = java_class(jvm, "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD")
        return rdd(spark._jsparkSession.sparkContext(), partitions, self._factory, False, no_metrics)

    def frame(self, spark: SparkSession) -> DataFrame:
        java = spark._jsparkSession.internalCreateDataFrame(self.rows(spark), self._schema, False)
        return ClassicDataFrame(java, spark)


def kafka_error(problem: Exception) -> str | None:
    """The message of the Kafka client's exception in the chain of causes; None if Kafka's client raised none."""
    for cause in java_causes(problem):
        # Stopping a stream interrupts a request in progress, whose result is no longer needed.
        if cause.class_name.startswith("org.apache.kafka.") or cause.class_name == "java.lang.InterruptedException":
            return f"{cause.class_name.rpartition('.')[2]}: {cause.message}"
    return None
