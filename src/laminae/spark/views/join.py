"""The input of a join kernel: the changes of both sides as one tagged union, partitioned by shard in one shuffle.

Keys are hashed in the canonical form of the type in which Spark compares the two sides, so that widening a key within
its type family moves no row to another shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.errors import QueryFailed
from laminae.schema.nesting import nullable_inside
from laminae.spark.catalyst.key_hash import canonical_key, canonical_type, compared_type, hash_of
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.types import arrow_type
from laminae.spark.tasks.shard_task import INPUT, SHARD
from laminae.spark.tasks.task_reports import REPORT
from laminae.spark.views.storable import refuse_unstorable
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.accumulation import has_no_order
from laminae.views.kernels.join.kernel import EquiJoin
from laminae.views.kernels.join.sides import ROW, JoinSide
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from laminae.views.operators import Join

KEY = "__laminae_k"
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class JoinTypes:
    """The columns of both sides, and for each key and residual comparison the type in which Spark compares it."""

    sides: tuple[StructType, StructType]
    keys: tuple[DataType, ...]
    residual: tuple[DataType, ...]

    def columns(self, operator: Join, side: int) -> dict[str, DataType]:
        """The columns of a side as they are stored. Those of residual comparisons have the common type."""
        types = {field.name: field.dataType for field in self.sides[side].fields}
        for comparison, kind in zip(operator.residual, self.residual, strict=True):
            types[(comparison.left, comparison.right)[side]] = kind
        return types


def join_types(spark: SparkSession, operator: Join, left: StructType, right: StructType) -> JoinTypes:
    def compared(a: str, b: str) -> DataType:
        return compared_type(spark, left[a].dataType, right[b].dataType)

    keys = tuple(compared(key.left, key.right) for key in operator.keys)
    return JoinTypes((left, right), keys, tuple(compared(each.left, each.right) for each in operator.residual))


def equi_join(view: str, operator: Join, types: JoinTypes, wanted: frozenset[str] | None) -> EquiJoin:
    """The kernel's description of a join. `wanted` are the output columns that are read, in lower case; None: all."""
    keys = tuple(
        pa.field(f"{KEY}{n}", nullable_inside(arrow_type(canonical_type(kind)))) for n, kind in enumerate(types.keys)
    )
    sides = []
    for number, name in enumerate(SIDES):
        refuse_unstorable(view, types.sides[number].fields)
        columns = types.columns(operator, number)
        fields = tuple(pa.field(column, nullable_inside(arrow_type(kind))) for column, kind in columns.items())
        for field in (*keys, *fields):
            if has_no_order(field.type):
                problem = f"column {field.name} of a join of view {view} has a MAP or VARIANT in it, which has no order"
                raise QueryFailed(problem=f"{problem}: use to_json, or map_entries and array_sort")
        sides.append(JoinSide(name, keys, fields))
    # A table without columns would lose its rows.
    outputs = tuple(name for name in operator.columns if wanted is None or name.casefold() in wanted)
    outputs = outputs or operator.columns[:1]
    null_safe = tuple(key.is_null_safe for key in operator.keys)
    return EquiJoin(view, operator.kind, sides[0], sides[1], null_safe, operator.residual, outputs)


def tagged_union(
    operator: Join, types: JoinTypes, left: DataFrame | None, right: DataFrame | None, shards: int
) -> DataFrame:
    """The changes of the sides that have some, as the kernel's task reads them, and their reports."""
    frames = [(number, frame) for number, frame in enumerate((left, right)) if frame is not None]
    has_reports = any(REPORT in frame.columns for _, frame in frames)
    first, *rest = (_tagged(operator, types, number, frame, shards, has_reports) for number, frame in frames)
    union = first.unionAll(rest[0]) if rest else first
    return union.repartitionById(shards, F.coalesce(F.col(SHARD), F.lit(0)))


def _tagged(
    operator: Join, types: JoinTypes, number: int, frame: DataFrame, shards: int, has_reports: bool
) -> DataFrame:
    names = [(key.left, key.right)[number] for key in operator.keys]
    keys = [_key(quoted(name), kind) for name, kind in zip(names, types.keys, strict=True)]
    keyed = frame.selectExpr("*", *(f"{sql} AS {KEY}{n}" for n, sql in enumerate(keys)))
    hashed = ", ".join(f"{KEY}{n}" for n in range(len(keys)))
    own = [
        f"CAST(pmod(hash({hashed}), {shards}) AS INT) AS {SHARD}",
        f"{number} AS {INPUT}",
        f"{hash_of(hashed)} AS {HASH}",
        *(f"{KEY}{n}" for n in range(len(keys))),
    ]
    row = [_key(quoted(name), kind) for name, kind in types.columns(operator, number).items()]
    own.append(f"{hash_of(', '.join(row))} AS {ROW}")
    columns = []
    for side in range(len(SIDES)):
        for name, kind in types.columns(operator, side).items():
            value = quoted(name) if side == number else "NULL"
            columns.append(f"CAST({value} AS {type_sql(kind)}) AS {quoted(name)}")
    report = [REPORT if REPORT in frame.columns else f"CAST(NULL AS STRING) AS {REPORT}"] if has_reports else []
    return keyed.selectExpr(*own, *columns, WEIGHT, *report)


def _key(column: str, kind: DataType) -> str:
    return canonical_key(f"CAST({column} AS {type_sql(kind)})", kind)
