"""Which schema ids the records of a range are framed with: one small job that looks at their first bytes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.avro import FRAME, frame_of, framed_id
from laminae.spark.contract import RAW_SCHEMA
from laminae.spark.quick import no_rows
from laminae.spark.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.quick import Read

IDS = "ids"


class SchemaIds:
    """Of one pipeline: its plan, which is made once, holds on to a session of Spark's."""

    __slots__ = ("_template",)

    def __init__(self) -> None:
        self._template: Template | None = None

    def found(self, spark: SparkSession, read: Read) -> frozenset[int]:
        """The ids among these records."""
        if self._template is None:
            leaf = no_rows(spark, RAW_SCHEMA)
            # One set for all: grouped by id, it would have as many tasks as the session has shuffle partitions.
            self._template = Template(leaf, _ids(leaf).agg(F.collect_set("id").alias(IDS)))
        (row,) = self._template.upon(read(self._template.columns)).frame.collect()
        return frozenset(row[IDS])


def count_of(read: Read, ids: Iterable[int]) -> int:
    """How many records of these ids there are."""
    return _ids(read(("value",))).where(F.col("id").isin(list(ids))).count()


def _ids(records: DataFrame) -> DataFrame:
    framed = records.select(frame_of().column.alias(FRAME.sql.strip("`")), "value")
    return framed.select(framed_id().column.alias("id"))
