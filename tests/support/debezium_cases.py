"""What is done in a database so that a connector sends each kind of event, and each type of column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Longer than the 2 kB from which PostgreSQL keeps a value outside its row, and not compressed.
LONG = 2100
TABLES = (
    """CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text, balance numeric(12, 2),
                              born date)""",
    "CREATE TABLE customers_full (LIKE customers INCLUDING ALL)",
    "ALTER TABLE customers_full REPLICA IDENTITY FULL",
    "CREATE TABLE places (country text, city text, people int NOT NULL, PRIMARY KEY (country, city))",
    "CREATE TABLE no_key (n int, note text)",
    "ALTER TABLE no_key REPLICA IDENTITY FULL",
    """CREATE TABLE notes (id int PRIMARY KEY, n int, body text, strict text NOT NULL DEFAULT '', tags text[],
                          raw bytea, doc jsonb)""",
    *(
        f"ALTER TABLE notes ALTER COLUMN {name} SET STORAGE EXTERNAL"
        for name in ("body", "strict", "tags", "raw", "doc")
    ),
    "CREATE TABLE notes_full (LIKE notes INCLUDING ALL)",
    "ALTER TABLE notes_full REPLICA IDENTITY FULL",
    """CREATE TABLE kinds (
        id bigint PRIMARY KEY, truth boolean, small smallint, whole int, big bigint, single real,
        twice double precision, exact numeric(20, 4), free numeric, cash money, name varchar(20), code char(3),
        long text, raw bytea, day date, clock time, clock_ms time(3), clock_zone timetz, moment timestamp,
        moment_ms timestamp(3),
        instant timestamptz, instant_ms timestamptz(3), span interval, id_of uuid, doc json, doc_b jsonb, doc_xml xml,
        flags bit(3), flag bit(1), address inet, mood mood, numbers int[], words text[], prices numeric(8, 2)[],
        instants timestamptz[], days date[], ids uuid[])""",
    """CREATE TABLE specials (id int PRIMARY KEY, single real, twice double precision, exact numeric(10, 2),
                             free numeric)""",
    "CREATE TABLE special_times (id int PRIMARY KEY, day date, moment timestamp, instant timestamptz)",
    "CREATE TABLE shapes (id int PRIMARY KEY, a int, b text, c text)",
)
TYPES = ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",)
AT_FIRST = (
    "INSERT INTO customers VALUES (1, 'Ada', 'ada@example.com', 12.50, '1815-12-10'), (2, 'Bob', NULL, NULL, NULL)",
    "INSERT INTO customers_full SELECT * FROM customers",
    "INSERT INTO places VALUES ('de', 'Bonn', 330000)",
    "INSERT INTO no_key VALUES (1, 'one'), (1, 'one')",
    "INSERT INTO shapes VALUES (1, 10, 'b', 'c')",
)
_KINDS = """INSERT INTO kinds VALUES ({id}, true, -32768, 2147483647, 9223372036854775807, 1.5, 0.1,
    12345678901234.5678, 1.50, '12.34', 'añ😀"\\x', 'ab', 'text', '\\x00ff10', '2024-02-29', '23:59:59.123456',
    '23:59:59.123',
    '23:59:59.123456+02', '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.123', '2024-02-29 23:59:59.123456+02',
    '2024-02-29 23:59:59.123+02', '1 year 2 mons 3 days 04:05:06.789', '6f1c7a9e-3f5b-4a53-9a0e-0c9d5f3d9a11',
    '{{"b": [1, 2.50], "a": null}}', '{{"b": [1, 2.50], "a": null}}', '<a>x</a>', B'101', B'1', '192.168.0.1/24',
    'happy', '{{1,NULL,3}}', '{{"a b",NULL,""}}', '{{1.50,NULL}}', '{{"2024-02-29 23:59:59.123456+02"}}',
    '{{2024-02-29}}', '{{6f1c7a9e-3f5b-4a53-9a0e-0c9d5f3d9a11}}')"""
_LONG_NOTE = f"""VALUES (1, 1, repeat('x', {LONG}), repeat('s', {LONG}), ARRAY[repeat('t', {LONG})],
    decode(repeat('ab', {LONG}), 'hex'), jsonb_build_object('d', repeat('d', {LONG})))"""
CASES: Mapping[str, Sequence[str | Sequence[str]]] = {
    "insert": ["INSERT INTO customers VALUES (3, 'Cy', 'cy@example.com', -0.05, '2000-01-01')"],
    "update": ["UPDATE customers SET balance = 13.75, email = NULL WHERE id = 1"],
    "update_full": ["UPDATE customers_full SET balance = 13.75, email = NULL WHERE id = 1"],
    "delete": ["DELETE FROM customers WHERE id = 2"],
    "delete_full": ["DELETE FROM customers_full WHERE id = 2"],
    "key_change": ["UPDATE customers SET id = 33, name = 'Cyrus' WHERE id = 3"],
    "key_change_full": ["UPDATE customers_full SET id = 11 WHERE id = 1"],
    "composite_key": [
        "INSERT INTO places VALUES ('fr', 'Lyon', 520000)",
        "UPDATE places SET people = 331000 WHERE city = 'Bonn'",
        "UPDATE places SET city = 'Köln', people = 1087000 WHERE city = 'Bonn'",
        "DELETE FROM places WHERE city = 'Lyon'",
    ],
    "without_key": [
        "INSERT INTO no_key VALUES (2, 'two')",
        "UPDATE no_key SET note = 'uno' WHERE n = 1",
        "DELETE FROM no_key WHERE n = 2",
    ],
    "transaction": [
        [
            "INSERT INTO customers VALUES (4, 'Di', NULL, 1, NULL)",
            "UPDATE customers SET balance = 2 WHERE id = 4",
            "DELETE FROM customers WHERE id = 4",
            "INSERT INTO customers VALUES (4, 'Dina', NULL, 3, NULL)",
        ]
    ],
    "truncate": [
        "TRUNCATE customers",
        "INSERT INTO customers VALUES (1, 'Ada', NULL, 0, NULL)",
        [
            "INSERT INTO customers VALUES (5, 'Eve', NULL, 5, NULL)",
            "TRUNCATE customers, customers_full",
            "INSERT INTO customers VALUES (6, 'Fay', NULL, 6, NULL)",
        ],
    ],
    "toast_insert": [f"INSERT INTO notes {_LONG_NOTE}", f"INSERT INTO notes_full {_LONG_NOTE}"],
    "toast_unchanged": ["UPDATE notes SET n = 2"],
    "toast_unchanged_full": ["UPDATE notes_full SET n = 2"],
    "toast_changed": [
        "UPDATE notes SET body = 'short', tags = '{short}'",
        "UPDATE notes SET n = 3",
    ],
    "toast_key_change": ["UPDATE notes SET id = 7"],
    "toast_delete": ["DELETE FROM notes", "DELETE FROM notes_full"],
    "types": [_KINDS.format(id=1)],
    "types_null": ["INSERT INTO kinds (id) VALUES (2)"],
    "types_update": ["UPDATE kinds SET whole = -2147483648, exact = -0.0001, free = 1e20 WHERE id = 1"],
    "specials": [
        "INSERT INTO specials (id, single, twice) VALUES (1, 'NaN', 'NaN'), (2, 'Infinity', '-Infinity')",
        "INSERT INTO specials (id, single, twice) VALUES (3, 3.4e38, 1e300), (4, -0.0, 1e-300)",
        "INSERT INTO specials (id, free) VALUES (5, 123456789012345678901234567890.123456789), (6, 0), (7, -1e-10)",
    ],
    "add_column": [
        "ALTER TABLE shapes ADD COLUMN d int",
        "INSERT INTO shapes VALUES (2, 20, 'b', 'c', 5)",
        "ALTER TABLE shapes ADD COLUMN e text NOT NULL DEFAULT 'new'",
        "UPDATE shapes SET d = 6 WHERE id = 1",
    ],
    "alter_type": [
        "ALTER TABLE shapes ALTER COLUMN a TYPE bigint",
        "INSERT INTO shapes VALUES (3, 1099511627776, 'b', 'c', 7, 'three')",
        "DELETE FROM shapes WHERE id = 2",
    ],
    "rename_column": [
        "ALTER TABLE shapes RENAME COLUMN b TO renamed",
        "UPDATE shapes SET renamed = 'after' WHERE id = 1",
    ],
    "drop_column": ["ALTER TABLE shapes DROP COLUMN c", "UPDATE shapes SET a = 11 WHERE id = 1"],
    "special_decimals": ["INSERT INTO specials (id, exact, free) VALUES (8, 'NaN', 'NaN')"],
    "special_times": [
        """INSERT INTO special_times VALUES (1, '0001-01-01', '0001-01-01', '0001-01-01 00:00:00Z'),
           (2, '9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999Z'),
           (3, 'infinity', 'infinity', 'infinity'), (4, '-infinity', '-infinity', '-infinity')""",
    ],
}
"""Each statement is a transaction, and so is each list of them."""
