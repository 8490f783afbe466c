"""What a sink was given of a view that has been replaced: taken back with the first changes of the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.views.events import relation_events
from laminae.spark.views.reading import EPOCH
from laminae.spark.views.tasks import TIMESTAMP
from laminae.views.kernels.changelog import OP, WEIGHT
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.spark.storage import Storage


def taken_back(
    spark: SparkSession, catalog: Catalog, storage: Storage, view: ViewRecord, progress: int
) -> tuple[str, ...]:
    """A file of changes below the home, none when there is nothing to take back: every row of the view that was there
    when the sink was at `progress`, with a negative weight. The same rows in the same order however often it is made.
    """
    former = delivered_before(catalog, view, progress)
    if former is None:
        return ()
    changes = relation_events(spark, catalog, storage, former).where(F.col(EPOCH) <= progress)
    names = [quoted(name) for name in changes.columns if name not in (EPOCH, OP, WEIGHT, TIMESTAMP)]
    left = changes.groupBy(*names).agg((-F.sum(WEIGHT)).alias(WEIGHT)).where(F.col(WEIGHT) < 0)
    time = F.lit(view.created_at).alias(TIMESTAMP)
    rows = left.select(F.lit("-D").alias(OP), WEIGHT, time, *names).coalesce(1).sortWithinPartitions(*names)
    segment = storage.new_segment(view.id, "changes")
    rows.write.mode("errorifexists").parquet(storage.path(segment))
    storage.sync(segment)
    if not storage.rows(segment):
        return ()
    return tuple(f"{segment}/{file.name}" for file in sorted((storage.home / segment).glob("*.parquet")))


def delivered_before(catalog: Catalog, view: ViewRecord, progress: int) -> ViewRecord | None:
    """The view before this one of which a sink that is at `progress` has been given something."""
    if any(each.epoch <= progress for each in catalog.advances(view.id)):
        return None
    former = catalog.replaced(view.id)
    while former is not None and not catalog.advances(former.id, 0, progress):
        former = catalog.replaced(former.id)
    return former
