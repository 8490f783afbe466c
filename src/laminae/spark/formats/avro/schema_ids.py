"""Finds the schema ids of the records in a range with one small job that reads only the frame headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.catalyst.column_list import nested
from laminae.spark.catalyst.plans.plan_cache import plan_cache
from laminae.spark.catalyst.plans.plan_template import Template
from laminae.spark.catalyst.plans.prepared_frame import PreparedFrame
from laminae.spark.formats.avro.decode import FRAME, frame_of, framed_id
from laminae.spark.formats.fast_path import TemplateRows, raw_leaf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from laminae.spark.formats.fast_path import Planned, Read

IDS = (f"SELECT value, {frame_of().sql} AS {FRAME.sql}", f"SELECT DISTINCT {framed_id().sql} AS id")


class SchemaIds:
    """One instance per pipeline: it owns its plan in the plan cache."""

    __slots__ = ("__weakref__",)

    def found(self, spark: SparkSession, read: Read, planned: Planned) -> frozenset[int]:
        """The schema ids of these records."""

        def make() -> Template:
            leaf = raw_leaf(spark)
            # Each partition has few ids: a shuffle would take longer than collecting those of all partitions.
            return Template(leaf, nested(spark, leaf, IDS), by_partition=True)

        template = plan_cache().get(self, IDS, make)
        ids = TemplateRows(spark, lambda columns: template, read, planned=planned).frame()
        assert isinstance(ids, PreparedFrame)  # as from every template
        return frozenset(ids.integers())


def count_of(read: Read, ids: Iterable[int]) -> int:
    """The number of records with these schema ids."""
    framed = read(("value",)).select(frame_of().column.alias(FRAME.sql.strip("`")), "value")
    return framed.where(framed_id().is_one_of(ids).column).count()
