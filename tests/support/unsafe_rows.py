"""Random schemas, random rows of them made by Spark, random changes, and the bytes that the JVM keeps for each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from laminae.state.types import Array, Field, Leaf, Map, Struct, Type

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

# A value of each leaf type in SQL, from `{n}`, a pseudo-random whole number below a million that may be negative.
LEAVES = {
    "boolean": "{n} % 2 = 0",
    "byte": "CAST({n} % 128 AS TINYINT)",
    "short": "CAST({n} % 32768 AS SMALLINT)",
    "integer": "CAST({n} * 2001 AS INT)",
    "long": "{n} * 9000000001",
    "float": "CAST({n} / 7 AS FLOAT)",
    "double": "CASE {n} % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN double('-Inf') ELSE {n} / 3D END",
    "decimal(9,2)": "CAST({n} / 100 AS DECIMAL(9, 2))",
    "decimal(18,4)": "CAST({n} * 1000003 / 10000 AS DECIMAL(18, 4))",
    "decimal(19,0)": "CAST({n} AS DECIMAL(19, 0))",
    "decimal(38,10)": "CAST({n} * 1000000000000BD * POW(10, {n} % 4) AS DECIMAL(38, 10))",
    "string": "REPEAT('\u00e9x', CAST(ABS({n}) % 9 AS INT))",
    "binary": "CAST(REPEAT('b', CAST(ABS({n}) % 19 AS INT)) AS BINARY)",
    "date": "DATE_ADD(DATE'2026-01-01', CAST({n} AS INT))",
    "timestamp": "TIMESTAMP_MICROS({n} * 1000001)",
    "timestamp_ntz": "CAST(TIMESTAMP_MICROS({n} * 1000001) AS TIMESTAMP_NTZ)",
    "time(6)": "MAKE_TIME(CAST(ABS({n}) % 24 AS INT), 2, CAST(ABS({n}) % 60 AS DECIMAL(16, 6)))",
    "interval year to month": "MAKE_YM_INTERVAL(0, CAST({n} AS INT))",
    "interval day to second": "MAKE_DT_INTERVAL(0, 0, 0, CAST({n} / 7 AS DECIMAL(18, 6)))",
    "interval": "MAKE_INTERVAL(0, CAST({n} % 100 AS INT), 0, CAST({n} % 50 AS INT), 0, 0, 1.5)",
    "variant": 'PARSE_JSON(CONCAT(\'{{"a": [\', {n}, \', null], "b": "x"}}\'))',
    "void": "NULL",
}
NAMES = {"interval": "INTERVAL", "long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
NULLS = 0.25
UNCLEARED = Leaf("interval")
"""Spark does not clear the bytes it reserves for a NULL of this type: they are whatever the row before had there."""
KEYS = ("integer", "string", "decimal(18,4)", "date")


@dataclass(slots=True)
class Rows:
    """Makes types and SQL with one pair of dice; each value has a seed of its own."""

    dice: random.Random
    _seeds: Iterator[int]
    _names: Iterator[int]

    @classmethod
    def with_dice(cls, dice: random.Random) -> Rows:
        return cls(dice, count(dice.randrange(1000)), count())

    def struct(self, fields: int, depth: int) -> Struct:
        return Struct(tuple(self._field(depth) for _ in range(fields)))

    def _field(self, depth: int) -> Field:
        return Field(f"f{next(self._names)}", self.type(depth))

    def _added(self) -> Field:
        return next(field for field in iter(lambda: self._field(1), None) if field and field.type != UNCLEARED)

    def type(self, depth: int) -> Type:
        nested = self.dice.random() < 0.4 and depth > 0
        match self.dice.randrange(3) if nested else None:
            case 0:
                return self.struct(self.dice.randrange(1, 5), depth - 1)
            case 1:
                return Array(self.type(depth - 1))
            case 2:
                return Map(Leaf(self.dice.choice(KEYS)), self.type(depth - 1))
        return Leaf(self.dice.choice(list(LEAVES)))

    def sql(self, kind: Type) -> str:
        """An expression for a value of this type, NULL now and then."""
        made = self.value(kind)
        if kind == UNCLEARED:
            return made
        return f"IF(RAND({next(self._seeds)}) < {NULLS}, NULL, {made})"

    def value(self, kind: Type) -> str:
        match kind:
            case Leaf(name):
                return LEAVES[name].format(n=f"CAST(RANDN({next(self._seeds)}) * 200000 AS BIGINT)")
            case Struct(fields):
                pairs = (f"'{field.name}', {self.sql(field.type)}" for field in fields)
                return f"NAMED_STRUCT({', '.join(pairs)})"
            case Array(element, _):
                return f"ARRAY({', '.join(self.sql(element) for _ in range(self.dice.randrange(1, 4)))})"
            case Map(Leaf(key), value, _):
                keys = [LEAVES[key].format(n=number) for number in range(self.dice.randrange(1, 4))]
                return f"MAP({', '.join(f'{key}, {self.sql(value)}' for key in keys)})"
        raise TypeError(kind)

    def changed(self, kind: Type) -> Type:
        """The type after a change that state survives: fields added and moved, at any depth."""
        match kind:
            case Struct(fields):
                kept = [Field(field.name, self.changed(field.type)) for field in fields]
                if self.dice.random() < 0.5:
                    self.dice.shuffle(kept)
                for _ in range(self.dice.randrange(3)):
                    kept.insert(self.dice.randrange(len(kept) + 1), self._added())
                return Struct(tuple(kept))
            case Array(element, _):
                return Array(self.changed(element))
            case Map(key, value, _):
                return Map(key, self.changed(value))
        return kind


def projection(value: str, old: Type, new: Type, depth: int = 0) -> str:
    """SQL that makes the new type out of the old one, by name: what Spark itself says the rows are."""
    if old == new:
        return value
    inner = f"x{depth}"
    match old, new:
        case Struct(before), Struct(after):
            types = {field.name: field.type for field in before}
            parts = (
                projection(f"{value}.{field.name}", types[field.name], field.type, depth)
                if field.name in types
                else f"CAST(NULL AS {ddl(field.type)})"
                for field in after
            )
            pairs = ", ".join(f"'{field.name}', {part}" for field, part in zip(after, parts, strict=True))
            return f"IF({value} IS NULL, NULL, NAMED_STRUCT({pairs}))"
        case Array(before, _), Array(after, _):
            return f"TRANSFORM({value}, {inner} -> {projection(inner, before, after, depth + 1)})"
        case Map(_, before, _), Map(_, after, _):
            return f"TRANSFORM_VALUES({value}, (k{depth}, {inner}) -> {projection(inner, before, after, depth + 1)})"
    raise TypeError((old, new))


def ddl(kind: Type) -> str:
    match kind:
        case Leaf(name):
            return NAMES.get(name, name)
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{field.name}: {ddl(field.type)}' for field in fields)}>"
        case Array(element, _):
            return f"ARRAY<{ddl(element)}>"
        case Map(key, value, _):
            return f"MAP<{ddl(key)}, {ddl(value)}>"
    raise TypeError(kind)


def jvm_bytes(frame: DataFrame) -> list[bytes]:
    """The rows of a frame as the UnsafeRows that Spark itself makes of them."""
    rows = frame._jdf.queryExecution().executedPlan().executeCollect()
    return [bytes(row.getBytes()) for row in rows]
