"""Rewrite the state of a checkpoint: Spark's StateRewriter reads and writes every store, this module changes the rows.

RocksDB stores are read and written as bytes. An HDFS-backed store is read as columns, which the codec encodes as
UnsafeRows. Rows stay in their partition, or move to the partition of their new key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark_types

from laminae.spark.catalyst.streaming.state_rewriter import observed, rewrite_state
from laminae.spark.checkpoint.progress import telling_tasks
from laminae.spark.checkpoint.state_rows import COUNTS, counted, store_rows
from laminae.state.checkpoint.model import HDFS
from laminae.state.codec.families import BYTES, FamiliesMigration, FamilyEncoding
from laminae.state.mapping import Added, ElementMapping, Filled, Kept, Mapping, StructMapping, ValueMapping
from laminae.state.types import Array, Map, Struct, Type, to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from laminae.spark.catalyst.streaming.state_rewriter import StoreRows
    from laminae.spark.checkpoint.progress import OnStep
    from laminae.state.checkpoint.model import Checkpoint
    from laminae.state.checkpoint.report import FamilyPlan, Side

PARTITION = "partition_id"
ENCODED_SCHEMA = "key_bytes BINARY, value_bytes BINARY, column_family_name STRING"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result: the rows read by operator, store and column family, and the store ids in checkpoint format 2."""

    counts: dict[tuple[int, str, str], int]
    store_ids: dict[str, list[list[str]]] | None


def rewrite(
    spark: SparkSession, old: Checkpoint, target: str, plans: tuple[FamilyPlan, ...], on_step: OnStep
) -> Rewritten:
    """Write the state of `old` into `target`, which must already have its logs and schemas."""
    change = _Change(spark, old, plans, on_step)
    # An HDFS-backed store has no raw bytes to read: the rewriter reads the empty target, the change supplies rows.
    source = target if old.provider == HDFS else old.location
    with telling_tasks(spark, change.tell):
        store_ids = rewrite_state(spark, old.batch, source, target, change.changed)
    return Rewritten(change.counts(), store_ids)


@dataclass(slots=True)
class _Change:
    """The new rows of each store, and the frames that were returned for them."""

    spark: SparkSession
    old: Checkpoint
    plans: tuple[FamilyPlan, ...]
    on_step: OnStep
    written: list[tuple[tuple[FamilyPlan, ...], DataFrame]] = field(default_factory=list)
    step: str = ""

    def changed(self, state: StoreRows) -> DataFrame:
        operator, store = state.operator, state.store
        plans = tuple(plan for plan in self.plans if (plan.operator, plan.store) == (operator, store))
        self.step = f"rewrite operator {operator}, store {store}"
        self.tell(0, 1)
        partitions = self._partitions(operator, store)
        if self.old.provider == HDFS:
            rows = encoded_rows(self.spark, self.old, plans[0], partitions)
        elif any(plan.changes for plan in plans):
            rows = rewritten(state.rows, plans, partitions)
        else:
            rows = counted(state.rows, plans)
        frame = in_form(rows, state.rows.schema)
        self.written.append((plans, frame))
        return frame

    def _partitions(self, operator: int, store: str) -> int:
        stores = next(known.stores for known in self.old.operators if known.id == operator)
        return next(known.partitions for known in stores if known.name == store)

    def tell(self, done: int, total: int) -> None:
        self.on_step(self.step, done, total)

    def counts(self) -> dict[tuple[int, str, str], int]:
        """The rows read by the tasks that wrote the stores. Call it only after the rewrite has ended."""
        return {
            (plan.operator, plan.store, plan.family): rows
            for plans, frame in self.written
            for plan, rows in zip(plans, observed(frame, COUNTS), strict=True)
        }


def in_form(rows: DataFrame, schema: StructType) -> DataFrame:
    """The rows in the rewriter's schema. They are in their partitions already, so the partition key is NULL."""
    key = F.lit(None).cast(schema["partition_key"].dataType).alias("partition_key")
    return rows.select(key, *BYTES)


def rewritten(rows: DataFrame, plans: tuple[FamilyPlan, ...], partitions: int) -> DataFrame:
    """The rows of a store with keys and values in their new schemas, each in the partition of its key."""
    moved = next((plan for plan in plans if plan.key.mapping is not None), None)
    if moved is not None:
        rows = rows.repartition(partitions, *new_key_columns(F.col("partition_key"), moved.key))
    stored = counted(rows, plans).select(*BYTES)
    return stored.mapInArrow(FamiliesMigration(plans), stored.schema)


def encoded_rows(spark: SparkSession, old: Checkpoint, plan: FamilyPlan, partitions: int) -> DataFrame:
    """The rows of a store encoded with their new schemas, each in its partition."""
    rows = store_rows(spark, old.location, plan.operator, plan.store, old.batch)
    if plan.key.mapping is None:
        rows = rows.repartitionById(partitions, F.col(PARTITION))
    else:
        rows = rows.repartition(partitions, *new_key_columns(F.col("key"), plan.key))
    key = changed(F.col("key"), plan.key.old, plan.key.new, plan.key.mapping)
    value = changed(F.col("value"), plan.value.old, plan.value.new, plan.value.mapping)
    converted = counted(rows, (plan,)).select(key.alias("key"), value.alias("value"))
    return converted.mapInArrow(FamilyEncoding(plan), ENCODED_SCHEMA)


def new_key_columns(key: Column, side: Side) -> list[Column]:
    """The fields of the new key as columns over the old key, so that Spark's own hash partitioning places the rows.

    A query is partitioned by them in this order.
    """
    assert isinstance(side.mapping, StructMapping)
    return _fields(key, side.old, side.new, side.mapping)


def _fields(value: Column, old: Struct, new: Struct, mapping: StructMapping) -> list[Column]:
    columns = []
    for after, source in zip(new.fields, mapping.sources, strict=True):
        match source:
            case Kept(position, inside):
                before = old.fields[position]
                columns.append(changed(value.getField(before.name), before.type, after.type, inside).alias(after.name))
            case Added() | Filled():
                columns.append(F.lit(None).cast(_spark(after.type)).alias(after.name))
    return columns


def changed(value: Column, old: Type, new: Type, mapping: Mapping | None) -> Column:
    """A value converted to its new type."""
    match mapping, old, new:
        case StructMapping(), Struct(), Struct():
            return F.when(value.isNotNull(), F.struct(*_fields(value, old, new, mapping)))
        case ElementMapping(inside), Array(before, _), Array(after, _):
            return F.transform(value, lambda element: changed(element, before, after, inside))
        case ValueMapping(inside), Map(_, before, _), Map(_, after, _):
            return F.transform_values(value, lambda _, item: changed(item, before, after, inside))
    return value


def _spark(kind: Type) -> spark_types.DataType:
    return spark_types._parse_datatype_json_string(json.dumps(to_json(kind)))
