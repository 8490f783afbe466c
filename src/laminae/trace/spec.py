"""What a trace holds: key, value and payload columns, and how rows of one key are combined.

The layout of a run follows from it: `_hash`, keys, values, payload, `_weight`, sorted by hash and then by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

HASH, WEIGHT = "_hash", "_weight"


class Discipline(Enum):
    """REPLACE: the latest row of a key is the row; weight 0 says that there is none.

    SUM: a Z-set; weights and payload of equal (key, value) rows are added, and rows of nothing but zeros vanish.
    """

    REPLACE = "replace"
    SUM = "sum"


# Offsets of 64 bits: a run of 10M rows may hold more than 2 GB of text, and Arrow does not check.
_STORED = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class TraceSpec:
    """`keys` tell groups apart, `values` rows within a group, `payload` comes along.

    NULL is a key value, so what else is said of a key's nullability is left aside. `late` are keys that older runs
    lack: they are NULL there, which changes no hash.
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
        """One row for each key. Tombstones go when nothing older is left, unless they are kept for ever."""
        return cls._of(name, Discipline.REPLACE, tuple(keys), (), tuple(payload), keeps_tombstones)

    @classmethod
    def sum(
        cls, name: str, keys: Iterable[pa.Field], values: Iterable[pa.Field], payload: Iterable[pa.Field] = ()
    ) -> TraceSpec:
        """A Z-set of (key, value) rows; payload columns are int64 and added as weights are."""
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
        """The columns that make two rows the same row."""
        return (*self.keys, *self.values)


def _names(fields: tuple[pa.Field, ...]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)


def stored(field: pa.Field) -> pa.Field:
    """The field as runs keep it."""
    return field.with_type(stored_type(field.type))


def stored_type(kind: pa.DataType) -> pa.DataType:
    decoded = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _STORED.get(decoded, decoded)
