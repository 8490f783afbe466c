"""Retract what a sink received from a view that was replaced, with the columns of the old view.

The retractions are due with the first epoch of the new view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import ArrayType, MapType, StructType

from laminae.engine.views.order import inputs_of
from laminae.errors import ChangelogExpired, QueryFailed
from laminae.spark.catalyst.types import arrow_schema
from laminae.spark.sinks.segment import Holds, Segment
from laminae.spark.views.reading.changes import relation_events
from laminae.spark.views.reading.relation import EPOCH, table_of
from laminae.spark.views.runner import with_weight
from laminae.views.planner import quoted
from laminae.zset.changelog import OP, TIMESTAMP, WEIGHT

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.driver.storage import Storage

OWN = (EPOCH, OP, WEIGHT, TIMESTAMP)


def taken_back(
    spark: SparkSession, catalog: Catalog, storage: Storage, former: ViewRecord, progress: int, at: tuple[int, datetime]
) -> Segment | None:
    """Retract every row that the view had when the sink was at `progress`, as -D changes of epoch and time `at`.

    None if the view had no rows. Deterministic: repeated calls write the same rows in the same order.
    """
    epoch, time = at
    rows = _rows_then(spark, catalog, storage, former, progress)
    fields = [field for field in rows.schema.fields if field.name not in OWN]
    names = [quoted(field.name) for field in fields]
    left = rows.groupBy(*names).agg((-F.sum(WEIGHT)).alias(WEIGHT)).where(F.col(WEIGHT) < 0)
    order = [
        F.to_json(F.struct(quoted(field.name))) if has_map(field.dataType) else quoted(field.name) for field in fields
    ]
    shown = left.select(F.lit("-D").alias(OP), WEIGHT, F.lit(time).alias(TIMESTAMP), *names)
    place = storage.new_segment(former.id, "changes")
    shown.coalesce(1).sortWithinPartitions(*order).write.mode("errorifexists").parquet(storage.path(place))
    storage.sync(place)
    count = storage.rows(place)
    if not count:
        return None
    files = tuple(f"{place}/{file.name}" for file in sorted((storage.home / place).glob("*.parquet")))
    return Segment(epoch, str(storage.home), arrow_schema(shown.schema), count, Holds.TAKEN_BACK, files)


def has_map(kind: DataType) -> bool:
    """Whether the type contains a map: Spark cannot sort by such values."""
    match kind:
        case MapType():
            return True
        case ArrayType():
            return has_map(kind.elementType)
        case StructType():
            return any(has_map(field.dataType) for field in kind.fields)
    return False


def _rows_then(spark: SparkSession, catalog: Catalog, storage: Storage, former: ViewRecord, progress: int) -> DataFrame:
    """Rows with `_weight` as of epoch `progress`: the changelog, or the view's state if the changelog is unusable.

    It is unusable if some changes have expired or a column was renamed since.
    """
    try:
        return relation_events(spark, catalog, storage, former).where(F.col(EPOCH) <= progress)
    except (ChangelogExpired, QueryFailed):
        # Reading the state resolves the view's inputs by name. One created after the view is not the one that it read.
        below = [catalog.source(name) or catalog.view(name) for name in inputs_of(former)]
        if any(relation is None or relation.id > former.id for relation in below):
            raise
        return with_weight(table_of(spark, catalog, storage, former, progress))
