"""The catalog in PostgreSQL, for homes on shared or remote storage: each home has its own database schema.

Every write transaction first locks the counter row, so numbers become visible in order. psycopg is imported on use.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from laminae.catalog.drivers.protocol import PerThread, unstorable
from laminae.errors import CatalogCorrupt, CatalogUnavailable, LaminaeError
from laminae.net.postgres import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psycopg

    from laminae.catalog.drivers.protocol import Row, Value
    from laminae.net.postgres import Connection, PostgresSettings

T = TypeVar("T")

# READ COMMITTED is explicit: with a stricter server default, a writer that waited for the lock would fail.
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_WRITE = _BEGIN + b"; SELECT id FROM counters FOR UPDATE"
_ADVICE = {
    "55P03": "End the session that locks the catalog (see pg_stat_activity), then repeat the statement.",
    "42501": "Grant the user CREATE on the database, or create the schema and grant CREATE and USAGE on it.",
    "53100": "Free space on the server's disk; nothing was changed.",
}
_DAMAGED = frozenset({"42P01", "42703", "3F000", "XX001", "XX002"})
_OTHER_ADVICE = "Check that the server runs, that the address is correct and that the user is allowed to connect."


@lru_cache(maxsize=256)
def placeholders(sql: str) -> bytes:
    """The shared SQL text in psycopg's notation; it has no other question marks and no percent signs."""
    return sql.replace("?", "%s").encode()


class PostgresTransaction:
    """An open transaction on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *params: Value) -> list[Row]:
        return self._connection.execute(placeholders(sql), params).fetchall()

    def execute(self, sql: str, *params: Value) -> int:
        return self._connection.execute(placeholders(sql), params).rowcount

    def execute_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(placeholders(sql), rows)


class PostgresDriver:
    """`laminae.catalog.drivers.protocol.Driver` over one schema of one database."""

    def __init__(self, settings: PostgresSettings, *, schema: str) -> None:
        self._schema = schema
        self._settings = settings
        self._connections = PerThread(self.location, self._connect, lambda connection: connection.close())

    @property
    def location(self) -> str:
        return f"{self._settings.address} (schema {self._schema})"

    def query(self, sql: str, *params: Value) -> list[Row]:
        with self._translating():
            return self._unless_lost(lambda connection: connection.execute(placeholders(sql), params).fetchall())

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        with self._transaction(_begin_write) as connection:
            yield PostgresTransaction(connection)

    @contextmanager
    def migrating(self) -> Iterator[PostgresTransaction]:
        with self._transaction(self._begin_migrating) as connection:
            yield PostgresTransaction(connection)

    def tables(self) -> frozenset[str]:
        return frozenset(
            name for (name,) in self.query("SELECT tablename FROM pg_tables WHERE schemaname = ?", self._schema)
        )

    def close(self) -> None:
        self._connections.close()

    def _connect(self) -> Connection:
        return self._settings.connect(autocommit=True, search_path=self._schema)

    def _begin_migrating(self, connection: Connection) -> Connection:
        from psycopg import sql

        connection.execute(_BEGIN)
        # The schema may not exist yet, so there is no row to lock; this lock serialises two concurrent first opens.
        connection.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self._schema,))
        # Checked first: CREATE SCHEMA IF NOT EXISTS needs the CREATE privilege even when there is nothing to do.
        if not connection.execute(b"SELECT 1 FROM pg_namespace WHERE nspname = %s", (self._schema,)).fetchall():
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema)))
        return connection

    @contextmanager
    def _transaction(self, begin: Callable[[Connection], Connection]) -> Iterator[Connection]:
        with self._translating():
            connection = self._unless_lost(begin)
            try:
                yield connection
            except BaseException:
                if not connection.closed:
                    connection.execute(b"ROLLBACK")
                raise
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        import psycopg

        try:
            connection.execute(b"COMMIT")
        except psycopg.OperationalError as error:
            if not connection.closed:
                raise
            raise CatalogUnavailable(
                location=self.location,
                problem="the connection was lost during a commit, whose outcome is unknown",
                advice="Check the current definition before you repeat the statement.",
            ) from error

    def _unless_lost(self, action: Callable[[Connection], T]) -> T:
        """Retry once on a new connection when an idle one turns out to be lost; it cannot have written anything."""
        import psycopg

        connection = self._connections.get()
        try:
            return action(connection)
        except psycopg.Error:
            if not connection.closed:
                # A BEGIN that did not get the lock has left its transaction open.
                connection.execute(b"ROLLBACK")
                raise
        return action(self._connections.renew())

    @contextmanager
    def _translating(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise _translated(error, self.location) from error
        except UnicodeEncodeError as error:
            raise unstorable(error, self.location) from error


def _begin_write(connection: Connection) -> Connection:
    # Two statements in one round trip cannot be prepared.
    connection.execute(_BEGIN_WRITE, prepare=False)
    return connection


def _translated(error: psycopg.Error, location: str) -> LaminaeError:
    state = error.sqlstate or ""
    problem = error_text(error)
    if state in _DAMAGED:
        return CatalogCorrupt(location=location, problem=problem)
    return CatalogUnavailable(location=location, problem=problem, advice=_ADVICE.get(state, _OTHER_ADVICE))
