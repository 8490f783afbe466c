"""The rows of an epoch none of whose records needs a closer look: the plan of most epochs, kept ready as a template.

The first epoch of a decoder table is planned as any query is, and so pays nothing for the template, which is made
beside it for the epochs that follow.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.contract import ERROR, RAW_COLUMNS, RAW_SCHEMA, ROW, QuickRows
from laminae.spark.decode import decode
from laminae.spark.template import Template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from laminae.codec.decoders import DecoderTable

REFUSED = "refused"


def quick_rows(spark: SparkSession, table: DecoderTable, read: Callable[[Sequence[str]], DataFrame]) -> QuickRows:
    """The rows of the records that `read` gives, which is asked for the columns that are needed."""
    ready = _kept(spark, table).template
    if ready is not None:
        made = ready.upon(read(ready.columns))
        observed = made.observed
        assert observed is not None  # every template of this module observes
        return QuickRows(made.frame, lambda: bool(observed.value(REFUSED)))
    observation = Observation()
    return QuickRows(_rows(read(RAW_COLUMNS), table, observation), lambda: bool(observation.get[REFUSED]))


def _rows(records: DataFrame, table: DecoderTable, observation: Observation) -> DataFrame:
    decoded = decode(records, table, exactly=False)
    seen = decoded.observe(observation, F.max(F.col(ERROR).isNotNull()).alias(REFUSED))
    return seen.where(F.col(ERROR).isNull()).select(f"{ROW}.*")


@dataclass(slots=True)
class _Kept:
    """The template of a table, None while it is being made. What went wrong in making it is raised at its use."""

    table: weakref.ref[DecoderTable]
    made: Template | None = None
    problem: Exception | None = None

    @property
    def template(self) -> Template | None:
        if self.problem is not None:
            raise self.problem
        return self.made

    def make(self, spark: SparkSession, table: DecoderTable) -> None:
        try:
            # An empty list would be known to be empty, and everything upon it optimised away.
            leaf = spark.createDataFrame(spark.sparkContext.emptyRDD(), RAW_SCHEMA)
            self.made = Template(leaf, _rows(leaf, table, Observation()))
        except Exception as problem:  # noqa: BLE001  # raised by the epoch that would use it
            self.problem = problem


_lock = threading.Lock()
# By identity: equal schemas may differ in their metadata, which holds defaults and ids. A template holds on to a
# session of Spark's, so it goes with its table, which goes with the pipeline.
_tables: dict[tuple[int, int], _Kept] = {}


def _kept(spark: SparkSession, table: DecoderTable) -> _Kept:
    key = (id(spark._jsparkSession), id(table))
    with _lock:
        kept = _tables.get(key)
        if kept is None or kept.table() is not table:
            kept = _tables[key] = _Kept(weakref.ref(table))
            weakref.finalize(table, _tables.pop, key, None)
            threading.Thread(target=kept.make, args=(spark, table), name="laminae-template", daemon=True).start()
        return kept
