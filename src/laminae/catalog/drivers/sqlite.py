"""The catalog in one SQLite file of the home: no server, safe for several processes on one machine.

Every commit is on disk when it returns (WAL with synchronous=FULL); writers queue at BEGIN IMMEDIATE.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from laminae.catalog.drivers.protocol import PerThread, unstorable
from laminae.errors import CatalogCorrupt, CatalogUnavailable, HomeUnwritable, LaminaeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from laminae.catalog.drivers.protocol import Row, Value

BUSY_SECONDS = 10.0
_RETRY_SECONDS = 0.01
_UNWRITABLE = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
)
_DAMAGED = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class SqliteTransaction:
    """An open transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *params: Value) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def execute(self, sql: str, *params: Value) -> int:
        return self._connection.execute(sql, params).rowcount

    def execute_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        self._connection.executemany(sql, rows)


class SqliteDriver:
    """`laminae.catalog.drivers.protocol.Driver` over one file, which is created when missing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connections = PerThread(self.location, self._connect, sqlite3.Connection.close)

    @property
    def location(self) -> str:
        return str(self._file)

    def query(self, sql: str, *params: Value) -> list[Row]:
        with self._translating():
            return self._connections.get().execute(sql, params).fetchall()

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        with self._translating():
            connection = self._connections.get()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                # SQLite rolls back automatically after some errors, a full disk for instance.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    migrating = write

    def tables(self) -> frozenset[str]:
        return frozenset(name for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def close(self) -> None:
        self._connections.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._open(str(self._file))
        except sqlite3.OperationalError as error:
            # A home without write access can still be read; a write then reports why it fails.
            if _primary_code(error) not in _UNWRITABLE or not self._file.is_file():
                raise
            has_wal = self._file.with_name(f"{self._file.name}-wal").exists()
            return self._open(f"{self._file.as_uri()}?mode=ro" + ("" if has_wal else "&immutable=1"), writable=False)

    def _open(self, file: str, *, writable: bool = True) -> sqlite3.Connection:
        # Only `close` is called from another thread; PerThread gives each thread its own connection.
        connection = sqlite3.connect(
            file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=not writable
        )
        try:
            if not writable:
                connection.execute("SELECT count(*) FROM sqlite_master")
                return connection
            self._enter_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _enter_wal(self, connection: sqlite3.Connection) -> None:
        # The busy timeout does not cover the switch to WAL: SQLite returns BUSY at once when two processes do it.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _primary_code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.location) from error
        except UnicodeEncodeError as error:
            raise unstorable(error, self.location) from error


def _primary_code(error: sqlite3.Error) -> int:
    """The low byte; the rest of the code is a refinement. Errors raised by the Python module itself have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _translated(error: sqlite3.Error, location: str) -> LaminaeError:
    code = _primary_code(error)
    if code in _BUSY:
        return CatalogUnavailable(
            location=location,
            problem=f"another process has held its lock for {BUSY_SECONDS:g} seconds",
            advice="End the process that holds the transaction (a database shell, a backup), then repeat the "
            "statement.",
        )
    if code in _DAMAGED or str(error).startswith(("no such table", "no such column")):
        return CatalogCorrupt(location=location, problem=str(error))
    if code in _UNWRITABLE:
        return HomeUnwritable(location=location, problem=str(error))
    return CatalogUnavailable(
        location=location, problem=str(error), advice="Check the disk and the file; nothing was changed."
    )
