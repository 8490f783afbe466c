"""The table of a sink: its name, its columns, and the statements that write to it. Names are quoted by the library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from laminae.errors import InvalidOption
from laminae.spark.delivery.postgres.types import type_name
from laminae.zset.changelog import OP

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg
    import pyarrow as pa

    Connection = psycopg.Connection[tuple[object, ...]]

STAGED = sql.Identifier("laminae_staged")
# True where a row is to go. No column of a row has this name: changelogs have it for themselves.
GONE = sql.Identifier(OP)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class Table:
    """By the parts of its name, each as it is written: nothing is folded to lower case."""

    parts: tuple[str, ...]

    @property
    def name(self) -> sql.Identifier:
        return sql.Identifier(*self.parts)

    def beside(self, name: str) -> Table:
        """Another one in the same schema."""
        return Table((*self.parts[:-1], name))

    def columns(self, connection: Connection) -> tuple[str, ...]:
        """In their order; none when there is no such table."""
        found = connection.execute(
            b"SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
            b"ORDER BY attnum",
            (self.name.as_string(None),),
        ).fetchall()
        return tuple(str(name) for (name,) in found)


def table_of(given: str, sink: str) -> Table:
    """`table` or `schema.table`; a part in quotation marks may have dots in it."""
    parts = re.fullmatch(rf"({_PART.pattern})(\.({_PART.pattern}))?", given.strip())
    if parts is None:
        advice = "Write 'table' or 'schema.table'; a part with dots stands in quotation marks."
        raise InvalidOption(option="table", owner=sink, problem=f"{given!r} names no table", advice=advice)
    found = (quoted.replace('""', '"') or bare for quoted, bare in _PART.findall(given.strip()))
    return Table(tuple(found))


def creation(table: Table, fields: Sequence[pa.Field], key: Sequence[str], sink: str) -> sql.Composed:
    """The table for these columns. A key that may be NULL is unique with NULL as a value, as GROUP BY takes it."""
    columns = [_column(field, sink) for field in fields]
    if key:
        nullable = any(field.nullable for field in fields if field.name in key)
        kind = sql.SQL("UNIQUE NULLS NOT DISTINCT ({})" if nullable else "PRIMARY KEY ({})")
        columns.append(kind.format(_list(key)))
    return sql.SQL("CREATE TABLE {} ({})").format(table.name, sql.SQL(", ").join(columns))


def addition(table: Table, fields: Sequence[pa.Field], sink: str) -> sql.Composed:
    added = sql.SQL(", ").join(sql.SQL("ADD COLUMN {}").format(_column(field, sink)) for field in fields)
    return sql.SQL("ALTER TABLE {} {}").format(table.name, added)


def staging(table: Table, names: Sequence[str]) -> sql.Composed:
    """A table of the transaction's own with the types of the real one and none of its constraints."""
    return sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {}, false AS {} FROM {} WITH NO DATA").format(
        STAGED, _list(names), GONE, table.name
    )


def unstaging() -> sql.Composed:
    """One epoch may stage twice: rows of a view that was replaced have columns of their own."""
    return sql.SQL("DROP TABLE {}").format(STAGED)


def copying(names: Sequence[str], table: Table | None = None) -> sql.Composed:
    """Into the staged rows, or at once into the table."""
    if table is not None:
        return sql.SQL("COPY {} ({}) FROM STDIN").format(table.name, _list(names))
    return sql.SQL("COPY {} ({}, {}) FROM STDIN").format(STAGED, _list(names), GONE)


def deletion(table: Table, key: Sequence[str]) -> sql.Composed:
    """Staged rows that are to go, by a join that can use the index of the key."""
    same = sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in key)
    return sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE s.{} AND {}").format(table.name, STAGED, GONE, same)


def deletion_of_null_keys(table: Table, key: Sequence[str]) -> sql.Composed:
    """Every staged row whose key has a NULL, also one that is to stay: an index that tells NULLs apart finds none.

    This join looks at the whole table, so it is for epochs that have such rows.
    """
    names = [sql.Identifier(name) for name in key]
    same = sql.SQL(" AND ").join(sql.SQL("t.{0} IS NOT DISTINCT FROM s.{0}").format(name) for name in names)
    null = sql.SQL(" OR ").join(sql.SQL("s.{} IS NULL").format(name) for name in names)
    return sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE ({}) AND {}").format(table.name, STAGED, null, same)


def emptying(table: Table) -> sql.Composed:
    return sql.SQL("DELETE FROM {}").format(table.name)


def merging(table: Table, names: Sequence[str], key: Sequence[str]) -> sql.Composed:
    """Staged rows that are to stay, over the rows that have their key."""
    others = [sql.Identifier(name) for name in names if name not in key]
    settings = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(name) for name in others)
    conflict = sql.SQL("DO UPDATE SET {}").format(settings) if others else sql.SQL("DO NOTHING")
    return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE NOT {} ON CONFLICT ({}) {}").format(
        table.name, _list(names), _list(names), STAGED, GONE, _list(key), conflict
    )


def _column(field: pa.Field, sink: str) -> sql.Composed:
    # The name of a type is one of our own table.
    return sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(type_name(field, sink)))


def _list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
