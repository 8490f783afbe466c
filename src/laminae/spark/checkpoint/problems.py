"""What went wrong, below the layers that wrap it: Spark wraps its errors, and py4j wraps Spark's."""

from __future__ import annotations

from typing import Any


def causes(problem: BaseException) -> list[str]:
    """The text of an error and of every cause of it in the JVM, from the outside in."""
    found = [str(problem)]
    java: Any = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    while java is not None:
        found.append(str(java.toString()))
        java = java.getCause()
    return found


def told(problem: BaseException) -> str:
    """The first line of the innermost cause."""
    lines = (line.strip() for line in causes(problem)[-1].splitlines())
    return next((line for line in lines if line), type(problem).__name__)
