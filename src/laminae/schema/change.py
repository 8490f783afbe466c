"""The closed set of schema changes. Each is a frozen value that knows its path and whether it can lose data.

Drops and renames name a column by its path in the *old* schema, all others by its path in the *new* one: a set of
changes is applied at once, so that a swap a <-> b is two renames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from laminae.schema.column import Path, dotted

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class _Change:
    path: Path

    @property
    def column_name(self) -> str:
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class ColumnAdded(_Change):
    """`position` is the index among its siblings in the new schema; None means behind all others.

    `possible_rename_of` names a dropped sibling of the same type and place, where neither has an identity.
    """

    type: pa.DataType
    nullable: bool = True
    default: str | None = None
    id: int | None = None
    position: int | None = None
    possible_rename_of: str | None = field(default=None, compare=False)
    column_field: pa.Field | None = field(default=None, compare=False, repr=False)

    @property
    def is_lossless(self) -> bool:
        return self.nullable or self.default is not None


@dataclass(frozen=True, slots=True)
class ColumnDropped(_Change):
    type: pa.DataType
    nullable: bool = True
    default: str | None = None
    id: int | None = None
    possible_rename_to: str | None = field(default=None, compare=False)
    is_lossless: ClassVar[bool] = False

    @property
    def is_required(self) -> bool:
        return not self.nullable and self.default is None


@dataclass(frozen=True, slots=True)
class ColumnRenamed(_Change):
    new_name: str
    is_lossless: ClassVar[bool] = True

    @property
    def old_name(self) -> str:
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class _Retyped(_Change):
    old_type: pa.DataType
    new_type: pa.DataType


@dataclass(frozen=True, slots=True)
class TypeWidened(_Retyped):
    """Every old value fits the new type. `is_physical`: the same values in another layout (string, large_string)."""

    is_physical: bool = False
    is_lossless: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TypeNarrowed(_Retyped):
    """A related type that cannot hold every old value (BIGINT to INT, BIGINT to DOUBLE, TIMESTAMP to seconds)."""

    is_lossless: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TypeChanged(_Retyped):
    """An unrelated type: old values have no meaning in it, so the column starts anew."""

    is_lossless: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class NullabilityChanged(_Change):
    nullable: bool

    @property
    def is_lossless(self) -> bool:
        return self.nullable


@dataclass(frozen=True, slots=True)
class DefaultChanged(_Change):
    old_default: str | None
    new_default: str | None
    is_lossless: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ColumnMoved(_Change):
    """`position` is the index among its siblings in the new schema."""

    position: int
    is_lossless: ClassVar[bool] = True


SchemaChange = (
    ColumnAdded
    | ColumnDropped
    | ColumnRenamed
    | TypeWidened
    | TypeNarrowed
    | TypeChanged
    | NullabilityChanged
    | DefaultChanged
    | ColumnMoved
)
