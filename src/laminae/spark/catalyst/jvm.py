"""The JVM of the driver: its classes by their fully qualified names, its process, what is on its class path.

py4j resolves `jvm.org.apache.spark.X` part by part, and the JVM searches every jar for the classes `org`, `org.apache`
and so on, which do not exist: 2 ms per name in every epoch that is planned from scratch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started

from laminae.spark.catalyst.spark_errors import SPARK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

TO_SEQUENCES = "org.apache.spark.api.python.PythonUtils"
PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser"
SQL_PARSER = "org.apache.spark.sql.execution.SparkSqlParser"
EXPRESSIONS = "org.apache.spark.sql.classic.ExpressionUtils"
SESSIONS = "org.apache.spark.sql.classic.SparkSession"


def java_class(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


def scala_object(jvm: Any, name: str) -> Any:
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def scala_items(sequence: Any) -> Iterator[Any]:
    """The items of any Scala collection."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def gateway() -> Any:
    """The py4j gateway to the JVM, None before Spark was started; a restarted JVM has another one."""
    return SparkContext._gateway


def callback_gateway(spark: SparkSession) -> Any:
    """The gateway, ready for calls from the JVM into Python objects."""
    connected = spark.sparkContext._gateway
    ensure_callback_server_started(connected)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    return connected


def jvm_pid(spark: SparkSession) -> int | None:
    """The process id of the driver's JVM; None under Spark Connect, where there is no local JVM."""
    jvm = getattr(spark, "_jvm", None)
    return None if jvm is None else int(java_class(jvm, "java.lang.ProcessHandle").current().pid())


def has_data_source(spark: SparkSession, name: str, classes: Sequence[str]) -> bool:
    """Whether Spark finds the data source by its short name, and can load these classes."""
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        # Under Spark Connect the class path is the server's; the server reports a missing connector when it reads.
        return True
    look_up = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSource").lookupDataSource
    try:
        look_up(name, spark._jsparkSession.sessionState().conf())
    except SPARK_ERRORS:
        # Not found, or found without a library that it needs: unusable in both cases.
        return False
    return all(java_class(jvm, "org.apache.spark.util.Utils").classIsLoadable(required) for required in classes)
