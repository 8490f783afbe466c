"""Spark's StateRewriter: it reads every state store of a checkpoint, calls back for the new rows, and writes these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from laminae.spark.catalyst.jvm import callback_gateway, java_class, scala_items

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Change = Callable[["StoreRows"], DataFrame]
    StoreIds = dict[str, list[list[str]]]

REWRITER = "org.apache.spark.sql.execution.streaming.state.StateRewriter"


@dataclass(frozen=True, slots=True)
class StoreRows:
    """The rows of one state store, in the rewriter's schema."""

    operator: int
    store: str
    rows: DataFrame


def rewrite_state(spark: SparkSession, batch: int, source: str, target: str, change: Change) -> StoreIds | None:
    """Write the state of the checkpoint `source` at a batch into `target`, as `change` returns it for each store.

    The result has the store ids of checkpoint format 2 by operator and partition, None in format 1. An error that
    `change` raises is raised here.
    """
    callback_gateway(spark)
    callback = _Callback(spark, change)
    jvm: Any = spark.sparkContext._jvm
    option = java_class(jvm, "scala.Option")
    rewriter = java_class(jvm, REWRITER)(
        spark._jsparkSession,
        batch,
        batch,
        target,
        spark._jsparkSession.sessionState().newHadoopConf(),
        option.apply(source),
        option.apply(callback),
        option.empty(),
    )
    try:
        store_ids = rewriter.run()
    except Exception:
        # The exception in the callback is the cause; the JVM wraps only its text.
        if callback.problem is not None:
            raise callback.problem from None
        raise
    return _store_ids(store_ids.get()) if store_ids.isDefined() else None


def observed(frame: DataFrame, name: str) -> list[int]:
    """The metrics of an observation of integers in this frame, once the job that ran it has ended."""
    row = frame._jdf.queryExecution().observedMetrics().apply(name)
    return [int(row.get(place)) for place in range(row.size())]


@dataclass(slots=True)
class _Callback:
    """The rewriter's function for the rows of a store. It keeps an error, which the JVM would reduce to its text."""

    spark: SparkSession
    change: Change
    problem: Exception | None = None

    class Java:
        implements: ClassVar = ["scala.Function1"]

    def apply(self, rows: Any) -> Any:
        try:
            options = rows.queryExecution().analyzed().options()
            operator, store = int(options.get("operatorId")), str(options.get("storeName"))
            return self.change(StoreRows(operator, store, ClassicDataFrame(rows, self.spark)))._jdf
        except Exception as problem:
            self.problem = problem
            raise


def _store_ids(by_operator: Any) -> StoreIds:
    return {
        str(entry._1()): [[str(store_id) for store_id in partition] for partition in entry._2()]
        for entry in scala_items(by_operator)
    }
