"""What the JVM says about an error, from the exception that Spark wrapped down to the root cause."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException

from laminae.spark.catalyst.spark_errors import (
    RAISED_BY_SPARK,
    SPARK_ERRORS,
    JvmConnectionError,
    cause_texts,
    root_cause,
)
from laminae.spark.catalyst.streaming.kafka_stream import kafka_error


@dataclass(frozen=True)
class JavaClass:
    name: str

    def getName(self) -> str:  # noqa: N802  # Java's name
        return self.name


@dataclass(frozen=True)
class Thrown:
    """A Throwable as py4j shows it."""

    kind: str
    message: str
    cause: Thrown | None = None

    def getClass(self) -> JavaClass:  # noqa: N802
        return JavaClass(self.kind)

    def getMessage(self) -> str:  # noqa: N802
        return self.message

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self.cause

    def toString(self) -> str:  # noqa: N802
        return f"{self.kind}: {self.message}"


class WrappedError(Exception):
    def __init__(self, thrown: Thrown | None) -> None:
        super().__init__("An error occurred while calling o1.run")
        self.java_exception = thrown


TIMED_OUT = Thrown("org.apache.kafka.common.errors.TimeoutException", "no answer\nin 5 s")
WRAPPED = WrappedError(Thrown("org.apache.spark.SparkException", "Job aborted", TIMED_OUT))


def test_the_texts_go_from_the_error_to_its_innermost_cause() -> None:
    assert cause_texts(WRAPPED) == [
        "An error occurred while calling o1.run",
        "org.apache.spark.SparkException: Job aborted",
        "org.apache.kafka.common.errors.TimeoutException: no answer\nin 5 s",
    ]


def test_the_root_cause_is_the_first_line_of_the_innermost() -> None:
    assert root_cause(WRAPPED) == "org.apache.kafka.common.errors.TimeoutException: no answer"
    assert root_cause(ValueError("\n  too long\nby one")) == "too long"
    assert root_cause(ValueError()) == "ValueError"


def test_an_error_of_the_kafka_client_is_told_from_others() -> None:
    assert kafka_error(WRAPPED) == "TimeoutException: no answer\nin 5 s"
    assert kafka_error(WrappedError(Thrown("java.lang.InterruptedException", "stopped"))) is not None
    assert kafka_error(WrappedError(Thrown("org.apache.spark.SparkException", "Job aborted"))) is None
    assert kafka_error(WrappedError(None)) is None


@pytest.mark.parametrize("problem", [AnalysisException("no column"), Py4JError("no method"), Py4JNetworkError("gone")])
def test_spark_errors_are_those_of_spark_and_of_the_connection_to_it(problem: Exception) -> None:
    assert isinstance(problem, SPARK_ERRORS)


def test_a_lost_connection_is_not_taken_for_an_error_that_spark_raised() -> None:
    lost = Py4JNetworkError("gone")
    assert isinstance(lost, JvmConnectionError)
    assert not isinstance(lost, RAISED_BY_SPARK)
    assert isinstance(AnalysisException("no column"), RAISED_BY_SPARK)
