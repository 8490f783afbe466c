"""The delta of a GROUP BY as the kernel takes it: added up by the JVM for each group, and on the right shard.

Keys are grouped and hashed in canonical types, so that widening a key within its family moves no group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by
from pyspark.sql import types as spark
from pyspark.sql.classic.column import Column as ClassicColumn

from laminae.spark.java import EXPRESSIONS, TO_SEQUENCES, java_class, scala_object
from laminae.spark.types import arrow_type
from laminae.spark.views.notes import NOTE
from laminae.spark.views.tasks import SHARD
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.accumulation import aggregate_of, argument_of
from laminae.views.kernels.aggregates import (
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
from laminae.views.kernels.delta import GLOBAL_HASH
from laminae.views.planner import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from laminae.views.kernels.aggregates import Accumulator
    from laminae.views.operators import GroupBy

W = quoted(WEIGHT)
NOTHING = "0L"
LOW = 0xFFFFFFFF
BITS = "_bits_"


def aggregate_over(view: str, group: GroupBy, frame: DataFrame) -> Aggregate:
    """What the kernel needs to know of a GROUP BY over this input; Spark says which type each result has."""
    types = {field.name: arrow_type(field.dataType) for field in frame.schema.fields}
    calls = [F.expr(_result(call.function, call.argument)).alias(call.name) for call in group.calls]
    found = frame.agg(*calls).schema.fields if calls else []
    return aggregate_of(view, group, types, {field.name: arrow_type(field.dataType) for field in found})


def _result(function: Function, argument: str | None) -> str:
    if argument is None:
        return "COUNT(*)"
    distinct = "DISTINCT " if function is Function.COUNT_DISTINCT else ""
    name = "COUNT" if function is Function.COUNT_DISTINCT else function.value
    return f"{name}({distinct}{quoted(argument)})"


def grouped(frame: DataFrame, aggregate: Aggregate, shards: int, fresh: frozenset[str] | None = None) -> DataFrame:
    """`_hash`, `_shard`, the keys, `_weight`, `_slot` and what the accumulators name. Notes of `frame` come along.

    The session must shuffle into as many partitions as there are shards. `fresh` accumulators alone are given anything:
    to the groups and to all others the rows add nothing.
    """
    keys = [field.name for field in aggregate.keys]
    types = {field.name: field.dataType for field in frame.schema.fields}
    has_notes = NOTE in types
    for found in aggregate.accumulators:
        if isinstance(found, FloatTotal):
            frame = frame.withColumn(BITS + found.id, _bits(frame, argument_of(found)))
    canonical = [F.expr(canonical_key(quoted(name), types[name])).alias(name) for name in keys]
    others = [F.col(quoted(name)) for name in frame.columns if name not in keys]
    frame = frame.select(*canonical, *others)
    valued = {n: each for n, each in enumerate(aggregate.accumulators, 1) if isinstance(each, FloatTotal | ValueSet)}
    names = [name for each in valued.values() for name in _value_names(each)]
    slots = [SLOT, *names] if valued else []
    if not keys and (valued or has_notes):
        frame = frame.unionByName(_nothing(frame))
    if valued or has_notes:
        # Grouped by more than the keys, Spark would spread a shard over several tasks.
        frame = frame.repartition(shards, *map(quoted, keys)) if keys else frame.repartition(1)
    if valued:
        filled = [number for number, each in valued.items() if fresh is None or each.id in fresh]
        rows = ", ".join(_slot_row(number, valued) for number in (0, *filled))
        frame = frame.selectExpr("*", f"inline(array({rows}))")
        frame = frame.where(f"{SLOT} = 0 OR NOT ({_is_nothing(valued)})")
    notes = [NOTE] if has_notes else []
    added_up = list(_sums(aggregate, bool(valued), types, fresh))
    sums = [F.expr(sql).alias(name) for name, sql in added_up]
    added = frame.groupBy(*map(quoted, keys), *slots, *notes).agg(*sums)
    hashed = ", ".join(quoted(name) for name in keys)
    own = (
        [f"{hash_of(hashed)} AS {HASH}", f"CAST(pmod(hash({hashed}), {shards}) AS INT) AS {SHARD}"]
        if keys
        else [f"{GLOBAL_HASH}L AS {HASH}", f"0 AS {SHARD}"]
    )
    declared = [f"CAST({quoted(name)} AS {types[name].simpleString()}) AS {quoted(name)}" for name in keys]
    rest = [quoted(name) for name in [*slots, *notes, *(name for name, _ in added_up)]]
    return added.selectExpr(*own, *declared, *rest)


def _nothing(frame: DataFrame) -> DataFrame:
    """A row of weight 0: without keys there is one group also where there are no rows, as in SQL.

    Spark gives it by itself unless it groups by something else.
    """
    one = frame.sparkSession.range(1)
    columns = [F.lit(0 if each.name == WEIGHT else None).cast(each.dataType).alias(each.name) for each in frame.schema]
    return one.select(*columns)


def hash_of(keys: str) -> str:
    """The hash by which a group is found in its trace, which then looks at the keys themselves."""
    return f"xxhash64({keys})"


def canonical_key(column: str, kind: spark.DataType) -> str:
    """The key in the type that it is hashed in, from its SQL and its own type."""
    match kind:
        case spark.ByteType() | spark.ShortType() | spark.IntegerType():
            return f"CAST({column} AS BIGINT)"
        case spark.FloatType():
            return f"CAST({column} AS DOUBLE)"
        case spark.DecimalType():
            return f"CAST({column} AS DECIMAL(38, {kind.scale}))"
    return column


def _sums(
    aggregate: Aggregate, has_slots: bool, types: Mapping[str, spark.DataType], fresh: frozenset[str] | None
) -> Iterator[tuple[str, str]]:
    """The columns that the JVM adds up. Those of the linear rows are zero on the rows of a slot."""
    of_groups = W if fresh is None else f"IF({SLOT} = 0, 0L, {W})" if has_slots else NOTHING
    yield WEIGHT, f"COALESCE(SUM({of_groups}), 0L)"
    is_linear = f"{SLOT} = 0 AND " if has_slots else ""
    for found in aggregate.accumulators:
        name, value = found.id, quoted(argument_of(found))
        weight = W if fresh is None or name in fresh else NOTHING
        if not isinstance(found, ValueSet):
            yield f"{name}_n", f"COALESCE(SUM(CASE WHEN {is_linear}{value} IS NOT NULL THEN {weight} ELSE 0L END), 0L)"
        match found:
            case IntegerTotal():
                linear = f"CASE WHEN {is_linear}TRUE THEN CAST({value} AS BIGINT) END" if has_slots else value
                wide = f"CAST({linear} AS BIGINT)"
                yield f"{name}_hi", f"COALESCE(SUM(shiftright({wide}, 32) * {weight}), 0L)"
                yield f"{name}_lo", f"COALESCE(SUM(({wide} & {LOW}L) * {weight}), 0L)"
            case DecimalTotal(scale=scale):
                kind, low = types[argument_of(found)], value
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
    """The columns that tell rows of a slot apart."""
    return (f"{found.id}_bin",) if isinstance(found, FloatTotal) else (f"{found.id}_value",)


def _slot_row(number: int, valued: Mapping[int, Accumulator]) -> str:
    fields = [f"'{SLOT}', {number}"]
    for place, found in valued.items():
        values = _slot_values(found)
        fields += [f"'{name}', {sql if place == number else f'IF(TRUE, NULL, {sql})'}" for name, sql in values]
    return f"named_struct({', '.join(fields)})"


def _slot_values(found: Accumulator) -> list[tuple[str, str]]:
    value = quoted(argument_of(found))
    if not isinstance(found, FloatTotal):
        return [(f"{found.id}_value", value)]
    return [(f"{found.id}_bin", _bin(found)), *((f"{found.id}_part{n}", _part(found, n)) for n in range(3))]


def _is_nothing(valued: Mapping[int, Accumulator]) -> str:
    """Whether the row of a slot has no value: NULLs are skipped."""
    tests = [f"({SLOT} = {number} AND {quoted(_value_names(found)[0])} IS NULL)" for number, found in valued.items()]
    return " OR ".join(tests)


def _bits(frame: DataFrame, argument: str) -> Column:
    """The bits of a double as a BIGINT: Java has a name for it and Spark's SQL has none."""
    jvm: Any = frame.sparkSession.sparkContext._jvm
    utils = java_class(jvm, EXPRESSIONS)
    # Adding zero makes one of the two zeros, which are one value in SQL.
    value = utils.expression(F.expr(f"CAST({quoted(argument)} AS DOUBLE) + 0D")._jc)
    to_sequence = java_class(jvm, TO_SEQUENCES).toSeq
    empty, one = to_sequence([]), to_sequence([value])
    none = scala_object(jvm, "scala.None")
    kind = java_class(jvm, "org.apache.spark.sql.types.DataType").fromDDL("BIGINT")
    owner = java_class(jvm, "java.lang.Class").forName("java.lang.Double")
    node = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke")(
        owner, kind, "doubleToRawLongBits", one, empty, True, True, True, none
    )
    return ClassicColumn(utils.column(node))


# A double as `laminae.zset.exact_float` has it: sign, fraction, and a place in bins of 32 bits.
def _exponent(bits: str) -> str:
    return f"(shiftright({bits}, 52) & 2047L)"


def _bin(found: FloatTotal) -> str:
    bits = quoted(BITS + found.id)
    special = f"IF(({bits} & {(1 << 52) - 1}L) <> 0, 64L, IF({bits} < 0, 66L, 65L))"
    return f"IF({_exponent(bits)} = 2047, {special}, greatest({_exponent(bits)} - 1, 0L) div 32)"


def _part(found: FloatTotal, number: int) -> str:
    """The 32-bit digits of the integer, each with the sign. NaN and the infinities count as one."""
    bits = quoted(BITS + found.id)
    exponent, fraction = _exponent(bits), f"({bits} & {(1 << 52) - 1}L)"
    whole = f"IF({exponent} = 0, {fraction}, {fraction} | {1 << 52}L)"
    shift = f"CAST(greatest({exponent} - 1, 0L) % 32 AS INT)"
    low = f"shiftleft({whole} & {LOW}L, {shift})"
    high = f"(shiftleft(shiftright({whole}, 32), {shift}) + shiftright({low}, 32))"
    digits = (f"({low} & {LOW}L)", f"({high} & {LOW}L)", f"shiftright({high}, 32)")
    special = "1L" if number == 0 else "0L"
    return f"IF({exponent} = 2047, {special}, IF({bits} < 0, -1L, 1L) * {digits[number]})"
