"""Column expressions that are parsed once and used in the plans of many epochs.

A Column made by `expr` is parsed again at every use, and each call of `functions` searches the stack for its caller
(3 ms): together this takes longer than running an epoch of a thousand rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.catalyst.jvm import EXPRESSIONS, PARSER, TO_SEQUENCES, java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.spark.catalyst.expression import Expression


class Columns:
    """A list of columns that is passed to the JVM as one value. It is valid in every session of the same driver."""

    __slots__ = ("_list", "_parser", "_sequences", "_utils")

    def __init__(self, spark: SparkSession) -> None:
        # Catalyst objects have no Python types; they must not leave this module.
        jvm: Any = spark.sparkContext._jvm
        self._utils, self._sequences = java_class(jvm, EXPRESSIONS), java_class(jvm, TO_SEQUENCES)
        # Not the session's parser, which substitutes variables in the text.
        self._parser: Any = scala_object(jvm, PARSER)
        self._list = java_class(jvm, "java.util.ArrayList")()

    def add(self, value: Expression, name: str | None = None) -> Self:
        column = self._utils.column(self._parser.parseExpression(value.sql))
        self._list.add(column if name is None else column.alias(name))
        return self

    def add_all(self, named: Mapping[str, Column]) -> Self:
        for name, column in named.items():
            self._list.add(column.alias(name)._jc)
        return self

    @property
    def java(self) -> object:
        return self._sequences.toSeq(self._list)


def nested(spark: SparkSession, leaf: DataFrame, selects: Iterable[str]) -> DataFrame:
    """Stack SELECTs without a FROM clause: the first reads `leaf`, each other the one before. Analysed once."""
    java: Any = leaf._jdf
    session: Any = spark._jsparkSession
    jvm: Any = spark.sparkContext._jvm
    parser, plan = scala_object(jvm, PARSER), java.queryExecution().analyzed()
    sequences = java_class(jvm, TO_SEQUENCES)
    for text in selects:
        read = parser.parsePlan(text)
        steps = [read]
        while steps[-1].children().size() and steps[-1].children().head().children().size():
            steps.append(steps[-1].children().head())
        for step in reversed(steps):
            plan = step.withNewChildren(sequences.toSeq([plan]))
    frames = scala_object(jvm, "org.apache.spark.sql.classic.Dataset")
    return ClassicDataFrame(frames.ofRows(session, plan), spark)


def select(frame: DataFrame, columns: Columns) -> DataFrame:
    jvm_frame: Any = frame._jdf
    return ClassicDataFrame(jvm_frame.select(columns.java), frame.sparkSession)
