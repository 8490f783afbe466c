"""The schema of a trace: key, value and payload columns, and how rows with the same key are combined.

It determines the layout of a run: `_hash`, keys, values, payload, `_weight`, sorted by hash and then by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema
from laminae.zset.changelog import WEIGHT as WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

HASH = "_hash"


class Discipline(Enum):
    """REPLACE: the latest row of a key wins; weight 0 is a tombstone.

    SUM: a Z-set; weights and payload of rows with equal (key, value) are added, and rows whose sums are all zero
    vanish.
    """

    REPLACE = "replace"
    SUM = "sum"


# 64-bit offsets: a run of 10M rows may hold more than 2 GB of text, and Arrow does not check for overflow.
_STORED = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class TraceSpec:
    """`keys` identify a group, `values` a row within a group; `payload` is stored with the row.

    NULL is a valid key value, so the declared nullability of a key is ignored. `late` are keys that older runs lack:
    they are NULL there, which changes no hash.
    """

    name: str
    discipline: Discipline
    keys: tuple[str, ...]
    values: tuple[str, ...]
    payload: tuple[str, ...]
    schema: pa.Schema
    keeps_tombstones: bool = False
    late: tuple[str, ...] = ()

    @classmethod
    def replace(
        cls, name: str, keys: Iterable[pa.Field], payload: Iterable[pa.Field], *, keeps_tombstones: bool = False
    ) -> TraceSpec:
        """One row per key. Tombstones are dropped when no older run is left, unless `keeps_tombstones`."""
        return cls._of(name, Discipline.REPLACE, tuple(keys), (), tuple(payload), keeps_tombstones)

    @classmethod
    def sum(
        cls, name: str, keys: Iterable[pa.Field], values: Iterable[pa.Field], payload: Iterable[pa.Field] = ()
    ) -> TraceSpec:
        """A Z-set of (key, value) rows; payload columns must be int64 and are added like weights."""
        added = tuple(payload)
        if wrong := [field for field in added if field.type != pa.int64()]:
            raise InvalidSchema(path=wrong[0].name, problem=f"{wrong[0].type} cannot be added up in a trace, int64 can")
        return cls._of(name, Discipline.SUM, tuple(keys), tuple(values), added, False)

    @classmethod
    def _of(
        cls,
        name: str,
        discipline: Discipline,
        keys: tuple[pa.Field, ...],
        values: tuple[pa.Field, ...],
        payload: tuple[pa.Field, ...],
        keeps_tombstones: bool,
    ) -> TraceSpec:
        named = [field.with_nullable(True) for field in (*keys, *values)]
        fields = [stored(field) for field in (*named, *payload)]
        if clash := [field.name for field in fields if field.name in (HASH, WEIGHT)]:
            raise InvalidSchema(path=clash[0], problem="the name is used by the trace itself")
        if len({field.name for field in fields}) != len(fields):
            twice = next(field.name for field in fields if [other.name for other in fields].count(field.name) > 1)
            raise InvalidSchema(path=twice, problem="the name occurs twice in the trace")
        own = pa.field(HASH, pa.int64(), nullable=False), pa.field(WEIGHT, pa.int64(), nullable=False)
        schema = pa.schema([own[0], *fields, own[1]])
        return cls(name, discipline, _names(keys), _names(values), _names(payload), schema, keeps_tombstones)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return (*self.keys, *self.values)


def _names(fields: tuple[pa.Field, ...]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)


def stored(field: pa.Field) -> pa.Field:
    """The field as runs store it."""
    return field.with_type(stored_type(field.type))


def stored_type(kind: pa.DataType) -> pa.DataType:
    decoded = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _STORED.get(decoded, decoded)
