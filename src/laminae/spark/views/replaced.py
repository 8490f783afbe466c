"""What a sink was given of a view that was replaced: taken back when the new one begins, in the shape of the old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import ArrayType, MapType, StructType

from laminae.engine.view_order import inputs_of
from laminae.errors import ChangelogExpired, QueryFailed
from laminae.spark.delivery.segment import Holds, Segment
from laminae.spark.types import arrow_schema
from laminae.spark.views.events import relation_events
from laminae.spark.views.reading import EPOCH, table_of
from laminae.spark.views.run import with_weight
from laminae.spark.views.tasks import TIMESTAMP
from laminae.views.kernels.changelog import OP, WEIGHT
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage

OWN = (EPOCH, OP, WEIGHT, TIMESTAMP)


def taken_back(
    spark: SparkSession, catalog: Catalog, storage: Storage, former: ViewRecord, progress: int, at: tuple[int, datetime]
) -> Segment | None:
    """Every row that the view had when a sink was at `progress`, with a negative weight, as changes of epoch and time
    `at`; None when it had none. The same rows in the same order however often it is made.
    """
    epoch, time = at
    rows = _rows_then(spark, catalog, storage, former, progress)
    fields = [field for field in rows.schema.fields if field.name not in OWN]
    names = [quoted(field.name) for field in fields]
    left = rows.groupBy(*names).agg((-F.sum(WEIGHT)).alias(WEIGHT)).where(F.col(WEIGHT) < 0)
    order = [F.to_json(F.struct(quoted(each.name))) if has_map(each.dataType) else quoted(each.name) for each in fields]
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
    """Whether values of a type have no order in Spark."""
    match kind:
        case MapType():
            return True
        case ArrayType():
            return has_map(kind.elementType)
        case StructType():
            return any(has_map(field.dataType) for field in kind.fields)
    return False


def _rows_then(spark: SparkSession, catalog: Catalog, storage: Storage, former: ViewRecord, progress: int) -> DataFrame:
    """Rows with `_weight`: the sum of the changes, or the state where not all of them are kept under one name each."""
    try:
        return relation_events(spark, catalog, storage, former).where(F.col(EPOCH) <= progress)
    except (ChangelogExpired, QueryFailed):
        # A relation below that is younger than the view is not the one that it read.
        below = [catalog.source(name) or catalog.view(name) for name in inputs_of(former)]
        if any(each is None or each.id > former.id for each in below):
            raise
        return with_weight(table_of(spark, catalog, storage, former, progress))
