"""Statements to text. The law: `parse(to_sql(statement)) == (statement,)`.

Every name and value is quoted here, so a statement can be printed whatever a person called things.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from laminae.schema.identifiers import quoted
from laminae.schema.types import quote_identifier, quote_string, sql_type
from laminae.sql import statements as st
from laminae.sql.intervals import interval_sql
from laminae.sql.literals import scalar_sql

if TYPE_CHECKING:
    from collections.abc import Iterable

_BARE_OPTION = re.compile(r"[A-Za-z_]\w*(?:[.\-]\w+)*", re.ASCII)
_SHOWN = {st.ObjectKind.SOURCE: "SOURCES", st.ObjectKind.VIEW: "VIEWS", st.ObjectKind.SINK: "SINKS"}
_EMITTED: dict[type[st.Emit], str] = {
    st.EmitChanges: "CHANGES",
    st.EmitOnUpdate: "ON UPDATE",
    st.EmitOnWatermark: "ON WATERMARK",
    st.EmitOnWindowClose: "ON WINDOW CLOSE",
    st.EmitFinal: "FINAL",
}


def to_sql(statement: st.Statement) -> str:
    match statement:
        case st.Query():
            return statement.text
        case st.Explain():
            return f"EXPLAIN {to_sql(statement.statement)}"
        case st.CreateSource():
            return _create_source(statement)
        case st.CreateView():
            return _create_view(statement)
        case st.CreateSink():
            relation = quote_identifier(statement.relation)
            head = _words("CREATE SINK", _if("NOT EXISTS", statement.if_not_exists), quote_identifier(statement.name))
            return _words(head, f"FROM {relation}", _with(statement.options))
        case st.Drop():
            behaviour = statement.behaviour.value if statement.behaviour else ""
            name = quote_identifier(statement.name)
            return _words("DROP", statement.kind.value.upper(), _if("EXISTS", statement.if_exists), name, behaviour)
        case st.ResumeView():
            return f"ALTER MATERIALIZED VIEW {quote_identifier(statement.view)} RESUME"
        case st.SetSetting():
            return f"SET {_option_name(statement.name)} = {quote_string(statement.value)}"
        case st.ExplainEpoch():
            return f"EXPLAIN EPOCH {quote_identifier(statement.source)}"
        case st.DescribeSource():
            return f"DESCRIBE SOURCE {quote_identifier(statement.source)}"
        case st.Show():
            return f"SHOW {_SHOWN[statement.kind]}"
        case _:
            return _words(f"ALTER SOURCE {quote_identifier(statement.source)}", _action(statement))


def literal_sql(literal: st.Literal) -> str:
    if isinstance(literal.value, tuple):
        return f"ARRAY({', '.join(map(scalar_sql, literal.value))})"
    return scalar_sql(literal.value)


def path_sql(path: st.Path) -> str:
    return ".".join(map(quote_identifier, path))


def _action(change: st.AlterSource) -> str:
    match change:
        case st.AddColumn():
            head = _words("ADD COLUMN", _if("NOT EXISTS", change.if_not_exists), path_sql(change.path))
            column = _words(sql_type(change.type), _constraints(change.nullable, change.default))
            return _words(head, column, _position(change.position), _force(change.force))
        case st.DropColumn():
            restrict = "RESTRICT" if change.restrict else ""
            path = path_sql(change.path)
            return _words("DROP COLUMN", _if("EXISTS", change.if_exists), path, restrict, _force(change.force))
        case st.AlterColumnType():
            return _alter(change, f"TYPE {sql_type(change.type)}")
        case st.SetNotNull():
            return _alter(change, "SET NOT NULL")
        case st.DropNotNull():
            return _alter(change, "DROP NOT NULL")
        case st.SetDefault():
            return _alter(change, f"SET DEFAULT {literal_sql(change.default)}")
        case st.DropDefault():
            return _alter(change, "DROP DEFAULT")
        case st.MoveColumn():
            return _alter(change, _position(change.position))
        case st.RenameColumn():
            new_name = quote_identifier(change.new_name)
            return _words("RENAME COLUMN", path_sql(change.path), "TO", new_name, _force(change.force))
        case st.RefreshSchema():
            return "REFRESH SCHEMA"
        case st.SetCompatibility():
            return f"SET COMPATIBILITY = {change.mode}"
        case st.SetOptions():
            return f"SET {_options(change.options)}"
        case st.ConfirmChange():
            return f"CONFIRM CHANGE {change.change_id}"
        case st.RejectChange():
            return f"REJECT CHANGE {change.change_id}"
        case _:
            assert_never(change)


def _create_source(source: st.CreateSource) -> str:
    elements = [
        _words(quote_identifier(column.name), sql_type(column.type), _constraints(column.nullable, column.default))
        for column in source.columns
    ]
    if source.watermark:
        path = path_sql(source.watermark.path)
        elements.append(f"WATERMARK FOR {path} AS {path} - {interval_sql(source.watermark.delay.microseconds)}")
    if source.primary_key:
        elements.append(f"PRIMARY KEY ({', '.join(map(quote_identifier, source.primary_key))})")
    head = _words("CREATE SOURCE", _if("NOT EXISTS", source.if_not_exists), quote_identifier(source.name))
    return _words(head, f"({', '.join(elements)})" if elements else "", _with(source.options))


def _create_view(view: st.CreateView) -> str:
    create = "CREATE OR REPLACE" if view.or_replace else "CREATE"
    name = quote_identifier(view.name)
    head = _words(create, "MATERIALIZED VIEW", _if("NOT EXISTS", view.if_not_exists), name, _with(view.options))
    return f"{head} AS {view.query}" + (f"\nEMIT {emit_sql(view.emit)}" if view.emit else "")


def emit_sql(emit: st.Emit) -> str:
    if isinstance(emit, st.EmitEvery):
        return f"EVERY {interval_sql(emit.interval.microseconds)}"
    return _EMITTED[type(emit)]


def _alter(change: st.AlterColumn, action: str) -> str:
    return _words("ALTER COLUMN", path_sql(change.path), action, _force(change.force))


def _constraints(nullable: bool, default: st.Literal | None) -> str:
    return _words("" if nullable else "NOT NULL", f"DEFAULT {literal_sql(default)}" if default else "")


def _position(position: st.Position | None) -> str:
    match position:
        case None:
            return ""
        case st.First():
            return "FIRST"
        case st.After():
            return f"AFTER {quote_identifier(position.column)}"


def _options(options: Iterable[st.Option]) -> str:
    return f"({', '.join(f'{_option_name(option.name)} = {quote_string(option.value)}' for option in options)})"


def _option_name(name: str) -> str:
    return name if _BARE_OPTION.fullmatch(name) else quoted(name)


def _with(options: tuple[st.Option, ...]) -> str:
    return f"WITH {_options(options)}" if options else ""


def _if(exists: str, wanted: bool) -> str:
    return f"IF {exists}" if wanted else ""


def _force(force: bool) -> str:
    return "FORCE" if force else ""


def _words(*parts: str) -> str:
    return " ".join(filter(None, parts))
