"""What a database must provide to hold a catalog: reads, serialised write transactions, and a way to migrate.

SQL texts are written once, with `?` for parameters, in the common subset of SQLite and PostgreSQL. A driver lets no
database exception escape: each becomes an error of `laminae.errors`.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from laminae.errors import CatalogUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

Value = str | int | bytes | None
Row = tuple[Any, ...]
"""A row as the database returns it; `laminae.catalog.rows` converts the columns to their types."""

C = TypeVar("C")


class Transaction(Protocol):
    """An open write transaction: everything is rolled back together when the body of `Driver.write` raises."""

    def query(self, sql: str, *params: Value) -> list[Row]: ...

    def execute(self, sql: str, *params: Value) -> int:
        """Returns how many rows changed."""
        ...

    def execute_many(self, sql: str, rows: Sequence[Sequence[Value]]) -> None: ...


class Driver(Protocol):
    """One database that holds one catalog, shared by all threads of this process."""

    @property
    def location(self) -> str: ...

    def query(self, sql: str, *params: Value) -> list[Row]:
        """One statement, which sees one committed state."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """Commits at the end of the body. One writer at a time per catalog, across all processes."""
        ...

    def migrating(self) -> AbstractContextManager[Transaction]:
        """Like `write`, for a catalog whose tables may not exist yet."""
        ...

    def tables(self) -> frozenset[str]: ...

    def close(self) -> None: ...


def unstorable(error: UnicodeEncodeError, location: str) -> CatalogUnavailable:
    return CatalogUnavailable(
        location=location,
        problem=f"a text cannot be stored: {error.reason}",
        advice="Remove the characters that are not Unicode from the text; nothing was changed.",
    )


class PerThread(Generic[C]):
    """A connection for each thread. Those of ended threads are closed when the next thread opens its own."""

    def __init__(self, location: str, connect: Callable[[], C], disconnect: Callable[[C], None]) -> None:
        self._location = location
        self._connect = connect
        self._disconnect = disconnect
        self._lock = threading.Lock()
        # Keyed by process too: a forked child must neither use nor close inherited connections.
        self._open: dict[tuple[int, threading.Thread], C] | None = {}

    def get(self) -> C:
        owner = (os.getpid(), threading.current_thread())
        connection = self._connections().get(owner)
        return self.renew() if connection is None else connection

    def renew(self) -> C:
        """Replace this thread's connection with a new one."""
        owner = (os.getpid(), threading.current_thread())
        with self._lock:
            connections = self._connections()
            for key in [key for key in connections if key[0] == owner[0] and not key[1].is_alive()]:
                self._disconnect(connections.pop(key))
            if owner in connections:
                self._disconnect(connections.pop(owner))
        fresh = self._connect()
        with self._lock:
            if self._open is None:
                self._disconnect(fresh)
            self._connections()[owner] = fresh
        return fresh

    def close(self) -> None:
        with self._lock:
            connections, self._open = self._open or {}, None
            for (pid, _), connection in connections.items():
                if pid == os.getpid():
                    self._disconnect(connection)

    def _connections(self) -> dict[tuple[int, threading.Thread], C]:
        if self._open is None:
            raise CatalogUnavailable(
                location=self._location, problem="it was closed", advice="Connect again: connect(home) opens a new one."
            )
        return self._open
