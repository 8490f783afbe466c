"""laminar_catalog.late_rows: rows that arrived after all of their windows closed; stored and counted, never dropped."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.catalyst.paths import literal_path
from laminae.spark.views.plan import Deltas, linear, read_by
from laminae.trace.spec import WEIGHT
from laminae.views.identity import stateful
from laminae.views.operators import GroupBy, Linear, Named
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage
    from laminae.spark.views.error_isolation import ErrorIsolation
    from laminae.spark.views.plan import Relations, ShardPlacement, ViewState

LATE_ROWS = "view_name STRING, epoch BIGINT, window_end TIMESTAMP, row STRING, weight BIGINT"
STORED = "window_end TIMESTAMP, row STRING, weight BIGINT"


def late_delta(
    view: ViewState, deltas: Relations, placement: ShardPlacement, guard: ErrorIsolation | None = None
) -> DataFrame | None:
    """Late rows, all of whose windows are closed: `window_end` of the last window, `row` as JSON, and `weight`.

    None if there can be no late rows, because the view has no window, reads none of `deltas`, or groups the output of
    another stateful operator: that has only changes, no source rows.
    """
    group = next((operator for operator in stateful(view.plan.root) if isinstance(operator, GroupBy)), None)
    window = view.plan.window
    if group is None or window is None or not isinstance(group.input, Linear) or stateful(group.input):
        return None
    before = group.input
    rows = Deltas(view, deltas, placement, guard).delta(before.input, read_by(before, None))
    if rows is None:
        return None
    end = next(expression.sql for expression in before.expressions if expression.name == window.end)
    data = ", ".join(quoted(name) for name in before.input.columns)
    marked = rows.selectExpr("*", f"to_json(struct({data})) AS _row", "monotonically_increasing_id() AS _id")
    own = tuple(Named(name, sql) for name, sql in (("_end", end), ("_row", "_row"), ("_id", "_id")))
    # A row on which an expression fails is excluded by the guard here as well: it is a dead letter, not a late row.
    ends = linear(marked, replace(before, expressions=(*before.expressions, *own)), guard)
    last = ends.groupBy("_id", "_row", WEIGHT).agg(F.max("_end").alias("window_end"))
    late = last.where(F.col("window_end") <= F.timestamp_micros(F.lit(view.closed)))
    return late.select("window_end", F.col("_row").alias("row"), F.col(WEIGHT).alias("weight"))


def late_rows(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """Each late row as JSON, with the end of its last window and the epoch in which it arrived."""
    parts = [
        spark.read.schema(STORED)
        .parquet(*(literal_path(storage.path(segment)) for segment in advance.late_files))
        .select(F.lit(view.name).alias("view_name"), F.lit(advance.epoch).cast("bigint").alias("epoch"), "*")
        for view in catalog.views()
        for advance in catalog.advances(view.id)
        if advance.late_files
    ]
    return reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], LATE_ROWS)
