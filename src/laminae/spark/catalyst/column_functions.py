"""Columns of Catalyst expressions that have no SQL function, or whose SQL function costs more.

Catalyst's nodes have no Python types; they do not leave this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.classic.column import Column as ClassicColumn

from laminae.spark.catalyst.jvm import EXPRESSIONS, TO_SEQUENCES, java_class, scala_object

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Column, SparkSession

NODES = "org.apache.spark.sql.catalyst.expressions"


class JavaText:
    """Text search with Java's String methods: two tests that Spark has as functions too, at a tenth of their cost.

    Spark searches a UTF8String byte by byte; the JVM vectorises `String.indexOf`. For a record of 222 bytes, counting
    `":` with `substring_index` took 21% of the time of `from_json` and takes 7% this way; searching for six substrings
    takes 8%.
    """

    __slots__ = (
        "_boolean",
        "_expressions",
        "_integer",
        "_invoke",
        "_none",
        "_sequences",
        "_static",
        "_string",
        "_utils",
    )

    def __init__(self, context: SparkContext) -> None:
        jvm: Any = context._jvm
        self._static = java_class(jvm, f"{NODES}.objects.StaticInvoke")
        self._invoke = java_class(jvm, f"{NODES}.objects.Invoke")
        self._expressions = java_class(jvm, EXPRESSIONS)
        self._sequences = java_class(jvm, TO_SEQUENCES)
        of_name = java_class(jvm, "java.lang.Class").forName
        types = java_class(jvm, "org.apache.spark.sql.types.DataType")
        self._string = java_class(jvm, "org.apache.spark.sql.types.ObjectType")(of_name("java.lang.String"))
        self._utils = of_name("org.apache.commons.lang3.StringUtils")
        self._integer, self._boolean = types.fromDDL("INT"), types.fromDDL("BOOLEAN")
        self._none = scala_object(jvm, "scala.None")

    def count(self, text: Column, part: str) -> Column:
        """How often `part` occurs in the text."""
        arguments = self._sequence(self._java(text), self._java(F.lit(part)))
        empty = self._sequence()
        return self._column(
            self._static(self._utils, self._integer, "countMatches", arguments, empty, True, True, True, self._none)
        )

    def holds(self, text: Column, part: str) -> Column:
        """Whether `part` occurs in the text."""
        arguments = self._sequence(self._java(F.lit(part)))
        empty = self._sequence()
        return self._column(
            self._invoke(self._java(text), "contains", self._boolean, arguments, empty, True, True, True)
        )

    def _java(self, text: Column) -> object:
        expression = self._expressions.expression(text._jc)
        empty = self._sequence()
        return self._invoke(expression, "toString", self._string, empty, empty, True, True, True)

    def _column(self, node: object) -> Column:
        return ClassicColumn(self._expressions.column(node))

    def _sequence(self, *items: object) -> object:
        return self._sequences.toSeq(list(items))


def try_eval(spark: SparkSession, sql: str) -> Column:
    """The expression, or NULL where it raises. SQL has this for a few functions (try_*), Catalyst's TryEval for all."""
    jvm: Any = spark.sparkContext._jvm
    utils = java_class(jvm, EXPRESSIONS)
    node = java_class(jvm, f"{NODES}.TryEval")(utils.expression(F.expr(sql)._jc))
    return ClassicColumn(utils.column(node))


def double_bits(spark: SparkSession, sql: str) -> Column:
    """The bits of a DOUBLE as a BIGINT, by Java's `doubleToRawLongBits`: Spark SQL has no function for it."""
    jvm: Any = spark.sparkContext._jvm
    utils = java_class(jvm, EXPRESSIONS)
    to_sequence = java_class(jvm, TO_SEQUENCES).toSeq
    empty, value = to_sequence([]), to_sequence([utils.expression(F.expr(sql)._jc)])
    none = scala_object(jvm, "scala.None")
    kind = java_class(jvm, "org.apache.spark.sql.types.DataType").fromDDL("BIGINT")
    owner = java_class(jvm, "java.lang.Class").forName("java.lang.Double")
    node = java_class(jvm, f"{NODES}.objects.StaticInvoke")(
        owner, kind, "doubleToRawLongBits", value, empty, True, True, True, none
    )
    return ClassicColumn(utils.column(node))
