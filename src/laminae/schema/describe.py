"""Changes in words and as history rows: one place that says what each change is called and which types it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from laminae.schema.change import (
    ColumnAdded,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    DefaultChanged,
    NullabilityChanged,
    SchemaChange,
    TypeChanged,
    TypeNarrowed,
    TypeWidened,
)
from laminae.schema.column import dotted
from laminae.schema.types import sql_type

if TYPE_CHECKING:
    import pyarrow as pa


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
