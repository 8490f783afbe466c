"""How many rows of state there are: counted while they are carried over, or in a pass of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.checkpoint.state_rows import FAMILY, raw_rows, store_rows
from laminae.state.checkpoint.model import HDFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan

COUNTS = "laminae_counts"


def counted(rows: DataFrame, plans: tuple[FamilyPlan, ...]) -> DataFrame:
    """The same rows; those of each family are counted as they pass, in the order of `plans`.

    What Spark observes in the tasks of a result stage counts once, however often a task is tried. A shuffle behind this
    would move it to another stage.
    """
    family = F.col(FAMILY) if FAMILY in rows.columns else F.lit("default")
    counts = [F.count(F.when(family == plan.family, 1)).alias(str(place)) for place, plan in enumerate(plans)]
    return rows.observe(COUNTS, *counts)


def row_counts(spark: SparkSession, checkpoint: Checkpoint) -> dict[tuple[int, str, str], int]:
    """Rows of each operator, store and column family at the last committed batch."""
    counts: dict[tuple[int, str, str], int] = {}
    for operator in checkpoint.operators:
        for store in operator.stores:
            counts |= {(operator.id, store.name, family.name): 0 for family in store.families}
            place = (spark, checkpoint.location, operator.id, store.name, checkpoint.batch)
            if checkpoint.provider == HDFS:
                counts[operator.id, store.name, "default"] = store_rows(*place).count()
                continue
            for family, rows in raw_rows(*place).groupBy(F.col(FAMILY)).count().collect():
                counts[operator.id, store.name, family] = rows
    return counts
