"""The first line that says what went wrong: Spark wraps its errors, and py4j wraps Spark's."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types


def told(problem: BaseException) -> str:
    text = str(problem)
    if isinstance(problem, Py4JJavaError):
        cause = problem.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(problem).__name__)
