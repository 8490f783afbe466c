"""A log as a Spark stream: offsets alone, `{"item": n}` with items 0 to n - 1 before it. Its rows are never read.

Spark calls these objects through py4j, in the driver, as it calls a `foreachBatch`. A Python data source would run them
in processes of its own: two or three interpreters to start for each query, 2 s of a bounded run that has nothing to do.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import LongType, StructField, StructType

from laminae.errors import LaminaeError, SourceUnavailable
from laminae.spark.java import java_class, scala_object
from laminae.spark.logs.head import offset_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.contract import OnProblem
    from laminae.spark.logs.tails import Tail

NAME = "laminae_log"
SCHEMA = StructType([StructField("item", LongType())])
SQL = "org.apache.spark.sql"
CONNECTOR = f"{SQL}.connector"


def log_stream(spark: SparkSession, offsets: LogOffsets, on_problem: OnProblem | None = None) -> DataFrame:
    """A stream of epochs that end where these offsets say."""
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    java = _Java.of(gateway, spark._jsparkSession.parseDataType(SCHEMA.json()))
    return ClassicDataFrame(java.frame(spark, _Table(java, ToldOffsets(offsets, on_problem))), spark)


class LogOffsets:
    """How far each epoch goes: where the log ends, or `limit` items further than the epoch before."""

    def __init__(self, tail: Tail, limit: int | None) -> None:
        self._tail = tail
        self._limit = limit
        self._target: int | None = None

    def fix_target(self) -> None:
        """Fails when the source cannot be read: a run over what is there must not pass for a complete one."""
        self._target = self._tail.items(0)

    def latest(self, seen: int) -> int:
        items = self._items_or_wait(seen) if self._target is None else self._items_up_to(self._target, seen)
        return items if self._limit is None else min(items, seen + self._limit)

    def _items_up_to(self, target: int, seen: int) -> int:
        return target if target >= seen else self._tail.items(seen)

    def _items_or_wait(self, seen: int) -> int:
        try:
            return self._tail.items(seen)
        except SourceUnavailable:
            # An error would end the query. It waits, and the driver's own look at the log shows the reason.
            return seen


@dataclass(frozen=True, slots=True)
class ToldOffsets:
    """The same, and `on_problem` is told what ends the stream: Spark knows it as a traceback alone."""

    offsets: LogOffsets
    on_problem: OnProblem | None

    def fix_target(self) -> None:
        with self._telling():
            self.offsets.fix_target()

    def latest(self, seen: int) -> int:
        with self._telling():
            return self.offsets.latest(seen)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except LaminaeError as problem:
            if self.on_problem is not None:
                self.on_problem(problem)
            raise


@dataclass(frozen=True, slots=True)
class _Java:
    """What Spark's side of the calls is made of. What every epoch asks for is looked up once.

    Each part of a dotted name is a call into the JVM: 40 ms of an epoch were spent on names.
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
        """A class of Spark's connector interface."""
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
    """What the JVM asks of any object."""

    def hashCode(self) -> int:  # noqa: N802  # Java's name, as the names of Spark's interfaces below
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        return other is self

    def toString(self) -> str:  # noqa: N802
        return NAME


class _Table(_Proxy):
    """The table that the plan of the stream reads. Its methods, as those below, are those of Spark's interfaces."""

    def __init__(self, java: _Java, offsets: ToldOffsets) -> None:
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
    def __init__(self, java: _Java, offsets: ToldOffsets) -> None:
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
    def __init__(self, java: _Java, offsets: ToldOffsets) -> None:
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
