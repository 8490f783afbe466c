"""The rows of an epoch none of whose records needs a closer look: the plan of most epochs, kept ready as a template.

A template is made once for each decoder table, ahead of the first epoch where a changed definition gives the time.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.contract import ERROR, RAW_SCHEMA, ROW, QuickRows
from laminae.spark.decode import decode
from laminae.spark.template import Template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable


def quick_rows(spark: SparkSession, table: DecoderTable, read: Callable[[Sequence[str]], DataFrame]) -> QuickRows:
    """The rows of the records that `read` gives, which is asked for the columns that are needed."""
    template = _kept(table).template(spark, table)
    made = template.upon(read(template.columns))
    return QuickRows(made.frame, made.has_dropped, made.count)


def make_ready(spark: SparkSession, table: DecoderTable) -> None:
    """Do ahead what the first epoch of a table would wait for: its template, and the code compiled for it."""
    template = _kept(table).template(spark, table)
    template.upon(_no_records(spark).select(*template.columns))


def _rows(records: DataFrame, table: DecoderTable) -> DataFrame:
    return decode(records, table, exactly=False).where(F.col(ERROR).isNull()).select(f"{ROW}.*")


def _no_records(spark: SparkSession) -> DataFrame:
    # An empty list would be known to be empty, and everything upon it optimised away.
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), RAW_SCHEMA)


@dataclass(slots=True)
class _Kept:
    """The template of a table, made by whoever asks first."""

    table: weakref.ref[DecoderTable]
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: Template | None = None

    def template(self, spark: SparkSession, table: DecoderTable) -> Template:
        with self.lock:
            if self.made is None:
                leaf = _no_records(spark)
                self.made = Template(leaf, _rows(leaf, table))
            return self.made


_lock = threading.Lock()
# By identity: equal schemas may differ in their metadata, which holds defaults and ids. A template holds on to a
# session of Spark's, so it goes with its table, which goes with the pipeline.
_tables: dict[int, _Kept] = {}


def _kept(table: DecoderTable) -> _Kept:
    key = id(table)
    with _lock:
        kept = _tables.get(key)
        if kept is None or kept.table() is not table:
            kept = _tables[key] = _Kept(weakref.ref(table))
            weakref.finalize(table, _tables.pop, key, None)
        return kept
