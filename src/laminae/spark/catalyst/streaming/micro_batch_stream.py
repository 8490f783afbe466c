"""A streaming DataFrame that only supplies offsets: a Spark `MicroBatchStream` implemented in Python.

`{"item": n}` comes after items 0 to n - 1. It never produces rows. Spark calls these objects in the driver through
py4j, as it calls a `foreachBatch` function. A Python data source would run them in separate processes: starting two or
three interpreters for each query takes 2 s of a bounded run that has nothing to do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import LongType, StructField, StructType

from laminae.spark.catalyst.jvm import callback_gateway, java_class, scala_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "laminae_log"
SCHEMA = StructType([StructField("item", LongType())])
SQL = "org.apache.spark.sql"
CONNECTOR = f"{SQL}.connector"


class StreamOffsets(Protocol):
    """Where the micro-batches of a stream end, as numbers of items."""

    def fix_target(self) -> None:
        """Fix where an available-now run ends."""

    def latest(self, seen: int) -> int:
        """The end of the next micro-batch, `seen` being the end of the one before."""


def offset_text(item: int) -> str:
    """The only serialization of an offset: Spark and the catalog compare offsets as text."""
    return json.dumps({"item": item})


def offset_stream(spark: SparkSession, offsets: StreamOffsets) -> DataFrame:
    """A streaming DataFrame without rows whose micro-batches end at these offsets."""
    gateway = callback_gateway(spark)
    java = _Java.of(gateway, spark._jsparkSession.parseDataType(SCHEMA.json()))
    return ClassicDataFrame(java.frame(spark, _Table(java, offsets)), spark)


@dataclass(frozen=True, slots=True)
class _Java:
    """The JVM objects that these calls use. Those that every epoch needs are looked up once.

    Each part of a dotted name is a call into the JVM: name lookups took 40 ms of an epoch.
    """

    gateway: Any
    schema: Any
    serialized_offset: Any
    by_row: Any
    no_partitions: Any
    no_metrics: Any
    no_values: Any

    @classmethod
    def of(cls, gateway: Any, schema: Any) -> _Java:
        jvm = gateway.jvm
        return cls(
            gateway=gateway,
            schema=schema,
            serialized_offset=java_class(jvm, f"{SQL}.execution.streaming.runtime.SerializedOffset"),
            by_row=_named(jvm, "read.Scan$ColumnarSupportMode").UNSUPPORTED,
            no_partitions=gateway.new_array(_named(jvm, "read.InputPartition"), 0),
            no_metrics=gateway.new_array(_named(jvm, "metric.CustomMetric"), 0),
            no_values=gateway.new_array(_named(jvm, "metric.CustomTaskMetric"), 0),
        )

    def offset(self, item: int) -> Any:
        return self.serialized_offset(offset_text(item))

    def named(self, name: str) -> Any:
        """A class of Spark's connector API."""
        return _named(self.gateway.jvm, name)

    def none_of(self, name: str) -> Any:
        """An empty array of such a class."""
        return self.gateway.new_array(self.named(name), 0)

    def frame(self, spark: SparkSession, table: _Table) -> Any:
        jvm = self.gateway.jvm
        none = scala_object(jvm, "scala.None")
        relation = java_class(jvm, f"{SQL}.catalyst.streaming.StreamingRelationV2")
        options = java_class(jvm, f"{SQL}.util.CaseInsensitiveStringMap")(java_class(jvm, "java.util.HashMap")())
        attributes = scala_object(jvm, f"{SQL}.catalyst.types.DataTypeUtils").toAttributes(self.schema)
        unnamed = getattr(relation, "$lessinit$greater$default$9")()
        plan = relation(none, NAME, table, options, attributes, none, none, none, unnamed)
        dataset = scala_object(jvm, f"{SQL}.classic.Dataset")
        return dataset.ofRows(spark._jsparkSession, plan)


def _named(jvm: Any, name: str) -> Any:
    return java_class(jvm, f"{CONNECTOR}.{name}")


class _Proxy:
    """The methods that the JVM calls on any object."""

    def hashCode(self) -> int:  # noqa: N802  # Java's name, as the names of Spark's interfaces below
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        return other is self

    def toString(self) -> str:  # noqa: N802
        return NAME


class _Table(_Proxy):
    """The table that the stream's plan reads. It and the classes below implement Spark's connector interfaces."""

    def __init__(self, java: _Java, offsets: StreamOffsets) -> None:
        self._java = java
        self._offsets = offsets

    def name(self) -> str:
        return NAME

    def id(self) -> None:
        return None

    def version(self) -> None:
        return None

    def schema(self) -> Any:
        return self._java.schema

    def columns(self) -> Any:
        return self._java.named("catalog.CatalogV2Util").structTypeToV2Columns(self._java.schema)

    def partitioning(self) -> Any:
        return self._java.none_of("expressions.Transform")

    def constraints(self) -> Any:
        return self._java.none_of("catalog.constraints.Constraint")

    def properties(self) -> Any:
        return java_class(self._java.gateway.jvm, "java.util.HashMap")()

    def capabilities(self) -> Any:
        return java_class(self._java.gateway.jvm, "java.util.Set").of(
            self._java.named("catalog.TableCapability").MICRO_BATCH_READ
        )

    def newScanBuilder(self, options: Any) -> _Scan:  # noqa: N802
        return _Scan(self._java, self._offsets)

    class Java:
        implements = (f"{CONNECTOR}.catalog.SupportsRead",)


class _Scan(_Proxy):
    def __init__(self, java: _Java, offsets: StreamOffsets) -> None:
        self._java = java
        self._offsets = offsets

    def build(self) -> _Scan:
        return self

    def readSchema(self) -> Any:  # noqa: N802
        return self._java.schema

    def description(self) -> str:
        return NAME

    def columnarSupportMode(self) -> Any:  # noqa: N802
        return self._java.by_row

    def supportedCustomMetrics(self) -> Any:  # noqa: N802
        return self._java.no_metrics

    def reportDriverMetrics(self) -> Any:  # noqa: N802
        return self._java.no_values

    def toMicroBatchStream(self, checkpoint: str) -> _Stream:  # noqa: N802
        return _Stream(self._java, self._offsets)

    class Java:
        implements = (f"{CONNECTOR}.read.ScanBuilder", f"{CONNECTOR}.read.Scan")


class _Stream(_Proxy):
    def __init__(self, java: _Java, offsets: StreamOffsets) -> None:
        self._java = java
        self._offsets = offsets

    def initialOffset(self) -> Any:  # noqa: N802
        return self._java.offset(0)

    def deserializeOffset(self, text: str) -> Any:  # noqa: N802
        return self._java.offset(json.loads(text)["item"])

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return self._java.named("read.streaming.ReadLimit").allAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._offsets.fix_target()

    def latestOffset(self, start: Any, limit: Any) -> Any:  # noqa: N802
        return self._java.offset(self._offsets.latest(json.loads(start.json())["item"]))

    def reportLatestOffset(self) -> None:  # noqa: N802
        return None

    def planInputPartitions(self, start: Any, end: Any) -> Any:  # noqa: N802
        return self._java.no_partitions

    def createReaderFactory(self) -> None:  # noqa: N802
        return None

    def commit(self, end: Any) -> None:
        pass

    def stop(self) -> None:
        pass

    class Java:
        implements = (
            f"{CONNECTOR}.read.streaming.MicroBatchStream",
            f"{CONNECTOR}.read.streaming.SupportsTriggerAvailableNow",
        )
