"""The user's query: `build(spark)` returns a DataFrame or a DataStreamWriter, and must not start it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from laminae.errors import InvalidQuery
from laminae.spark.catalyst.streaming.streaming_query import output_mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Build: TypeAlias = Callable[[SparkSession], DataFrame | DataStreamWriter]

EXPECTED = "Return df, or df.writeStream with its sink and options, from build(spark); do not start it."
MODES = ("update", "append", "complete")


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` returned. `mode` is None for a DataFrame without a writer."""

    name: str
    frame: DataFrame
    writer: DataStreamWriter | None
    mode: str | None


def built(build: Build, spark: SparkSession) -> Built:
    name = getattr(build, "__qualname__", repr(build))
    if not callable(build):
        raise InvalidQuery(query=repr(build), problem="it is not a function", advice=EXPECTED)
    try:
        query = build(spark)
    except Exception as problem:  # all errors of a user's function are reported under one code
        first = str(problem).strip().splitlines()[:1]
        reason = f"it raised {type(problem).__name__}: {' '.join(first)}"
        raise InvalidQuery(query=name, problem=reason, advice="Fix the function. Nothing was written.") from problem
    writer = query if isinstance(query, DataStreamWriter) else None
    frame = query if writer is None else writer._df
    if not isinstance(frame, DataFrame):
        raise InvalidQuery(query=name, problem=f"it returned {type(query).__name__}", advice=EXPECTED)
    if not frame.isStreaming:
        raise InvalidQuery(query=name, problem="what it returned is not a streaming query", advice=EXPECTED)
    return Built(name, frame, writer, None if writer is None else output_mode(writer))
