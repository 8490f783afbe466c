"""The schema that an ALTER proposes: the current one with one edit.

Checks that the edit is possible, not compatibility.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from laminae.engine.definitions.schema_edits import edit_field, edit_siblings, field_at
from laminae.errors import DuplicateColumn, InvalidDefault, InvalidName, InvalidSchema, UnknownColumn
from laminae.schema.column import DEFAULT, ID, INITIAL_DEFAULT, MAX_DEPTH, Path, column, dotted
from laminae.schema.defaults import encode_default
from laminae.schema.identifiers import MAX_NAME, collation_key, column_name_problem
from laminae.schema.identity import with_default, with_write_default
from laminae.schema.nesting import inner_fields, is_list
from laminae.schema.types import sql_type
from laminae.schema.widening import TypeRelation, relation
from laminae.sql import (
    AddColumn,
    After,
    AlterColumnType,
    DropColumn,
    DropDefault,
    DropNotNull,
    First,
    MoveColumn,
    RenameColumn,
    SetDefault,
    SetNotNull,
)

if TYPE_CHECKING:
    from laminae.sql import ColumnDef, Literal
    from laminae.sql.statements import AlterColumn, Position

ALTERS: dict[type, str] = {
    AddColumn: "add column",
    DropColumn: "drop column",
    AlterColumnType: "change type",
    SetNotNull: "set NOT NULL",
    DropNotNull: "drop NOT NULL",
    SetDefault: "set default",
    DropDefault: "drop default",
    MoveColumn: "move column",
    RenameColumn: "rename column",
}


def proposed_schema(statement: AlterColumn, schema: pa.Schema) -> pa.Schema | None:
    """The proposed schema, or None when IF [NOT] EXISTS says there is nothing to do."""
    source, path = statement.source, statement.path
    match statement:
        case AddColumn():
            return _added(statement, schema)
        case DropColumn():
            return _dropped(statement, schema)
        case AlterColumnType():
            return edit_field(schema, path, source, lambda field: _retyped(field, statement.type, path))
        case SetNotNull() | DropNotNull():
            nullable = isinstance(statement, DropNotNull)
            if nullable and len(path) > 1 and path[-1] == "key" and _is_map(schema, path[:-1], source):
                raise InvalidSchema(path=dotted(path), problem="the key of a map is never NULL")
            return edit_field(schema, path, source, lambda field: field.with_nullable(nullable))
        case SetDefault():
            literal = statement.default
            return edit_field(
                schema, path, source, lambda field: with_write_default(field, default_text(literal, field, path))
            )
        case DropDefault():
            return edit_field(schema, path, source, lambda field: with_write_default(field, None))
        case RenameColumn():
            return _renamed(statement, schema)
        case MoveColumn():
            return edit_siblings(
                schema, path[:-1], source, lambda fields: _moved(fields, path, statement.position, source)
            )
        case _:
            assert_never(statement)


def declared_field(definition: ColumnDef) -> pa.Field:
    """The field of a column that CREATE SOURCE declares."""
    return _field((definition.name,), definition.type, definition.nullable, definition.default)


def default_text(literal: Literal | None, field: pa.Field, path: Path) -> str | None:
    """The JSON text of a default. DEFAULT NULL means no default, and is an error for a NOT NULL column."""
    if literal is None:
        return None
    if literal.value is None:
        if not field.nullable:
            raise InvalidDefault(
                default="NULL", path=dotted(path), type=sql_type(field.type), problem="the column is NOT NULL"
            )
        return None
    return encode_default(literal.value, field.type, dotted(path))


def check_name(name: str, kind: str) -> None:
    if problem := column_name_problem(name):
        raise InvalidName(name=repr(name) if len(name) <= MAX_NAME else f"{name[:20]}...", kind=kind, problem=problem)
    if kind != "column" and name.casefold() == "laminar_catalog":
        raise InvalidName(name=name, kind=kind, problem="it is reserved")


def _field(path: Path, kind: pa.DataType, nullable: bool, literal: Literal | None) -> pa.Field:
    check_name(path[-1], "column")
    if pa.types.is_null(kind) and not nullable:
        raise InvalidSchema(path=dotted(path), problem="a VOID column cannot be NOT NULL")
    _refuse_unreadable(kind, path)
    field = pa.field(path[-1], kind, nullable)
    column(field, path=path[:-1])
    return with_default(field, default_text(literal, field, path))


def _refuse_unreadable(kind: pa.DataType, path: Path) -> None:
    """Raise for a type that Spark can store but Python cannot read: pyspark has no Arrow representation of it."""
    if pa.types.is_interval(kind):
        problem = "Spark cannot give INTERVAL YEAR TO MONTH to Python: declare INT and count months"
        raise InvalidSchema(path=dotted(path), problem=problem)
    is_nested = pa.types.is_map(kind) or is_list(kind)
    for field in list(kind) if pa.types.is_struct(kind) else inner_fields(kind) if is_nested else []:
        _refuse_unreadable(field.type, (*path, field.name))


def _added(statement: AddColumn, schema: pa.Schema) -> pa.Schema | None:
    path, source = statement.path, statement.source
    field = _field(path, statement.type, statement.nullable, statement.default)
    if len(path) > MAX_DEPTH:
        raise InvalidSchema(path=dotted(path[:3]) + "...", problem=f"nested deeper than {MAX_DEPTH} levels")
    exists = False

    def add(fields: list[pa.Field]) -> list[pa.Field]:
        nonlocal exists
        taken = next((other for other in fields if collation_key(other.name) == collation_key(field.name)), None)
        if taken is not None:
            if not statement.if_not_exists:
                raise DuplicateColumn(source=source, path=dotted((*path[:-1], taken.name)))
            exists = True
            return fields
        return _placed(fields, field, statement.position, path[:-1], source)

    proposed = edit_siblings(schema, path[:-1], source, add)
    return None if exists else proposed


def _dropped(statement: DropColumn, schema: pa.Schema) -> pa.Schema | None:
    path, source = statement.path, statement.source
    try:
        field_at(schema, path, source)
    except UnknownColumn:
        if statement.if_exists:
            return None
        raise

    def drop(fields: list[pa.Field]) -> list[pa.Field]:
        remaining = [field for field in fields if field.name != path[-1]]
        if not remaining:
            owner = dotted(path[:-1]) or source
            raise InvalidSchema(
                path=dotted(path), problem=f"it is the last column of {owner}, which needs at least one"
            )
        return remaining

    return edit_siblings(schema, path[:-1], source, drop)


def _retyped(field: pa.Field, kind: pa.DataType, path: Path) -> pa.Field:
    """The field with another type. Its default must also be a value of the new type."""
    if pa.types.is_null(kind) and not field.nullable:
        raise InvalidSchema(path=dotted(path), problem="a VOID column cannot be NOT NULL")
    _refuse_unreadable(kind, path)
    retyped = field.with_type(_with_ids_of(field.type, kind))
    if relation(column(field), column(retyped)) is not TypeRelation.UNRELATED:
        return retyped
    default = (field.metadata or {}).get(DEFAULT)
    if default is not None:
        problem = "it was declared for the old type"
        raise InvalidDefault(default=default.decode(), path=dotted(path), type=sql_type(kind), problem=problem)
    return retyped


def _is_map(schema: pa.Schema, path: Path, source: str) -> bool:
    return bool(pa.types.is_map(field_at(schema, path, source).type))


def _with_ids_of(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """The new type with the ids of the old one. SQL types have no ids; fields are matched by name."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        known = {field.name: field for field in old}
        return pa.struct([_continued(known[field.name], field) if field.name in known else field for field in new])
    if pa.types.is_map(old) and pa.types.is_map(new):
        return pa.map_(_continued(old.key_field, new.key_field), _continued(old.item_field, new.item_field))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_continued(old.value_field, new.value_field))
    return new


def _continued(old: pa.Field, new: pa.Field) -> pa.Field:
    metadata = {key: value for key, value in (old.metadata or {}).items() if key in (ID, DEFAULT, INITIAL_DEFAULT)}
    return pa.field(new.name, _with_ids_of(old.type, new.type), new.nullable, {**metadata, **(new.metadata or {})})


def _renamed(statement: RenameColumn, schema: pa.Schema) -> pa.Schema:
    path, source, new = statement.path, statement.source, statement.new_name
    check_name(new, "column")
    field_at(schema, path, source)

    def rename(fields: list[pa.Field]) -> list[pa.Field]:
        same = (field.name for field in fields if collation_key(field.name) == collation_key(new))
        taken = next((name for name in same if name != path[-1]), None)
        if taken is not None:
            raise DuplicateColumn(source=source, path=dotted((*path[:-1], taken)))
        return [field.with_name(new) if field.name == path[-1] else field for field in fields]

    return edit_siblings(schema, path[:-1], source, rename)


def _moved(fields: list[pa.Field], path: Path, position: Position, source: str) -> list[pa.Field]:
    names = [field.name for field in fields]
    if path[-1] not in names:
        raise UnknownColumn(source=source, path=dotted(path), suggestion="")
    field = fields[names.index(path[-1])]
    if isinstance(position, After) and position.column == path[-1]:
        return fields
    return _placed([other for other in fields if other.name != path[-1]], field, position, path[:-1], source)


def _placed(
    fields: list[pa.Field], field: pa.Field, position: Position | None, parent: Path, source: str
) -> list[pa.Field]:
    match position:
        case None:
            return [*fields, field]
        case First():
            return [field, *fields]
        case After(column=name):
            names = [other.name for other in fields]
            if name not in names:
                raise UnknownColumn(source=source, path=dotted((*parent, name)), suggestion="")
            at = names.index(name) + 1
            return [*fields[:at], field, *fields[at:]]
