"""laminar_catalog.late_rows: what came too late for every window it belongs to, kept and counted, never dropped."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.paths import literal_path
from laminae.spark.views.tree import Deltas, linear, read_by
from laminae.trace.spec import WEIGHT
from laminae.views.identity import stateful
from laminae.views.operators import GroupBy, Linear, Named
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage
    from laminae.spark.views.guard import Guard
    from laminae.spark.views.tree import Place, Relations, ViewState

LATE_ROWS = "view_name STRING, epoch BIGINT, window_end TIMESTAMP, row STRING, weight BIGINT"
STORED = "window_end TIMESTAMP, row STRING, weight BIGINT"


def late_delta(view: ViewState, deltas: Relations, place: Place, guard: Guard | None = None) -> DataFrame | None:
    """Rows of which every window is closed: `window_end` of the last, `row` as JSON, `weight`. None: no rows to find.

    Behind a stateful operator there are no rows of a source any more, only changes of a view.
    """
    group = next((each for each in stateful(view.plan.root) if isinstance(each, GroupBy)), None)
    window = view.plan.window
    if group is None or window is None or not isinstance(group.input, Linear) or stateful(group.input):
        return None
    before = group.input
    rows = Deltas(view, deltas, place, guard).delta(before.input, read_by(before, None))
    if rows is None:
        return None
    end = next(each.sql for each in before.expressions if each.name == window.end)
    data = ", ".join(quoted(name) for name in before.input.columns)
    marked = rows.selectExpr("*", f"to_json(struct({data})) AS _row", "monotonically_increasing_id() AS _id")
    own = tuple(Named(name, sql) for name, sql in (("_end", end), ("_row", "_row"), ("_id", "_id")))
    # What fails on a row fails here too, and such a row is not late but refused.
    ends = linear(marked, replace(before, expressions=(*before.expressions, *own)), guard)
    last = ends.groupBy("_id", "_row", WEIGHT).agg(F.max("_end").alias("window_end"))
    late = last.where(F.col("window_end") <= F.timestamp_micros(F.lit(view.closed)))
    return late.select("window_end", F.col("_row").alias("row"), F.col(WEIGHT).alias("weight"))


def late_rows(spark: SparkSession, catalog: Catalog, storage: Storage) -> DataFrame:
    """The row as JSON, the end of the last window it belongs to, and the epoch it came in."""
    parts = [
        spark.read.schema(STORED)
        .parquet(*(literal_path(storage.path(segment)) for segment in advance.late_files))
        .select(F.lit(view.name).alias("view_name"), F.lit(advance.epoch).cast("bigint").alias("epoch"), "*")
        for view in catalog.views()
        for advance in catalog.advances(view.id)
        if advance.late_files
    ]
    return reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], LATE_ROWS)
