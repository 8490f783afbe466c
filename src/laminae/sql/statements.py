"""What a statement says, as values: one frozen class for each form of laminae's SQL.

`parse` makes them, `to_sql` prints them, the engine matches on them. Nothing here checks a name against a catalog.
A column path is a tuple of names, from the outermost; `force` is the FORCE at the end of an ALTER.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Path: TypeAlias = tuple[str, ...]
Scalar: TypeAlias = bool | int | Decimal | float | str | bytes | date | datetime | time | timedelta | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A typed SQL literal: 1.5 is a Decimal, 1e3 a float, TIMESTAMP an aware datetime in UTC, ARRAY(...) a tuple."""

    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class ColumnDef:
    name: str
    type: pa.DataType
    nullable: bool = True
    default: Literal | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    microseconds: int


@dataclass(frozen=True, slots=True)
class Watermark:
    path: Path
    delay: Interval


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class First:
    pass


@dataclass(frozen=True, slots=True)
class After:
    column: str


Position: TypeAlias = First | After


class DropBehaviour(Enum):
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"


class ObjectKind(Enum):
    SOURCE = "source"
    VIEW = "materialized view"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class CreateSource:
    """`columns` is empty when the statement gives none: the schema then comes from a registry or from the data."""

    name: str
    columns: tuple[ColumnDef, ...]
    watermark: Watermark | None
    primary_key: tuple[str, ...]
    options: tuple[Option, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AddColumn:
    source: str
    path: Path
    type: pa.DataType
    nullable: bool
    default: Literal | None
    position: Position | None
    if_not_exists: bool
    force: bool


@dataclass(frozen=True, slots=True)
class DropColumn:
    source: str
    path: Path
    if_exists: bool
    restrict: bool
    force: bool


@dataclass(frozen=True, slots=True)
class AlterColumnType:
    source: str
    path: Path
    type: pa.DataType
    force: bool


@dataclass(frozen=True, slots=True)
class SetNotNull:
    source: str
    path: Path
    force: bool


@dataclass(frozen=True, slots=True)
class DropNotNull:
    source: str
    path: Path
    force: bool


@dataclass(frozen=True, slots=True)
class SetDefault:
    source: str
    path: Path
    default: Literal
    force: bool


@dataclass(frozen=True, slots=True)
class DropDefault:
    source: str
    path: Path
    force: bool


@dataclass(frozen=True, slots=True)
class MoveColumn:
    source: str
    path: Path
    position: Position
    force: bool


@dataclass(frozen=True, slots=True)
class RenameColumn:
    source: str
    path: Path
    new_name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class RefreshSchema:
    source: str


@dataclass(frozen=True, slots=True)
class SetCompatibility:
    source: str
    mode: str


@dataclass(frozen=True, slots=True)
class SetOptions:
    source: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class ConfirmChange:
    source: str
    change_id: int


@dataclass(frozen=True, slots=True)
class RejectChange:
    source: str
    change_id: int


@dataclass(frozen=True, slots=True)
class SetSetting:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DescribeSource:
    source: str


@dataclass(frozen=True, slots=True)
class Show:
    kind: ObjectKind


@dataclass(frozen=True, slots=True)
class EmitChanges:
    pass


@dataclass(frozen=True, slots=True)
class EmitOnUpdate:
    pass


@dataclass(frozen=True, slots=True)
class EmitOnWatermark:
    pass


@dataclass(frozen=True, slots=True)
class EmitOnWindowClose:
    pass


@dataclass(frozen=True, slots=True)
class EmitFinal:
    pass


@dataclass(frozen=True, slots=True)
class EmitEvery:
    interval: Interval


Emit: TypeAlias = EmitChanges | EmitOnUpdate | EmitOnWatermark | EmitOnWindowClose | EmitFinal | EmitEvery


@dataclass(frozen=True, slots=True)
class CreateView:
    name: str
    query: str
    options: tuple[Option, ...]
    emit: Emit | None
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class ResumeView:
    view: str


@dataclass(frozen=True, slots=True)
class CreateSink:
    name: str
    relation: str
    options: tuple[Option, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class Drop:
    kind: ObjectKind
    name: str
    if_exists: bool
    behaviour: DropBehaviour | None


@dataclass(frozen=True, slots=True)
class Query:
    """Any Spark SQL query, as it was written; the text is opaque here."""

    text: str


@dataclass(frozen=True, slots=True)
class ExplainEpoch:
    """The next epoch of a source, as it will be run."""

    source: str


@dataclass(frozen=True, slots=True)
class Explain:
    statement: Statement


AlterColumn: TypeAlias = (
    AddColumn
    | DropColumn
    | AlterColumnType
    | SetNotNull
    | DropNotNull
    | SetDefault
    | DropDefault
    | MoveColumn
    | RenameColumn
)
AlterSource: TypeAlias = AlterColumn | RefreshSchema | SetCompatibility | SetOptions | ConfirmChange | RejectChange
Statement: TypeAlias = (
    CreateSource
    | AlterSource
    | SetSetting
    | DescribeSource
    | Show
    | Explain
    | ExplainEpoch
    | CreateView
    | ResumeView
    | CreateSink
    | Drop
    | Query
)
