"""Rewrite state through Spark's StateRewriter: it reads every store, this changes the bytes, it writes them anew.

The change is a function of Python that the rewriter calls once for each store, with its rows as a frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.spark.checkpoint.hashing import new_key_columns
from laminae.spark.checkpoint.hdfs import encoded_rows
from laminae.state.checkpoint.model import HDFS
from laminae.state.codec.migrate import Migration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from laminae.spark.checkpoint.steps import OnStep
    from laminae.state.checkpoint.model import Checkpoint, Store
    from laminae.state.checkpoint.report import FamilyPlan, Side

REWRITER = "org.apache.spark.sql.execution.streaming.state.StateRewriter"
BYTES = ("key_bytes", "value_bytes", "column_family_name")


def rewrite(
    spark: SparkSession, old: Checkpoint, target: str, plans: tuple[FamilyPlan, ...], on_step: OnStep
) -> dict[str, list[list[str]]] | None:
    """Write the state of `old` into `target`, whose logs and schemas are there. Store ids, in checkpoint format 2."""
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # pyspark's own, without types
    change = _Change(spark, old, plans, on_step)
    jvm: Any = spark._jvm
    option = jvm.scala.Option
    # An HDFS-backed store has no raw bytes to read: the rewriter reads the empty target, and is given the rows.
    source = target if old.provider == HDFS else old.location
    rewriter = getattr(jvm, REWRITER)(
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
        found = rewriter.run()
    except Exception:
        # What happened in the callback is the cause; the JVM wraps its text alone.
        if change.problem is not None:
            raise change.problem from None
        raise
    return _store_ids(found.get()) if found.isDefined() else None


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
    done: int = 0
    problem: Exception | None = field(default=None)

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
        total = sum(len(one.stores) for one in self.old.operators)
        self.on_step(f"rewrite operator {operator}, store {store}", self.done, total)
        self.done += 1
        found = self._store(operator, store)
        if self.old.provider == HDFS:
            given = encoded_rows(self.spark, self.old, operator, found, plans[0])
            return self.spark._jsparkSession.createDataFrame(given._jdf.toJavaRDD(), rows.schema())
        if not any(plan.changes for plan in plans):
            return rows
        return rewritten(DataFrame(rows, self.spark), plans, found.partitions)._jdf

    def _store(self, operator: int, store: str) -> Store:
        found = next(one for one in self.old.operators if one.id == operator)
        return next(one for one in found.stores if one.name == store)


def rewritten(rows: DataFrame, plans: tuple[FamilyPlan, ...], partitions: int) -> DataFrame:
    """The rows of a store with keys and values under their new schemas, each in the partition of its key."""
    schema = rows.schema
    moved = next((plan for plan in plans if plan.key.mapping is not None), None)
    if moved is not None:
        rows = rows.repartition(partitions, *new_key_columns(F.col("partition_key"), moved.key))
    given = rows.select(*BYTES)
    changed = given.mapInArrow(migrating(plans), given.schema)
    key = F.lit(None).cast(schema["partition_key"].dataType).alias("partition_key")
    return changed.select(key, *BYTES)


def migrating(plans: tuple[FamilyPlan, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that runs where the rows are; it compiles the mappings once in each task."""
    sides = {plan.family: (plan.key, plan.value) for plan in plans if plan.changes}

    def migrate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled = {family: (_compiled(key), _compiled(value)) for family, (key, value) in sides.items()}
        for batch in batches:
            yield _migrated(batch, compiled)

    return migrate


def _through(migration: Migration | None, rows: pa.Array) -> pa.Array:
    return rows if migration is None else migration.batch(rows)


def _compiled(side: Side) -> Migration | None:
    return None if side.mapping is None else Migration.of(side.old, side.new, side.mapping)


def _migrated(batch: pa.RecordBatch, compiled: dict[str, tuple[Migration | None, Migration | None]]) -> pa.RecordBatch:
    """One batch; rows of several families come mixed, and go back in the order they came."""
    families = batch.column(2).dictionary_encode()
    parts: list[tuple[np.ndarray, pa.Array, pa.Array]] = []
    for number, family in enumerate(families.dictionary.to_pylist()):
        places = np.flatnonzero(families.indices.to_numpy() == number)
        keys, values = batch.column(0).take(pa.array(places)), batch.column(1).take(pa.array(places))
        key, value = compiled.get(family, (None, None))
        parts.append(
            (places, keys if key is None else key.batch(keys), values if value is None else value.batch(values))
        )
    order = pa.array(np.argsort(np.concatenate([places for places, _, _ in parts]), kind="stable")) if parts else None
    columns = [pa.concat_arrays([part[side] for part in parts]) for side in (1, 2)] if parts else batch.columns[:2]
    if len(parts) > 1:
        columns = [pc.take(column, order) for column in columns]
    return pa.RecordBatch.from_arrays([*columns, batch.column(2)], names=list(BYTES))
