"""The closed set of schema changes. Each is a frozen value that knows its path and whether it can lose data.

Drops and renames name a column by its path in the *old* schema, all others by its path in the *new* one: a set of
changes is applied at once, so that a swap a <-> b is two renames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple, assert_never

from laminae.schema.column import Path, column, dotted
from laminae.schema.types import sql_type

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
        """Whether records from before the column have a value for it, which DROP DEFAULT does not take from them."""
        initial = self.default if self.column_field is None else column(self.column_field).initial_default
        return self.nullable or initial is not None


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
    """The write default: what records from now on have where they do not have the key.

    `new_initial_default` is None, and the initial default stays, for every change of a source. Only between two
    schemas of different origin it may differ: then it is JSON text.
    """

    old_default: str | None
    new_default: str | None
    new_initial_default: str | None = field(default=None, compare=False)
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


class HistoryChange(NamedTuple):
    """What the schema history keeps of one change; the version it belongs to gives the rest of the row."""

    change_type: str
    column_name: str
    old_type: str | None = None
    new_type: str | None = None
    old_name: str | None = None
    default: str | None = None


def history_change(change: SchemaChange) -> HistoryChange:
    """The row of one change. A rename is listed under its new name, with the old one beside it."""
    kind, name = type(change).__name__, change.column_name
    match change:
        case ColumnAdded():
            return HistoryChange(kind, name, new_type=_typed(change.type, change.nullable), default=change.default)
        case ColumnDropped():
            return HistoryChange(kind, name, old_type=_typed(change.type, change.nullable), default=change.default)
        case ColumnRenamed():
            return HistoryChange(kind, dotted((*change.path[:-1], change.new_name)), old_name=change.old_name)
        case TypeWidened() | TypeNarrowed() | TypeChanged():
            return HistoryChange(kind, name, sql_type(change.old_type), sql_type(change.new_type))
        case NullabilityChanged():
            return HistoryChange(kind, name, *_nullability(change.nullable))
        case DefaultChanged():
            return HistoryChange(kind, name, default=change.new_default)
        case ColumnMoved():
            return HistoryChange(kind, name)
        case _:
            assert_never(change)


def describe_change(change: SchemaChange) -> str:
    """One change as a short sentence without its path."""
    match change:
        case ColumnAdded():
            default = f" DEFAULT {change.default}" if change.default is not None else ""
            return f"add {_typed(change.type, change.nullable)}{default}"
        case ColumnDropped():
            return f"drop {_typed(change.type, change.nullable)}"
        case ColumnRenamed():
            return f"rename to {change.new_name}"
        case TypeWidened():
            return f"widen {sql_type(change.old_type)} to {sql_type(change.new_type)}"
        case TypeNarrowed():
            return f"narrow {sql_type(change.old_type)} to {sql_type(change.new_type)}"
        case TypeChanged():
            return f"replace {sql_type(change.old_type)} by {sql_type(change.new_type)}"
        case NullabilityChanged():
            return "allow NULL" if change.nullable else "require NOT NULL"
        case DefaultChanged():
            return f"default {change.old_default or 'none'} becomes {change.new_default or 'none'}"
        case ColumnMoved():
            return f"move to position {change.position + 1}"
        case _:
            assert_never(change)


def _typed(kind: pa.DataType, nullable: bool) -> str:
    return sql_type(kind) if nullable else f"{sql_type(kind)} NOT NULL"


def _nullability(nullable: bool) -> tuple[str, str]:
    return ("NOT NULL", "NULL") if nullable else ("NULL", "NOT NULL")
