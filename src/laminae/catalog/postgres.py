"""The catalog in PostgreSQL, for homes on shared or remote storage: each home has a schema of its own.

Every write transaction first locks the counter row, so numbers become visible in order. psycopg is imported on use.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from laminae.catalog.driver import PerThread, unstorable
from laminae.errors import CatalogCorrupt, CatalogUnavailable, InvalidOption, LaminaeError, NotAvailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psycopg

    from laminae.catalog.driver import Row, Value

    Connection = psycopg.Connection[Row]

T = TypeVar("T")

CONNECT_SECONDS = 10
LOCK_SECONDS = 10
# READ COMMITTED by name: under a stricter default of the server, a writer that waited for the lock would fail.
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_WRITE = _BEGIN + b"; SELECT id FROM counters FOR UPDATE"
_SESSION = b"SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false)"
_ADVICE = {
    "55P03": "End the session that keeps the catalog locked (see pg_stat_activity), then repeat.",
    "42501": "Grant the user CREATE on the database, or make the schema and grant it CREATE and USAGE there.",
    "53100": "Free space on the server's disk; nothing was changed.",
}
_DAMAGED = frozenset({"42P01", "42703", "3F000", "XX001", "XX002"})
_OTHER_ADVICE = "Check that the server runs, that the address is right and that the user may connect."


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
    """`laminae.catalog.driver.Driver` over one schema of one database."""

    def __init__(self, url: str, references: dict[str, str], *, schema: str) -> None:
        self._schema = schema
        self._parameters = connection_parameters(url, references)
        self._connections = PerThread(self.location, self._connect, lambda connection: connection.close())

    @property
    def location(self) -> str:
        return f"{shown_address(self._parameters)} (schema {self._schema})"

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
        import psycopg

        connection = psycopg.connect(**self._parameters, autocommit=True)
        try:
            connection.execute(_SESSION, (self._schema, f"{LOCK_SECONDS}s"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_migrating(self, connection: Connection) -> Connection:
        from psycopg import sql

        connection.execute(_BEGIN)
        # The schema may not exist yet, so there is no row to lock; two first opens meet at this lock.
        connection.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self._schema,))
        # Asked first: CREATE SCHEMA IF NOT EXISTS needs the right to create even when there is nothing to do.
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
                problem="the connection was lost during a commit, which may or may not have been made",
                advice="Look at the object again before you repeat the statement.",
            ) from error

    def _unless_lost(self, action: Callable[[Connection], T]) -> T:
        """Once more on a new connection when an idle one turns out to be lost; nothing can have been written by it."""
        import psycopg

        connection = self._connections.get()
        try:
            return action(connection)
        except psycopg.Error:
            if not connection.closed:
                # A begin that got no lock has left its transaction open.
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
    # Two statements in one round trip, which cannot be prepared.
    connection.execute(_BEGIN_WRITE, prepare=False)
    return connection


def connection_parameters(
    url: str, references: dict[str, str], owner: str = "connect", option: str = "catalog"
) -> dict[str, Any]:
    """What psycopg connects with: the parts of the URL, each with what its references stand for."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise NotAvailable(
            feature=f"PostgreSQL, which {option} of {owner} names,",
            problem="psycopg is not installed",
            advice="Install it: pip install 'laminae[postgres]'.",
        ) from error
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        # Its message quotes parts of the URL, a password among them: neither shown nor chained.
        raise InvalidOption(
            option=option,
            owner=owner,
            problem="the PostgreSQL URL cannot be read",
            advice="Percent-encode special characters in each part, or refer to a secret as ${env:NAME}.",
        ) from None
    texts = {name: str(value) for name, value in given.items() if value is not None}
    for word, value in references.items():
        texts = {name: text.replace(word, value) for name, text in texts.items()}
    return {"connect_timeout": CONNECT_SECONDS, "application_name": "laminae", **texts, "client_encoding": "utf8"}


def shown_address(parameters: dict[str, Any]) -> str:
    """For messages: without a password."""
    user = f"{parameters['user']}@" if "user" in parameters else ""
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}/{parameters.get('dbname', '')}"


def words_of(error: psycopg.Error) -> str:
    """What the server or the client library says went wrong."""
    return error.diag.message_primary or str(error).strip() or type(error).__name__


def _translated(error: psycopg.Error, location: str) -> LaminaeError:
    state = error.sqlstate or ""
    problem = words_of(error)
    if state in _DAMAGED:
        return CatalogCorrupt(location=location, problem=problem)
    return CatalogUnavailable(location=location, problem=problem, advice=_ADVICE.get(state, _OTHER_ADVICE))
