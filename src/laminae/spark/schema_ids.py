"""Which schema ids the records of a range are framed with: one small job that looks at their first bytes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql.types import StringType, StructField, StructType

from laminae.spark.avro import FRAME, frame_of, framed_id
from laminae.spark.contract import RAW_SCHEMA
from laminae.spark.planned import MappedFrame, mapped
from laminae.spark.quick import TemplateRows, no_rows
from laminae.spark.template import Template
from laminae.spark.workers import settle_worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from laminae.spark.quick import Planned, Read

ID = "id"
TOLD = StructType([StructField(ID, StringType())])


class SchemaIds:
    """Of one pipeline: its plan, which is made once, holds on to a session of Spark's."""

    __slots__ = ("_template",)

    def __init__(self) -> None:
        self._template: Template | None = None

    def found(self, spark: SparkSession, read: Read, planned: Planned) -> frozenset[int]:
        """The ids among these records."""
        if self._template is None:
            leaf = no_rows(spark, RAW_SCHEMA)
            self._template = Template(leaf, _ids(leaf))
        template = self._template
        ids = TemplateRows(spark, lambda columns: template, read, planned=planned).frame()
        # Not grouped by Spark: that is planned for every epoch, and has as many tasks as the session has partitions.
        told = mapped(ids, _each_once, TOLD)
        texts = told.texts(ID) if isinstance(told, MappedFrame) else [row[ID] for row in told.collect()]
        return frozenset(map(int, texts))


def count_of(read: Read, ids: Iterable[int]) -> int:
    """How many records of these ids there are."""
    return _ids(read(("value",))).where(F.col(ID).isin(list(ids))).count()


def _each_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle_worker()
    seen: set[int] = set()
    for batch in batches:
        seen.update(pc.unique(batch.column(ID)).drop_null().to_pylist())
    yield pa.RecordBatch.from_arrays([pa.array(sorted(map(str, seen)), pa.string())], names=[ID])


def _ids(records: DataFrame) -> DataFrame:
    framed = records.select(frame_of().column.alias(FRAME.sql.strip("`")), "value")
    return framed.select(framed_id().column.alias(ID))
