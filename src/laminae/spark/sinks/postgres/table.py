"""The table of a sink: its name, its columns, and the SQL statements that write to it. psycopg quotes the names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from laminae.errors import InvalidOption
from laminae.spark.sinks.postgres.alterations import TableColumn
from laminae.spark.sinks.postgres.types import type_name, value_text
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import LiteralString

    import pyarrow as pa

    from laminae.net.postgres import Connection
    from laminae.spark.sinks.postgres.alterations import Alterations


STAGED = sql.Identifier("laminae_staged")
# True if the row is to be deleted. No column of a row has this name, because changelogs reserve it.
GONE = sql.Identifier(OP)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class Table:
    """A table by the parts of its name, case-sensitive: nothing is folded to lower case."""

    parts: tuple[str, ...]

    @property
    def name(self) -> sql.Identifier:
        return sql.Identifier(*self.parts)

    def beside(self, name: str) -> Table:
        """Another table in the same database schema."""
        return Table((*self.parts[:-1], name))

    def columns(self, connection: Connection) -> tuple[str, ...]:
        """Column names in table order; empty if the table does not exist."""
        return tuple(column.name for column in self.described(connection))

    def described(self, connection: Connection) -> tuple[TableColumn, ...]:
        rows = connection.execute(
            b"SELECT attnum, attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            b"WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (self.name.as_string(None),),
        ).fetchall()
        return tuple(TableColumn(int(str(number)), str(name), str(kind)) for number, name, kind in rows)


def table_of(given: str, sink: str) -> Table:
    """Parse `table` or `schema.table`; a quoted part may contain dots."""
    parts = re.fullmatch(rf"({_PART.pattern})(\.({_PART.pattern}))?", given.strip())
    if parts is None:
        advice = "Write 'table' or 'schema.table'; quote a part that contains dots."
        raise InvalidOption(option="table", owner=sink, problem=f"{given!r} is not a table name", advice=advice)
    names = (quoted.replace('""', '"') or bare for quoted, bare in _PART.findall(given.strip()))
    return Table(tuple(names))


def creation(table: Table, fields: Sequence[pa.Field], key: Sequence[str], sink: str) -> sql.Composed:
    """CREATE TABLE for these columns. A nullable key is UNIQUE NULLS NOT DISTINCT: NULLs are equal, as in GROUP BY."""
    columns = [_column(field, sink) for field in fields]
    if key:
        nullable = any(field.nullable for field in fields if field.name in key)
        kind = sql.SQL("UNIQUE NULLS NOT DISTINCT ({})" if nullable else "PRIMARY KEY ({})")
        columns.append(kind.format(_list(key)))
    return sql.SQL("CREATE TABLE {} ({})").format(table.name, sql.SQL(", ").join(columns))


def altering(
    table: Table, planned: Alterations, fields: Mapping[str, pa.Field], fills: Mapping[str, pa.Scalar], sink: str
) -> list[sql.Composed]:
    """ALTER TABLE statements in order of execution. `fields` and `fills` of the added columns are by name.

    A fill is the value of an added column in existing rows. It does not remain as the column's DEFAULT, because later
    rows carry their own value.
    """
    return [
        *(_altered(table, "RENAME COLUMN {} TO {}", *map(sql.Identifier, pair)) for pair in planned.renames),
        *(
            statement
            for column in planned.additions
            for statement in _adding(table, fields[column.name], fills.get(column.name), sink)
        ),
        *(retyping(table, name, kind) for name, kind in planned.retypes),
    ]


def retyping(table: Table, name: str, kind: str) -> sql.Composed:
    # Safe to embed: a type name comes from the `TYPES` table, or is a numeric type built from its precision and scale.
    return _altered(table, "ALTER COLUMN {} TYPE {}", sql.Identifier(name), sql.SQL(kind))


def without_not_null(table: Table, name: str) -> sql.Composed:
    return _altered(table, "ALTER COLUMN {} DROP NOT NULL", sql.Identifier(name))


def _adding(table: Table, field: pa.Field, fill: pa.Scalar | None, sink: str) -> list[sql.Composed]:
    if fill is None or not fill.is_valid:
        return [_altered(table, "ADD COLUMN {}", _column(field, sink))]
    value = sql.Literal(value_text(field, fill, sink))
    return [
        _altered(table, "ADD COLUMN {} DEFAULT {}", _column(field, sink), value),
        _altered(table, "ALTER COLUMN {} DROP DEFAULT", sql.Identifier(field.name)),
    ]


def _altered(table: Table, change: LiteralString, *parts: sql.Composable) -> sql.Composed:
    return sql.SQL("ALTER TABLE {} {}").format(table.name, sql.SQL(change).format(*parts))


def staging(table: Table, names: Sequence[str]) -> sql.Composed:
    """CREATE TEMP TABLE for the transaction, with the column types of the real table and none of its constraints."""
    return sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {}, false AS {} FROM {} WITH NO DATA").format(
        STAGED, _list(names), GONE, table.name
    )


def unstaging() -> sql.Composed:
    """DROP the staging table: an epoch may stage twice, because rows of a replaced view have other columns."""
    return sql.SQL("DROP TABLE {}").format(STAGED)


def copying(names: Sequence[str], table: Table | None = None) -> sql.Composed:
    """COPY into the staging table, or directly into `table` if one is given."""
    if table is not None:
        return sql.SQL("COPY {} ({}) FROM STDIN").format(table.name, _list(names))
    return sql.SQL("COPY {} ({}, {}) FROM STDIN").format(STAGED, _list(names), GONE)


def deletion(table: Table, key: Sequence[str]) -> sql.Composed:
    """DELETE the rows whose key is staged for deletion, with a join that can use the key's index."""
    same = sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in key)
    return sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE s.{} AND {}").format(table.name, STAGED, GONE, same)


def deletion_of_null_keys(table: Table, key: Sequence[str]) -> sql.Composed:
    """DELETE the row of every staged key that contains a NULL, also if the staged row is an upsert.

    ON CONFLICT does not find such a row if the table's unique index treats NULLs as distinct. The join scans the whole
    table, so it is only run for epochs that have such keys.
    """
    names = [sql.Identifier(name) for name in key]
    same = sql.SQL(" AND ").join(sql.SQL("t.{0} IS NOT DISTINCT FROM s.{0}").format(name) for name in names)
    null = sql.SQL(" OR ").join(sql.SQL("s.{} IS NULL").format(name) for name in names)
    return sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE ({}) AND {}").format(table.name, STAGED, null, same)


def emptying(table: Table) -> sql.Composed:
    return sql.SQL("DELETE FROM {}").format(table.name)


def merging(table: Table, names: Sequence[str], key: Sequence[str]) -> sql.Composed:
    """Upsert the staged rows that are not to be deleted."""
    value_columns = [sql.Identifier(name) for name in names if name not in key]
    settings = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(name) for name in value_columns)
    conflict = sql.SQL("DO UPDATE SET {}").format(settings) if value_columns else sql.SQL("DO NOTHING")
    return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE NOT {} ON CONFLICT ({}) {}").format(
        table.name, _list(names), _list(names), STAGED, GONE, _list(key), conflict
    )


def _column(field: pa.Field, sink: str) -> sql.Composed:
    # Safe to embed: the type name comes from the `TYPES` table.
    return sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(type_name(field, sink)))


def _list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
