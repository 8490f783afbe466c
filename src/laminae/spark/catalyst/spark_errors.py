"""The errors of a call into Spark, under names that the other packages can catch, and their messages from the JVM.

PySpark converts the exceptions that it knows to `PySparkException`. Others are raised as py4j errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

JvmCallError: type[Exception] = Py4JError
"""A call into the JVM that failed in any way PySpark has not converted."""
JavaException: type[Exception] = Py4JJavaError
"""An exception that code in the JVM raised."""
JvmConnectionError: type[Exception] = Py4JNetworkError
"""The connection to the JVM broke."""

SPARK_ERRORS: tuple[type[Exception], type[Exception]] = (PySparkException, JvmCallError)
"""Spark failed, or the connection to its JVM."""
RAISED_BY_SPARK: tuple[type[Exception], type[Exception]] = (PySparkException, JavaException)
"""Spark failed and its JVM still answers."""


@dataclass(frozen=True, slots=True)
class JavaCause:
    """An exception in the JVM: the full name of its class, its message, and both as Java prints them."""

    class_name: str
    message: str
    text: str


def java_causes(problem: BaseException) -> Iterator[JavaCause]:
    """The exception in the JVM behind an error, then each of its causes."""
    java: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    while java is not None:
        yield JavaCause(str(java.getClass().getName()), str(java.getMessage()), str(java.toString()))
        java = java.getCause()


def cause_texts(problem: BaseException) -> list[str]:
    """The text of an error and of each of its causes in the JVM, outermost first."""
    return [str(problem), *(cause.text for cause in java_causes(problem))]


def root_cause(problem: BaseException) -> str:
    """The first line of the innermost cause: Spark wraps its errors, and py4j wraps Spark's."""
    lines = (line.strip() for line in cause_texts(problem)[-1].splitlines())
    return next((line for line in lines if line), type(problem).__name__)
