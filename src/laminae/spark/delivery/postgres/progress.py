"""How far a sink has come, in the database itself: written with the rows, so one is never there without the other.

The row of a sink is locked for as long as it writes: a driver that was replaced and does not know it yet comes after
its successor, finds its epoch done and leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from laminae.spark.delivery.postgres.table import Connection, Table

# The number is that of its form.
NAME = "laminae_progress_v1"
NOTHING_YET = -1
_TABLE = sql.SQL(
    """CREATE TABLE IF NOT EXISTS {} (
        sink text PRIMARY KEY,
        epoch bigint NOT NULL,
        written_at timestamptz NOT NULL DEFAULT now())"""
)
_BEGIN = sql.SQL("INSERT INTO {} (sink, epoch) VALUES (%s, %s) ON CONFLICT (sink) DO NOTHING")
_LOCK = sql.SQL("SELECT epoch FROM {} WHERE sink = %s FOR UPDATE")
_SET = sql.SQL("UPDATE {} SET epoch = %s, written_at = now() WHERE sink = %s")


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one sink, in the schema of its table."""

    connection: Connection
    table: Table
    sink: str

    def lock(self) -> int:
        """The last epoch that is in the table, `NOTHING_YET` when none is."""
        # Asked first: CREATE TABLE IF NOT EXISTS needs the right to create even when there is nothing to do.
        if not self.table.columns(self.connection):
            self.connection.execute(_TABLE.format(self.table.name))
        self.connection.execute(_BEGIN.format(self.table.name), (self.sink, NOTHING_YET))
        ((epoch,),) = self.connection.execute(_LOCK.format(self.table.name), (self.sink,)).fetchall()
        return int(str(epoch))

    def record(self, epoch: int) -> None:
        self.connection.execute(_SET.format(self.table.name), (epoch, self.sink))
