"""Adds up the changes of a view before they are emitted, where changes of several shards or groups may cancel out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.schema.identifiers import quoted
from laminae.spark.tasks.task_reports import REPORT
from laminae.trace.spec import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def consolidated(frame: DataFrame, key: Sequence[str] | None) -> DataFrame:
    """The sum of the changes, without those that cancel out; rows of one key are adjacent, the old one first.

    A row that moves to another join key is retracted in one shard and inserted in another, and two groups may be shown
    as equal rows. If the columns of the view do not change, neither may be emitted.
    """
    if "variant" in frame.schema.simpleString():
        return frame  # Spark groups by any type but VARIANT
    names = [name for name in frame.columns if name != WEIGHT]
    keys = [quoted(name) for name in names if name != REPORT and (key is None or name in key)]
    if keys:
        frame = frame.repartition(*keys)
    weights = frame.groupBy(*map(quoted, names)).agg(F.sum(WEIGHT).cast("bigint").alias(WEIGHT))
    reports = f" OR {REPORT} IS NOT NULL" if REPORT in names else ""
    # Readers of an append-only changelog take each change for one row, so equal rows stay separate changes.
    single = f"explode_outer(array_repeat(CAST(sign({WEIGHT}) AS BIGINT), CAST(abs({WEIGHT}) AS INT))) AS {WEIGHT}"
    changed = weights.where(f"{WEIGHT} <> 0{reports}").selectExpr(*map(quoted, names), single)
    ordered = changed.select(*map(quoted, frame.columns))
    return ordered.sortWithinPartitions(*keys, WEIGHT) if key else ordered
