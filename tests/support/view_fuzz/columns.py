"""Columns of random sources: their types, odd values of each, and names of every sort."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.schema.identifiers import collation_key, quoted
from tests.support.hostile_names import HOSTILE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
STRINGS = (
    "", "a", "b", "A", "it's", 'd"q', "back`tick", "\\n", "é", "e\u0301", "😀", " x ", "10", "${env:HOME}", "a,b",
)  # fmt: skip
INSTANTS = tuple(
    BEGIN + timedelta(minutes=17 * n, microseconds=n) for n in (0, 1, 2, 3, 30, 31, 84, 85, 120000, -400000)
)
STRUCT = pa.struct([pa.field("x", pa.int32()), pa.field("y.z", pa.string())])

REQUIRED = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y.z", pa.string())])


@dataclass(frozen=True)
class Kind:
    """A SQL type, its family in the grammar of expressions, its Arrow type and values of it."""

    sql: str
    family: str
    arrow: pa.DataType
    value: Callable[[Random], object]

    def draw(self, random: Random) -> object:
        return None if random.random() < 0.15 else self.value(random)


def _struct(random: Random) -> dict[str, object]:
    return {"x": random.choice((None, 1, 2)), "y.z": random.choice((None, "a", "b"))}


KINDS = (
    Kind("INT", "int", pa.int32(), lambda r: r.choice((0, 1, 2, 3, -1, 100))),
    Kind("BIGINT", "int", pa.int64(), lambda r: r.choice((0, 1, 2, -7, 2**40))),
    Kind("SMALLINT", "int", pa.int16(), lambda r: r.randint(-2, 3)),
    Kind("TINYINT", "int", pa.int8(), lambda r: r.randint(-2, 3)),
    Kind("DOUBLE", "double", pa.float64(), lambda r: r.choice((0.0, -0.0, 0.5, 1.5, -2.25, 4.0))),
    Kind("FLOAT", "double", pa.float32(), lambda r: r.choice((0.0, -0.0, 0.5, 1.5, -2.25, 8.0))),
    Kind("DECIMAL(10, 2)", "decimal", pa.decimal128(10, 2), lambda r: Decimal(r.randint(-300, 300)) / 100),
    Kind("DECIMAL(20, 5)", "decimal", pa.decimal128(20, 5), lambda r: Decimal(r.randint(-9, 9)) / 8),
    Kind("STRING", "string", pa.string(), lambda r: r.choice(STRINGS)),
    Kind("BINARY", "binary", pa.binary(), lambda r: r.choice((b"", b"a", b"\xff\x00", b"b"))),
    Kind("BOOLEAN", "boolean", pa.bool_(), lambda r: r.random() < 0.5),
    Kind("DATE", "date", pa.date32(), lambda r: date(2024, 1, 1) + timedelta(days=r.choice((0, 1, 31, 366, -20000)))),
    Kind("TIMESTAMP", "timestamp", pa.timestamp("us", tz="UTC"), lambda r: r.choice(INSTANTS)),
    Kind("TIMESTAMP_NTZ", "local", pa.timestamp("us"), lambda r: r.choice(INSTANTS).replace(tzinfo=None)),
    Kind("STRUCT<x: INT, `y.z`: STRING>", "struct", STRUCT, _struct),
    Kind("STRUCT<x: INT NOT NULL, `y.z`: STRING>", "struct", REQUIRED, lambda r: _struct(r) | {"x": r.randint(1, 2)}),
    Kind("ARRAY<INT>", "array", pa.list_(pa.int32()), lambda r: r.choices((None, 1, 2), k=r.randint(0, 3))),
    Kind("MAP<STRING, INT>", "map", pa.map_(pa.string(), pa.int32()), lambda r: r.choice(({}, {"a": 1}, {"b": 0}))),
)  # fmt: skip
BY_SQL = {kind.sql: kind for kind in KINDS}
_WIDENED = (
    Kind("DECIMAL(14, 2)", "decimal", pa.decimal128(14, 2), BY_SQL["DECIMAL(10, 2)"].value),
    Kind("INT", "int", pa.int32(), lambda r: r.choice((0, 1, 2, -3, 70000))),
)
WIDER = {
    "TINYINT": BY_SQL["SMALLINT"],
    "SMALLINT": _WIDENED[1],
    "INT": BY_SQL["BIGINT"],
    "FLOAT": BY_SQL["DOUBLE"],
    "DECIMAL(10, 2)": _WIDENED[0],
}
"""What a column of this type may be widened to."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def declared(self) -> str:
        return f"{self.sql} {self.kind.sql}"


class Names:
    """Names that differ from each other for every reader: half of them hostile."""

    def __init__(self, random: Random, taken: tuple[str, ...] = ()) -> None:
        self._random, self._taken = random, {collation_key(name) for name in taken}

    def next(self, prefix: str, hostile: float = 0.4) -> str:
        while True:
            name = f"{prefix}{len(self._taken)}"
            if self._random.random() < hostile:
                name = self._random.choice(HOSTILE_NAMES)
            if collation_key(name) not in self._taken:
                self._taken.add(collation_key(name))
                return name
