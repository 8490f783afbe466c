"""The query that a person gives: `build(spark)` makes a DataFrame or a DataStreamWriter, and nothing is started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from laminae.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Build: TypeAlias = Callable[[SparkSession], DataFrame | DataStreamWriter]

EXPECTED = "Return df, or df.writeStream with its sink and options, from build(spark); do not start it."
MODES = ("update", "append", "complete")


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` gave. `mode` is None for a frame without a writer."""

    name: str
    frame: DataFrame
    writer: DataStreamWriter | None
    mode: str | None


def built(build: Build, spark: SparkSession) -> Built:
    name = getattr(build, "__qualname__", repr(build))
    if not callable(build):
        raise InvalidQuery(query=repr(build), problem="it is no function", advice=EXPECTED)
    try:
        given = build(spark)
    except Exception as problem:  # whatever a person's function raises is told under one code
        first = str(problem).strip().splitlines()[:1]
        told = f"it raised {type(problem).__name__}: {' '.join(first)}"
        raise InvalidQuery(query=name, problem=told, advice="Mend the function; nothing was written.") from problem
    writer = given if isinstance(given, DataStreamWriter) else None
    frame = given if writer is None else writer._df
    if not isinstance(frame, DataFrame):
        raise InvalidQuery(query=name, problem=f"it returned {type(given).__name__}", advice=EXPECTED)
    if not frame.isStreaming:
        raise InvalidQuery(query=name, problem="what it returned is not a streaming query", advice=EXPECTED)
    return Built(name, frame, writer, None if writer is None else _mode(writer))


def _mode(writer: DataStreamWriter) -> str:
    """The output mode that was set. Spark has no public way to ask a writer for it."""
    java: Any = writer._jwrite
    field = java.getClass().getDeclaredField("outputMode")
    field.setAccessible(True)
    return str(field.get(java).toString()).lower()
