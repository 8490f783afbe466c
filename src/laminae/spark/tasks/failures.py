"""Classifies the exception that ends a view job: caused by a view, or by Spark, the catalog or the machine.

A view fails without the others, so any error that is not known to have another cause is attributed to the view. Before
a view is marked as failed, its job was retried over input rows that Spark can compute, with failing rows set aside, and
then without the other views.
"""

from __future__ import annotations

from pyspark.errors import PySparkException, PythonException

from laminae.errors import (
    CatalogCorrupt,
    CatalogUnavailable,
    CheckpointDiverged,
    ConcurrentChange,
    HomeUnwritable,
    LaminaeError,
    LeaseHeld,
    LeaseLost,
    QueryFailed,
    SourceTruncated,
    SourceUnavailable,
)
from laminae.spark.catalyst.spark_errors import JavaException, JvmCallError

HOME_ERRORS = (
    CatalogCorrupt,
    CatalogUnavailable,
    CheckpointDiverged,
    ConcurrentChange,
    HomeUnwritable,
    LeaseHeld,
    LeaseLost,
    SourceTruncated,
    SourceUnavailable,
)
MACHINE_ERRORS = (OSError, MemoryError)
"""A full disk, a file that cannot be opened: the same job may succeed later."""
# SQLSTATE classes of data exceptions, rejected queries, features that Spark lacks, and raise_error.
QUERY_STATES = ("0A", "21", "22", "23", "2F", "38", "39", "42", "54", "P0")
# Texts of Spark's infrastructure errors, which have another SQLSTATE or none.
MACHINE_WORDS = (
    "java.io.",
    "java.nio.file.",
    "OutOfMemoryError",
    "ExecutorLost",
    "FetchFailed",
    "JOB_CANCELLED",
    "InterruptedException",
    "SparkContext was shut down",
    "stopped SparkContext",
    "exited unexpectedly",
    "[Errno ",
    "MemoryError",
    "ModuleNotFoundError",
    HomeUnwritable.code,
)

WITHOUT_ORDER = "(a MAP or VARIANT has no order: use to_json, or map_entries and array_sort)"


def is_view_failure(problem: BaseException) -> bool:
    """Whether the error marks a view as failed. False: the error is raised to the caller that runs the source."""
    if isinstance(problem, (*HOME_ERRORS, *MACHINE_ERRORS)) or not isinstance(problem, Exception):
        return False
    if isinstance(problem, PythonException):
        # Our own tasks report failures as reports of their view; this is a user function or the Python worker itself.
        return not _is_of_the_machine(str(problem))
    if isinstance(problem, PySparkException):
        return (problem.getSqlState() or "")[:2] in QUERY_STATES or not _is_of_the_machine(str(problem))
    if isinstance(problem, JvmCallError):
        return isinstance(problem, JavaException) and not _is_of_the_machine(str(problem))
    return True


def failure_text(problem: BaseException) -> str:
    """The problem text of a failed view, with the error code; only the first line of errors that are not laminae's."""
    if isinstance(problem, LaminaeError):
        return str(problem)
    if isinstance(problem, PySparkException):
        text = str(problem).partition("\n")[0]
        return f"{text} {WITHOUT_ORDER}" if "INVALID_ORDERING_TYPE" in text else text
    text = str(problem).strip().partition("\n")[0]
    return str(QueryFailed(problem=f"{type(problem).__name__}: {text}")).partition("\n")[0]


def failure_code(problem: BaseException) -> str:
    return problem.code if isinstance(problem, LaminaeError) else QueryFailed.code


def _is_of_the_machine(text: str) -> bool:
    return any(word in text for word in MACHINE_WORDS)
