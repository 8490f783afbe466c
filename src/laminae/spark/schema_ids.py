"""Which schema ids the records of a range are framed with: one small job that looks at their first bytes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.avro import FRAME, frame_of, framed_id
from laminae.spark.columns import nested
from laminae.spark.planned import PlannedFrame
from laminae.spark.quick import TemplateRows, raw_leaf
from laminae.spark.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from laminae.spark.quick import Planned, Read

IDS = (f"SELECT value, {frame_of().sql} AS {FRAME.sql}", f"SELECT DISTINCT {framed_id().sql} AS id")


class SchemaIds:
    """Of one pipeline: its plan, which is made once, holds on to a session of Spark's."""

    __slots__ = ("_template",)

    def __init__(self) -> None:
        self._template: Template | None = None

    def found(self, spark: SparkSession, read: Read, planned: Planned) -> frozenset[int]:
        """The ids among these records."""
        if self._template is None:
            leaf = raw_leaf(spark)
            # Each partition has few: to send them to one place would take longer than to tell the driver all of them.
            self._template = Template(leaf, nested(spark, leaf, IDS), by_partition=True)
        template = self._template
        ids = TemplateRows(spark, lambda columns: template, read, planned=planned).frame()
        assert isinstance(ids, PlannedFrame)  # a template makes no other
        return frozenset(ids.integers())


def count_of(read: Read, ids: Iterable[int]) -> int:
    """How many records of these ids there are."""
    framed = read(("value",)).select(frame_of().column.alias(FRAME.sql.strip("`")), "value")
    return framed.where(framed_id().is_one_of(ids).column).count()
