"""Rewrite state through Spark's StateRewriter: it reads every store, this changes the bytes, it writes them anew.

The change is a function of Python that the rewriter calls once for each store, with its rows as a frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.checkpoint.counting import COUNTS, counted
from laminae.spark.checkpoint.hashing import new_key_columns
from laminae.spark.checkpoint.hdfs import encoded_rows
from laminae.spark.checkpoint.tasks import telling_tasks
from laminae.spark.java import java_class
from laminae.state.checkpoint.model import HDFS
from laminae.state.codec.families import BYTES, FamiliesMigration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from laminae.spark.checkpoint.steps import OnStep
    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan

REWRITER = "org.apache.spark.sql.execution.streaming.state.StateRewriter"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What came of it: the rows that were read of each operator, store and family; store ids in checkpoint format 2."""

    counts: dict[tuple[int, str, str], int]
    store_ids: dict[str, list[list[str]]] | None


def rewrite(
    spark: SparkSession, old: Checkpoint, target: str, plans: tuple[FamilyPlan, ...], on_step: OnStep
) -> Rewritten:
    """Write the state of `old` into `target`, whose logs and schemas are there."""
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # pyspark's own, without types
    change = _Change(spark, old, plans, on_step)
    jvm: Any = spark._jvm
    option = java_class(jvm, "scala.Option")
    # An HDFS-backed store has no raw bytes to read: the rewriter reads the empty target, and is given the rows.
    source = target if old.provider == HDFS else old.location
    rewriter = java_class(jvm, REWRITER)(
        spark._jsparkSession,
        old.batch,
        old.batch,
        target,
        spark._jsparkSession.sessionState().newHadoopConf(),
        option.apply(source),
        option.apply(change),
        option.empty(),
    )
    try:
        with telling_tasks(spark, change.tell):
            found = rewriter.run()
    except Exception:
        # What happened in the callback is the cause; the JVM wraps its text alone.
        if change.problem is not None:
            raise change.problem from None
        raise
    return Rewritten(change.counts(), _store_ids(found.get()) if found.isDefined() else None)


def _store_ids(found: Any) -> dict[str, list[list[str]]]:
    ids: dict[str, list[list[str]]] = {}
    entries = found.iterator()
    while entries.hasNext():
        entry = entries.next()
        ids[str(entry._1())] = [[str(one) for one in partition] for partition in entry._2()]
    return ids


@dataclass(slots=True)
class _Change:
    """What the rewriter calls with the rows of a store. An error must not get lost on its way through the JVM."""

    spark: SparkSession
    old: Checkpoint
    plans: tuple[FamilyPlan, ...]
    on_step: OnStep
    given: list[tuple[tuple[FamilyPlan, ...], Any]] = field(default_factory=list)
    problem: Exception | None = None
    step: str = ""

    class Java:
        implements: ClassVar = ["scala.Function1"]

    def apply(self, rows: Any) -> Any:
        try:
            return self._changed(rows)
        except Exception as problem:
            self.problem = problem
            raise

    def _changed(self, rows: Any) -> Any:
        options = rows.queryExecution().analyzed().options()
        operator, store = int(options.get("operatorId")), str(options.get("storeName"))
        plans = tuple(plan for plan in self.plans if (plan.operator, plan.store) == (operator, store))
        self.step = f"rewrite operator {operator}, store {store}"
        self.tell(0, 1)
        found, partitions = DataFrame(rows, self.spark), self._partitions(operator, store)
        if self.old.provider == HDFS:
            given = encoded_rows(self.spark, self.old, plans[0], partitions)
        elif any(plan.changes for plan in plans):
            given = rewritten(found, plans, partitions)
        else:
            given = counted(found, plans)
        made = in_form(given, found.schema)._jdf
        self.given.append((plans, made))
        return made

    def _partitions(self, operator: int, store: str) -> int:
        found = next(one for one in self.old.operators if one.id == operator)
        return next(one.partitions for one in found.stores if one.name == store)

    def tell(self, done: int, total: int) -> None:
        self.on_step(self.step, done, total)

    def counts(self) -> dict[tuple[int, str, str], int]:
        """What the tasks that wrote the stores have read, known when they are done."""
        return {
            (plan.operator, plan.store, plan.family): int(found.get(place))
            for plans, frame in self.given
            for found in (frame.queryExecution().observedMetrics().apply(COUNTS),)
            for place, plan in enumerate(plans)
        }


def in_form(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows as the rewriter takes them. By now they lie where they belong, so it needs no key to spread them by."""
    key = F.lit(None).cast(schema["partition_key"].dataType).alias("partition_key")
    return rows.select(key, *BYTES)


def rewritten(rows: DataFrame, plans: tuple[FamilyPlan, ...], partitions: int) -> DataFrame:
    """The rows of a store with keys and values under their new schemas, each in the partition of its key."""
    moved = next((plan for plan in plans if plan.key.mapping is not None), None)
    if moved is not None:
        rows = rows.repartition(partitions, *new_key_columns(F.col("partition_key"), moved.key))
    given = counted(rows, plans).select(*BYTES)
    return given.mapInArrow(FamiliesMigration(plans), given.schema)
