"""Column expressions that are parsed once and used in the plans of many epochs.

A Column made by `expr` is parsed again at every use, and each call of `functions` looks through the stack for its
caller (3 ms): together more than an epoch of a thousand rows takes to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.java import EXPRESSIONS, TO_SEQUENCES, java_class, scala_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from laminae.spark.expression import Expression


class Columns:
    """A list of columns, handed to the JVM as one value. Holds for every session of the same driver."""

    __slots__ = ("_list", "_parser", "_sequences", "_utils")

    def __init__(self, spark: SparkSession) -> None:
        # Catalyst is Java objects without types on this side; nothing of them leaves this module.
        jvm: Any = spark.sparkContext._jvm
        self._utils, self._sequences = java_class(jvm, EXPRESSIONS), java_class(jvm, TO_SEQUENCES)
        self._parser: Any = spark._jsparkSession.sessionState().sqlParser()
        self._list = java_class(jvm, "java.util.ArrayList")()

    def add(self, value: Expression, name: str | None = None) -> Self:
        made = self._utils.column(self._parser.parseExpression(value.sql))
        self._list.add(made if name is None else made.alias(name))
        return self

    def add_all(self, named: Mapping[str, Column]) -> Self:
        for name, made in named.items():
            self._list.add(made.alias(name)._jc)
        return self

    @property
    def java(self) -> object:
        return self._sequences.toSeq(self._list)


def nested(spark: SparkSession, leaf: DataFrame, selects: Iterable[str]) -> DataFrame:
    """Each SELECT, which names no relation, over the one before, and the first over `leaf`: analysed together, once."""
    java: Any = leaf._jdf
    session: Any = spark._jsparkSession
    jvm: Any = spark.sparkContext._jvm
    parser, plan = session.sessionState().sqlParser(), java.queryExecution().analyzed()
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
