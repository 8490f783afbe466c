"""Frames of rows that are planned already, and functions of Python's upon them whose plan is made once.

To analyse and plan a `mapInArrow` and to collect what it says takes 35 ms of an epoch, as long as a small one takes to
run. Nothing of Spark's plan nodes leaves this module, `template` and `compiled`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.udf import _wrap_function
from pyspark.util import PythonEvalType

from laminae.spark.java import java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Function = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


LOG = logging.getLogger(__name__)
INTERNAL_ROW = "org.apache.spark.sql.catalyst.InternalRow"


class PlannedFrame(ClassicDataFrame):
    """Rows that are an RDD of Spark's. Whoever is given it may use the RDD or the frame, and that once."""

    planned: Any
    maps: MappedNodes

    @classmethod
    def of(cls, spark: SparkSession, rows: Any, schema: Any, maps: MappedNodes) -> PlannedFrame:
        """`schema` is Spark's own; `maps` are those upon all frames of this plan."""
        made = cls(spark._jsparkSession.internalCreateDataFrame(rows, schema, False), spark)
        made.planned, made.maps = rows, maps
        return made

    def integers(self) -> list[int]:
        """The values of its one column, which is of INT, that are not NULL, by a job of its own.

        To be called in a batch of a stream: elsewhere tasks have none of the session's settings.
        """
        rows = self._jdf.queryExecution().sparkPlan().executeCollect()
        return [row.getInt(0) for row in rows if not row.isNullAt(0)]

    def without_rows(self) -> PlannedFrame:
        """One like it that holds on to nothing, for plans that are kept."""
        spark: Any = self.sparkSession
        return PlannedFrame.of(spark, no_row_at_all(spark), self._jdf.schema(), self.maps)


class MappedFrame(PlannedFrame):
    """What a function makes of such rows."""

    node: Any
    declared: StructType

    @property
    def schema(self) -> StructType:
        """As the function declares it: it need not be asked of the JVM."""
        return self.declared

    def texts(self, name: str) -> list[str]:
        """The values of a column of texts that are not NULL, by a job of its own.

        To be called in a batch of a stream: elsewhere tasks have none of the session's settings.
        """
        place = self.columns.index(name)
        rows = self.node.executeCollect()
        return [row.getUTF8String(place).toString() for row in rows if not row.isNullAt(place)]


class MappedNodes:
    """The functions upon frames of one plan, by the schema of what they give: their names change, their kinds do not.

    Frames of other plans are no worse than these and cost more.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, _Node] = {}

    def upon(self, frame: PlannedFrame, function: Function, schema: StructType) -> MappedFrame:
        key = schema.json()
        if key not in self._kept:
            self._kept[key] = _Node(frame, function, schema)
        return self._kept[key].upon(frame, function)


class _Node:
    """Spark's node of one `mapInArrow`, and that of the rows below it."""

    __slots__ = ("_child", "_function", "_maps", "_node", "_schema", "_sessions", "_type")

    def __init__(self, frame: PlannedFrame, function: Function, schema: StructType) -> None:
        made: Any = frame.without_rows().mapInArrow(function, schema)._jdf
        self._node = made.queryExecution().sparkPlan()
        self._schema, self._type = made.schema(), schema
        self._function, self._child = self._node.func(), self._node.child()
        # Of the frames that it makes, which are of one plan as well.
        self._maps = MappedNodes()
        jvm: Any = frame.sparkSession.sparkContext._jvm
        self._sessions = scala_object(jvm, "org.apache.spark.sql.classic.SparkSession")

    def upon(self, frame: PlannedFrame, function: Function) -> MappedFrame:
        spark = frame.sparkSession
        self._sessions.setActiveSession(spark._jsparkSession)
        node = self._node.copy(
            self._told(spark, function), self._node.output(), self._over(frame.planned), False, self._node.profile()
        )
        made = MappedFrame.of(spark, node.execute(), self._schema, self._maps)
        assert isinstance(made, MappedFrame)  # it is of this class
        made.node, made.declared = node, self._type
        return made

    def _told(self, spark: SparkSession, function: Function) -> Any:
        """The expression that calls this function instead."""
        make: Any = pandas_udf  # no type of it is that of a function upon batches, which `mapInArrow` gives it too
        udf = make(function, self._type, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        wrapped = _wrap_function(spark.sparkContext, udf.func, udf.returnType)
        old = self._function
        kind = (old.dataType(), old.children(), old.evalType(), old.udfDeterministic(), old.resultId())
        return old.copy(old.name(), wrapped, *kind)

    def _over(self, rows: Any) -> Any:
        """The node of other rows."""
        old = self._child
        rest = (getattr(old, f"copy$default${place}")() for place in range(3, 7))
        return old.copy(old.output(), rows, *rest)


def mapped(frame: DataFrame, function: Function, schema: StructType) -> DataFrame:
    """`frame.mapInArrow(function, schema)`, by a node that is kept where the frame is planned already."""
    if isinstance(frame, PlannedFrame):
        try:
            return frame.maps.upon(frame, function, schema)
        except Py4JError as problem:
            LOG.info("Spark's node of a function is made anew for each epoch: %s", problem)
    return frame.mapInArrow(function, schema)


def no_row_at_all(spark: SparkSession) -> Any:
    """An RDD of Spark's own rows that has none."""
    jvm: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext._jsc
    tags = scala_object(jvm, "scala.reflect.ClassTag")
    return context.sc().emptyRDD(tags.apply(java_class(jvm, "java.lang.Class").forName(INTERNAL_ROW)))
