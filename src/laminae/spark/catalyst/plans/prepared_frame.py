"""DataFrames whose rows are already planned as an RDD, and `mapInArrow` over them with a plan that is made once.

Analysing and planning a `mapInArrow` and collecting its result takes 35 ms of an epoch, as long as a small epoch takes
to run. Spark's plan nodes must not leave this module, `plan_template` and `compiled_stages`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.udf import _wrap_function
from pyspark.util import PythonEvalType

from laminae.schema.identifiers import quoted
from laminae.spark.catalyst.jvm import java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Function = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    Mapping = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


LOG = logging.getLogger(__name__)
INTERNAL_ROW = "org.apache.spark.sql.catalyst.InternalRow"


class PreparedFrame(ClassicDataFrame):
    """A DataFrame over an RDD of Spark's internal rows. Use either the RDD or the frame, and only once."""

    planned: Any
    maps: MappedNodes

    @classmethod
    def of(cls, spark: SparkSession, rows: Any, schema: Any, maps: MappedNodes) -> PreparedFrame:
        """`schema` is a JVM StructType; `maps` caches the `mapInArrow` nodes over all frames of this plan."""
        frame = cls(spark._jsparkSession.internalCreateDataFrame(rows, schema, False), spark)
        frame.planned, frame.maps = rows, maps
        return frame

    def integers(self) -> list[int]:
        """Collect the non-NULL values of its single INT column in a separate job.

        Call it only inside a streaming micro-batch: elsewhere tasks do not get the session's settings.
        """
        rows = self._jdf.queryExecution().sparkPlan().executeCollect()
        return [row.getInt(0) for row in rows if not row.isNullAt(0)]

    def without_rows(self) -> PreparedFrame:
        """A frame of the same schema without rows, for cached plans: it retains no data."""
        spark: Any = self.sparkSession
        return PreparedFrame.of(spark, _empty_rdd(spark), self._jdf.schema(), self.maps)


class MappedFrame(PreparedFrame):
    """The output of a Python function over a `PreparedFrame`."""

    node: Any
    declared: StructType

    @property
    def schema(self) -> StructType:
        """The schema that the function declares, which saves a call into the JVM."""
        return self.declared

    def texts(self, name: str) -> list[str]:
        """Collect the non-NULL values of a STRING column in a separate job.

        Call it only inside a streaming micro-batch: elsewhere tasks do not get the session's settings.
        """
        place = self.columns.index(name)
        rows = self.node.executeCollect()
        return [row.getUTF8String(place).toString() for row in rows if not row.isNullAt(place)]


class MappedNodes:
    """The `mapInArrow` nodes over the frames of one plan, by output schema.

    The function differs from epoch to epoch, its output schema does not. Frames of other plans work too, without this
    cache, and cost more.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, _Node] = {}

    def upon(self, frame: PreparedFrame, function: Function, schema: StructType) -> MappedFrame:
        key = schema.json()
        if key not in self._kept:
            self._kept[key] = _Node(frame, function, schema)
        return self._kept[key].upon(frame, function)


class _Node:
    """Spark's plan node of one `mapInArrow`, and the node of its input rows."""

    __slots__ = ("_child", "_function", "_maps", "_node", "_schema", "_sessions", "_type")

    def __init__(self, frame: PreparedFrame, function: Function, schema: StructType) -> None:
        java_frame: Any = map_in_arrow(frame.without_rows(), function, schema)._jdf
        self._node = java_frame.queryExecution().sparkPlan()
        self._schema, self._type = java_frame.schema(), schema
        self._function, self._child = self._node.func(), self._node.child()
        # For the frames that this node returns, which also share one plan.
        self._maps = MappedNodes()
        jvm: Any = frame.sparkSession.sparkContext._jvm
        self._sessions = scala_object(jvm, "org.apache.spark.sql.classic.SparkSession")

    def upon(self, frame: PreparedFrame, function: Function) -> MappedFrame:
        spark = frame.sparkSession
        self._sessions.setActiveSession(spark._jsparkSession)
        node = self._node.copy(
            self._told(spark, function), self._node.output(), self._over(frame.planned), False, self._node.profile()
        )
        mapped_frame = MappedFrame.of(spark, node.execute(), self._schema, self._maps)
        assert isinstance(mapped_frame, MappedFrame)  # `of` is a class method
        mapped_frame.node, mapped_frame.declared = node, self._type
        return mapped_frame

    def _told(self, spark: SparkSession, function: Function) -> Any:
        """The node's UDF expression with this function in place of the old one."""
        make: Any = pandas_udf  # its stubs have no overload for a function over batches, as `mapInArrow` passes it
        udf = make(function, self._type, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        wrapped = _wrap_function(spark.sparkContext, udf.func, udf.returnType)
        old = self._function
        kind = (old.dataType(), old.children(), old.evalType(), old.udfDeterministic(), old.resultId())
        return old.copy(old.name(), wrapped, *kind)

    def _over(self, rows: Any) -> Any:
        """The input node with another RDD."""
        old = self._child
        rest = (getattr(old, f"copy$default${place}")() for place in range(3, 7))
        return old.copy(old.output(), rows, *rest)


def mapped(frame: DataFrame, function: Function, schema: StructType) -> DataFrame:
    """`frame.mapInArrow(function, schema)`, with a cached plan node if the frame is a `PreparedFrame`."""
    if isinstance(frame, PreparedFrame):
        try:
            return frame.maps.upon(frame, function, schema)
        except Py4JError as problem:
            LOG.info("the plan node of a function is built again in each epoch: %s", problem)
    return map_in_arrow(frame, function, schema)


def map_in_arrow(frame: DataFrame, function: Mapping, schema: StructType) -> DataFrame:
    """`frame.mapInArrow(function, schema)` for columns of any name: PySpark's own does not quote them."""
    make: Any = pandas_udf  # its stubs have no overload for a function over batches
    udf = make(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns: Any = udf(*(F.col(quoted(name)) for name in frame.columns))
    return ClassicDataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)


def no_rows(spark: SparkSession, schema: str | StructType) -> DataFrame:
    """An empty frame that Spark plans like one with rows: the leaf of a template."""
    # Spark would recognise an empty list as an empty relation and optimise away the plan above it. An RDD created from
    # Python takes 25 ms.
    jvm: Any = spark.sparkContext._jvm
    types = java_class(jvm, "org.apache.spark.sql.types.StructType")
    session: Any = spark._jsparkSession
    kind = types.fromDDL(schema) if isinstance(schema, str) else session.parseDataType(schema.json())
    return ClassicDataFrame(session.internalCreateDataFrame(_empty_rdd(spark), kind, False), spark)


def _empty_rdd(spark: SparkSession) -> Any:
    """An empty RDD of Spark's InternalRow."""
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    tags = scala_object(jvm, "scala.reflect.ClassTag")
    return context.sc().emptyRDD(tags.apply(java_class(jvm, "java.lang.Class").forName(INTERNAL_ROW)))
