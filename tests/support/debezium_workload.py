"""A seeded workload on three tables of PostgreSQL: every kind of change of rows, and of the tables themselves.

`customers` has the default replica identity and keys that change, `orders` the full one and is truncated, `notes` has
values that PostgreSQL keeps outside its rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.debezium import Database

SEED = 20260305
KEYS = 150
LONG = 2100
SCHEMA = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text, balance numeric(12, 2), born date)",
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, total bigint, placed timestamptz)",
    "ALTER TABLE orders REPLICA IDENTITY FULL",
    "CREATE TABLE notes (id int PRIMARY KEY, n int, body text, tags text[])",
    *(f"ALTER TABLE notes ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in ("body", "tags")),
)
COLUMNS = {
    "customers": "id INT NOT NULL, name STRING, email STRING, balance DECIMAL(12, 2), born DATE",
    "orders": "id BIGINT NOT NULL, customer INT, total BIGINT, placed TIMESTAMP",
    "notes": "id INT NOT NULL, n INT, body STRING, tags ARRAY<STRING>",
}
"""How a source over each table is declared."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """What is done to a table, what a person tells its source first, and what only where events tell no types."""

    table: str
    upstream: str
    told: str | None = None
    told_without_schema: str | None = None


ALTERATIONS = (
    Alteration("customers", "ALTER TABLE customers ADD COLUMN phone text"),
    Alteration(
        "orders",
        "ALTER TABLE orders ADD COLUMN priority int NOT NULL DEFAULT 3",
        told_without_schema="ADD COLUMN priority INT DEFAULT 3",
    ),
    Alteration(
        "orders",
        "ALTER TABLE orders ALTER COLUMN customer TYPE bigint",
        told_without_schema="ALTER COLUMN customer TYPE BIGINT",
    ),
    Alteration("notes", "ALTER TABLE notes RENAME COLUMN n TO pages", told="RENAME COLUMN n TO pages"),
    Alteration("customers", "ALTER TABLE customers DROP COLUMN email"),
)


@dataclass(slots=True)
class Workload:
    """Changes rows of a database, the same ones in every run."""

    database: Database
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    is_wide: bool = False
    """Whether `orders.customer` takes numbers beyond 32 bits."""

    def change(self, transactions: int) -> None:
        """So many transactions, of one statement or of some."""
        kinds: list[tuple[int, Callable[[psycopg.Connection], None]]] = [
            (30, self._customer),
            (30, self._order),
            (25, self._note),
            (8, self._moved_key),
            (6, self._several),
            (1, self._truncated),
        ]
        weights, makes = [weight for weight, _ in kinds], [make for _, make in kinds]
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            for make in self.dice.choices(makes, weights, k=transactions):
                with connection.transaction():
                    make(connection)

    def alter(self, alteration: Alteration) -> None:
        self.database.execute(alteration.upstream)
        self.is_wide |= "TYPE bigint" in alteration.upstream

    def _customer(self, connection: psycopg.Connection) -> None:
        key = self._key()
        if self.dice.random() < 0.2:
            connection.execute("DELETE FROM customers WHERE id = %s", [key])
            return
        row = {"id": key, "name": f"name {self.dice.randrange(99)}", "balance": self.dice.randrange(10**6) / 100}
        self._put(connection, "customers", row)
        self._set(connection, "customers", key, "born", self._maybe(f"{self.dice.randrange(1900, 2020)}-02-28"))
        for name in ("email", "phone"):
            self._set(connection, "customers", key, name, self._maybe(f'{name} "{self.dice.randrange(99)}" ä'))

    def _order(self, connection: psycopg.Connection) -> None:
        key = self._key()
        if self.dice.random() < 0.2:
            connection.execute("DELETE FROM orders WHERE id = %s", [key])
            return
        beyond = 2**40 if self.is_wide else 0
        moment = f"2026-03-{self.dice.randrange(1, 29):02} 12:00:00.{self.dice.randrange(10**6):06}+01"
        customer = beyond + self.dice.randrange(KEYS)
        row = {"id": key, "customer": customer, "total": self.dice.randrange(-(2**62), 2**62), "placed": moment}
        self._put(connection, "orders", row)
        self._set(connection, "orders", key, "priority", self.dice.randrange(9))

    def _note(self, connection: psycopg.Connection) -> None:
        """Mostly updates that leave the long values alone: PostgreSQL then does not send them."""
        key, chance = self._key() // 3, self.dice.random()
        pages = "pages" if self._has(connection, "notes", "pages") else "n"
        if chance < 0.3:
            letter = self.dice.choice("abc")
            row = {"id": key, pages: 0, "body": letter * LONG, "tags": [letter * LONG, None, "short"]}
            self._put(connection, "notes", row)
        elif chance < 0.4:
            connection.execute("DELETE FROM notes WHERE id = %s", [key])
        elif chance < 0.5:
            self._set(connection, "notes", key, "body", self._maybe("short"))
        else:
            self._set(connection, "notes", key, pages, self.dice.randrange(1000))

    def _moved_key(self, connection: psycopg.Connection) -> None:
        table = self.dice.choice(("customers", "notes"))
        old, new = self._key(), self._key() + KEYS
        update = sql.SQL("UPDATE {0} SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM {0} WHERE id = %s)")
        connection.execute(update.format(sql.Identifier(table)), [new, old, new])

    def _several(self, connection: psycopg.Connection) -> None:
        for _ in range(self.dice.randrange(2, 6)):
            self.dice.choice((self._customer, self._order, self._note))(connection)

    def _truncated(self, connection: psycopg.Connection) -> None:
        connection.execute("TRUNCATE orders")
        self._order(connection)

    def _key(self) -> int:
        return self.dice.randrange(KEYS)

    def _maybe(self, value: str) -> str | None:
        return value if self.dice.random() < 0.7 else None

    @staticmethod
    def _put(connection: psycopg.Connection, table: str, row: dict[str, object]) -> None:
        names = [sql.Identifier(name) for name in row]
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}").format(
                sql.Identifier(table),
                sql.SQL(", ").join(names),
                sql.SQL(", ").join([sql.Placeholder()] * len(names)),
                sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in names),
            ),
            list(row.values()),
        )

    def _set(self, connection: psycopg.Connection, table: str, key: int, name: str, value: object) -> None:
        """Nothing where the table has no such column yet, or no more."""
        if self._has(connection, table, name):
            update = sql.SQL("UPDATE {} SET {} = %s WHERE id = %s")
            connection.execute(update.format(sql.Identifier(table), sql.Identifier(name)), [value, key])

    @staticmethod
    def _has(connection: psycopg.Connection, table: str, name: str) -> bool:
        found = connection.execute(
            "SELECT FROM information_schema.columns WHERE table_name = %s AND column_name = %s", [table, name]
        )
        return found.fetchone() is not None
