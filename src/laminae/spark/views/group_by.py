"""The input delta of a GROUP BY kernel: pre-aggregated per group by the JVM and partitioned by shard.

Keys are grouped and hashed in canonical types, so that widening a key within its type family moves no group to another
shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark

from laminae.schema.nesting import nullable_inside
from laminae.spark.catalyst.column_functions import double_bits
from laminae.spark.catalyst.key_hash import canonical_key, hash_of
from laminae.spark.catalyst.literals import type_sql
from laminae.spark.catalyst.plans.logical_plan import optimized_grouping
from laminae.spark.catalyst.types import arrow_type
from laminae.spark.tasks.shard_task import SHARD
from laminae.spark.tasks.task_reports import REPORT
from laminae.spark.views.storable import refuse_unstorable
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.accumulation import aggregate_of, argument_of
from laminae.views.kernels.group_by.aggregates import (
    HIGH,
    SHORT,
    SLOT,
    Aggregate,
    DecimalTotal,
    FloatTotal,
    Function,
    IntegerTotal,
    Tally,
    ValueSet,
)
from laminae.views.kernels.group_by.delta import GLOBAL_HASH
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from laminae.views.kernels.group_by.aggregates import Accumulator
    from laminae.views.operators import GroupBy

W = quoted(WEIGHT)
NOTHING = "0L"
LOW = 0xFFFFFFFF
BITS = "__laminae_bits_"


def aggregate_over(view: str, group: GroupBy, frame: DataFrame) -> Aggregate:
    """The kernel's description of a GROUP BY over this input. Spark's analyser determines the type of each result."""
    used = {*group.keys, *(call.argument for call in group.calls)}
    own = [field for field in frame.schema.fields if field.name in used]
    refuse_unstorable(view, own)
    types = {field.name: nullable_inside(arrow_type(field.dataType)) for field in own}
    calls = [F.expr(_result(call.function, call.argument)).alias(call.name) for call in group.calls]
    results = frame.agg(*calls).schema.fields if calls else []
    return aggregate_of(
        view, group, types, {result.name: nullable_inside(arrow_type(result.dataType)) for result in results}
    )


def _result(function: Function, argument: str | None) -> str:
    if argument is None:
        return "COUNT(*)"
    distinct = "DISTINCT " if function is Function.COUNT_DISTINCT else ""
    name = "COUNT" if function is Function.COUNT_DISTINCT else function.value
    return f"{name}({distinct}{quoted(argument)})"


def grouped(frame: DataFrame, aggregate: Aggregate, shards: int, fresh: frozenset[str] | None = None) -> DataFrame:
    """Partial aggregates: hash, shard, keys, `_weight`, slot and the accumulators' columns, and the reports of `frame`.

    `spark.sql.shuffle.partitions` must equal the number of shards. With `fresh`, the rows contribute only to these
    accumulators: they add zero to the weights of groups and to all other accumulators.
    """
    keys = [field.name for field in aggregate.keys]
    types = {field.name: field.dataType for field in frame.schema.fields}
    has_reports = REPORT in types
    for accumulator in aggregate.accumulators:
        if isinstance(accumulator, FloatTotal):
            frame = frame.withColumn(BITS + accumulator.id, _bits(frame, argument_of(accumulator)))
    canonical = [F.expr(canonical_key(quoted(name), types[name])).alias(name) for name in keys]
    non_keys = [F.col(quoted(name)) for name in frame.columns if name not in keys]
    frame = frame.select(*canonical, *non_keys)
    valued = {
        n: accumulator
        for n, accumulator in enumerate(aggregate.accumulators, 1)
        if isinstance(accumulator, FloatTotal | ValueSet)
    }
    names = [name for accumulator in valued.values() for name in _value_names(accumulator)]
    slots = [SLOT, *names] if valued else []
    if not keys and (valued or has_reports):
        frame = frame.unionByName(_nothing(frame))
    if valued or has_reports:
        # If grouped by more than the keys, Spark would spread a shard over several tasks.
        frame = frame.repartition(shards, *map(quoted, keys)) if keys else frame.repartition(1)
    if valued:
        filled = [number for number, accumulator in valued.items() if fresh is None or accumulator.id in fresh]
        rows = ", ".join(_slot_row(number, valued) for number in (0, *filled))
        frame = frame.selectExpr("*", f"inline(array({rows}))")
        frame = frame.where(f"{SLOT} = 0 OR NOT ({_is_nothing(valued)})")
    reports = [REPORT] if has_reports else []
    added_up = list(_sums(aggregate, bool(valued), types, fresh))
    sums = [F.expr(sql).alias(name) for name, sql in added_up]
    added = frame.groupBy(*map(quoted, keys), *slots, *reports).agg(*sums)
    hashed = ", ".join(quoted(name) for name in keys)
    own = (
        [f"{hash_of(hashed)} AS {HASH}", f"CAST(pmod(hash({hashed}), {shards}) AS INT) AS {SHARD}"]
        if keys
        else [f"{GLOBAL_HASH}L AS {HASH}", f"0 AS {SHARD}"]
    )
    declared = [f"CAST({quoted(name)} AS {type_sql(types[name])}) AS {quoted(name)}" for name in keys]
    rest = [quoted(name) for name in [*slots, *reports, *(name for name, _ in added_up)]]
    groups = added.selectExpr(*own, *declared, *rest)
    if keys and not _groups_by(added, len(keys) + len(slots) + len(reports)):
        return groups.repartitionById(shards, SHARD)
    return groups


def _groups_by(added: DataFrame, expressions: int) -> bool:
    """Whether the optimised plan still groups by this many expressions, none of them constant.

    The optimiser removes keys that are constant or equal to another key (FoldablePropagation,
    RemoveLiteralFromGroupExpressions, RemoveRepetitionFromGroupExpressions) and shuffles by the remaining ones. One
    task would then get groups of several shards.
    """
    grouping = optimized_grouping(added)
    if grouping is None:
        return True  # the optimiser replaced the plan by an empty relation
    return len(grouping) == expressions and not any(is_constant for is_constant in grouping)


def _nothing(frame: DataFrame) -> DataFrame:
    """A row of weight 0: as in SQL, an aggregate without keys has one group even if there are no rows.

    Spark produces this group itself, but not when it also groups by slots or reports.
    """
    one = frame.sparkSession.range(1)
    columns = [
        F.lit(0 if column.name == WEIGHT else None).cast(column.dataType).alias(column.name) for column in frame.schema
    ]
    return one.select(*columns)


def _sums(
    aggregate: Aggregate, has_slots: bool, types: Mapping[str, spark.DataType], fresh: frozenset[str] | None
) -> Iterator[tuple[str, str]]:
    """(name, SQL) of the columns that the JVM sums. Columns of linear accumulators are zero in rows of a slot."""
    of_groups = W if fresh is None else f"IF({SLOT} = 0, 0L, {W})" if has_slots else NOTHING
    yield WEIGHT, f"COALESCE(SUM({of_groups}), 0L)"
    is_linear = f"{SLOT} = 0 AND " if has_slots else ""
    for accumulator in aggregate.accumulators:
        name, value = accumulator.id, quoted(argument_of(accumulator))
        weight = W if fresh is None or name in fresh else NOTHING
        if not isinstance(accumulator, ValueSet):
            yield f"{name}_n", f"COALESCE(SUM(CASE WHEN {is_linear}{value} IS NOT NULL THEN {weight} ELSE 0L END), 0L)"
        match accumulator:
            case IntegerTotal():
                linear = f"CASE WHEN {is_linear}TRUE THEN CAST({value} AS BIGINT) END" if has_slots else value
                wide = f"CAST({linear} AS BIGINT)"
                yield f"{name}_hi", f"COALESCE(SUM(shiftright({wide}, 32) * {weight}), 0L)"
                yield f"{name}_lo", f"COALESCE(SUM(({wide} & {LOW}L) * {weight}), 0L)"
            case DecimalTotal(scale=scale):
                kind, low = types[argument_of(accumulator)], value
                if isinstance(kind, spark.DecimalType) and kind.precision > SHORT:
                    exact = f"CAST({value} AS DECIMAL(38, {scale}))"
                    unit = f"CAST('1E{HIGH - scale}' AS DECIMAL(38, {scale}))"
                    high, low = f"CAST({exact} div {unit} AS DECIMAL(19, 0)) * {weight}", f"({exact} % {unit})"
                    linear = f"CASE WHEN {is_linear}TRUE THEN {high} END" if has_slots else high
                    yield f"{name}_high", f"CAST(SUM({linear}) AS DECIMAL(38, 0))"
                product = _weighted(low, scale, weight)
                linear = f"CASE WHEN {is_linear}TRUE THEN {product} END" if has_slots else product
                yield f"{name}_sum", f"SUM({linear})"
            case FloatTotal():
                for part in range(3):
                    yield f"{name}_p{part}", f"COALESCE(SUM({quoted(f'{name}_part{part}')} * {W}), 0L)"
            case Tally() | ValueSet():
                pass


def _weighted(value: str, scale: int, weight: str) -> str:
    wide = f"DECIMAL(38, {scale})"
    exact = f"CAST({value} AS {wide})"
    added = f"aggregate(sequence(1L, abs({weight})), CAST(0 AS {wide}), (s, i) -> CAST(s + {exact} AS {wide}))"
    usual = f"WHEN {weight} = 1 THEN {exact} WHEN {weight} = -1 THEN -{exact} WHEN {weight} = 0 THEN CAST(0 AS {wide})"
    return f"CASE {usual} WHEN {weight} > 0 THEN {added} ELSE -{added} END"


def _value_names(found: Accumulator) -> tuple[str, ...]:
    """The grouping columns that distinguish the rows of a slot."""
    return (f"{found.id}_bin",) if isinstance(found, FloatTotal) else (f"{found.id}_value",)


def _slot_row(number: int, valued: Mapping[int, Accumulator]) -> str:
    fields = [f"'{SLOT}', {number}"]
    for place, accumulator in valued.items():
        values = _slot_values(accumulator)
        fields += [f"'{name}', {sql if place == number else f'IF(TRUE, NULL, {sql})'}" for name, sql in values]
    return f"named_struct({', '.join(fields)})"


def _slot_values(found: Accumulator) -> list[tuple[str, str]]:
    value = quoted(argument_of(found))
    if not isinstance(found, FloatTotal):
        return [(f"{found.id}_value", value)]
    return [(f"{found.id}_bin", _bin(found)), *((f"{found.id}_part{n}", _part(found, n)) for n in range(3))]


def _is_nothing(valued: Mapping[int, Accumulator]) -> str:
    """The SQL condition for slot rows without a value; NULLs are skipped."""
    tests = [
        f"({SLOT} = {number} AND {quoted(_value_names(accumulator)[0])} IS NULL)"
        for number, accumulator in valued.items()
    ]
    return " OR ".join(tests)


def _bits(frame: DataFrame, argument: str) -> Column:
    # Adding zero turns -0.0 into 0.0: SQL treats them as one value.
    return double_bits(frame.sparkSession, f"CAST({quoted(argument)} AS DOUBLE) + 0D")


# A double as `laminae.zset.exact_float` represents it: sign, fraction, and an exponent in bins of 32 bits.
def _exponent(bits: str) -> str:
    return f"(shiftright({bits}, 52) & 2047L)"


def _bin(found: FloatTotal) -> str:
    bits = quoted(BITS + found.id)
    special = f"IF(({bits} & {(1 << 52) - 1}L) <> 0, 64L, IF({bits} < 0, 66L, 65L))"
    return f"IF({_exponent(bits)} = 2047, {special}, greatest({_exponent(bits)} - 1, 0L) div 32)"


def _part(found: FloatTotal, number: int) -> str:
    """The signed 32-bit digit `number` of the shifted integer fraction. NaN and the infinities are counted as 1."""
    bits = quoted(BITS + found.id)
    exponent, fraction = _exponent(bits), f"({bits} & {(1 << 52) - 1}L)"
    whole = f"IF({exponent} = 0, {fraction}, {fraction} | {1 << 52}L)"
    shift = f"CAST(greatest({exponent} - 1, 0L) % 32 AS INT)"
    low = f"shiftleft({whole} & {LOW}L, {shift})"
    high = f"(shiftleft(shiftright({whole}, 32), {shift}) + shiftright({low}, 32))"
    digits = (f"({low} & {LOW}L)", f"({high} & {LOW}L)", f"shiftright({high}, 32)")
    special = "1L" if number == 0 else "0L"
    return f"IF({exponent} = 2047, {special}, IF({bits} < 0, -1L, 1L) * {digits[number]})"
