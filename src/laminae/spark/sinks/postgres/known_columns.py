"""The mapping from relation columns to table columns, stored in the target database, in the transaction of the rows.

PostgreSQL's column number (`attnum`) survives a rename of the column. The table's OID is stored with it, because a
table that was dropped and created again has other columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from laminae.spark.sinks.postgres.alterations import KnownColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from laminae.net.postgres import Connection
    from laminae.spark.sinks.postgres.alterations import TableColumn, WantedColumn
    from laminae.spark.sinks.postgres.table import Table

# The suffix is the version of the table's layout.
NAME = "laminae_columns_v1"
_TABLE = sql.SQL(
    """CREATE TABLE {} (
        sink text NOT NULL,
        relation_id bigint NOT NULL,
        column_id text NOT NULL,
        table_oid bigint NOT NULL,
        attnum integer NOT NULL,
        type text NOT NULL,
        PRIMARY KEY (sink, relation_id, column_id))"""
)
_MAY_CREATE = sql.SQL("SELECT has_schema_privilege({}, 'CREATE')")
_READ = sql.SQL("SELECT relation_id, column_id, attnum, type FROM {} WHERE sink = %s AND table_oid = %s")
_PUT = sql.SQL(
    """INSERT INTO {} (sink, relation_id, column_id, table_oid, attnum, type) VALUES (%s, %s, %s, %s, %s, %s)
       ON CONFLICT (sink, relation_id, column_id)
       DO UPDATE SET table_oid = EXCLUDED.table_oid, attnum = EXCLUDED.attnum, type = EXCLUDED.type"""
)
_OID = b"SELECT to_regclass(%s)::oid::bigint"


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """The mapping of one sink. `records` is the table that stores it, `table` the sink's table.

    If `records` does not exist and the user lacks the CREATE privilege, columns are matched by name only.
    """

    connection: Connection
    records: Table
    table: Table
    sink: str

    def read(self, relation_id: int) -> tuple[dict[str, KnownColumn], frozenset[int]]:
        """The columns of this relation by column id, and the numbers of columns that earlier relations had."""
        if not self.records.columns(self.connection):
            return {}, frozenset()
        rows = self.connection.execute(_READ.format(self.records.name), (self.sink, self._oid())).fetchall()
        columns = [(int(str(owner)), str(name), KnownColumn(int(str(at)), str(kind))) for owner, name, at, kind in rows]
        own = {name: column for owner, name, column in columns if owner == relation_id}
        return own, frozenset(column.number for owner, _, column in columns if owner != relation_id)

    def write(self, relation_id: int, wanted: Iterable[WantedColumn], present: Iterable[TableColumn]) -> None:
        """Store the mapping of the wanted columns; entries that have not changed are not written."""
        known, _ = self.read(relation_id)
        numbers = {column.name: column.number for column in present}
        news = [
            (column.identity, KnownColumn(numbers[column.name], column.type))
            for column in wanted
            if column.identity is not None
        ]
        changed = [(name, column) for name, column in news if known.get(name) != column]
        if not changed or not self._is_there():
            return
        oid = self._oid()
        for name, column in changed:
            values = (self.sink, relation_id, name, oid, column.number, column.type)
            self.connection.execute(_PUT.format(self.records.name), values)

    def _is_there(self) -> bool:
        if self.records.columns(self.connection):
            return True
        schema = sql.Literal(self.records.parts[0]) if len(self.records.parts) > 1 else sql.SQL("current_schema()")
        ((may_create,),) = self.connection.execute(_MAY_CREATE.format(schema)).fetchall()
        if may_create:
            self.connection.execute(_TABLE.format(self.records.name))
        return bool(may_create)

    def _oid(self) -> int:
        ((oid,),) = self.connection.execute(_OID, (self.table.name.as_string(None),)).fetchall()
        return int(str(oid))
