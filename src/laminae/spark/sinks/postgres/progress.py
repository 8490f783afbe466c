"""The progress of a sink, stored in the target database and written in the same transaction as the rows.

The progress row is locked while the sink writes. A driver that has lost its lease without noticing waits for its
successor, then finds the epoch already delivered and skips it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

if TYPE_CHECKING:
    from laminae.net.postgres import Connection
    from laminae.spark.sinks.postgres.table import Table

# The suffix is the version of the table's layout.
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
    """The progress of one sink. `table` is the progress table, in the same database schema as the sink's table."""

    connection: Connection
    table: Table
    sink: str

    def lock(self) -> int:
        """Lock the progress row and return the last delivered epoch, `NOTHING_YET` if there is none."""
        # Checked first: CREATE TABLE IF NOT EXISTS needs the CREATE privilege even if the table exists.
        if not self.table.columns(self.connection):
            self.connection.execute(_TABLE.format(self.table.name))
        self.connection.execute(_BEGIN.format(self.table.name), (self.sink, NOTHING_YET))
        ((epoch,),) = self.connection.execute(_LOCK.format(self.table.name), (self.sink,)).fetchall()
        return int(str(epoch))

    def record(self, epoch: int) -> None:
        self.connection.execute(_SET.format(self.table.name), (epoch, self.sink))
