"""Inputs that nobody would send on purpose, from a seed: arguments, statements, and the bytes of records."""

from __future__ import annotations

import json
import os
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED = int(os.environ.get("LAMINAE_FUZZ_SEED", "20261118"))

COLUMNS = (
    "id BIGINT NOT NULL, n INT, d DOUBLE, x DECIMAL(10, 2), t STRING DEFAULT 'new', b BOOLEAN, day DATE, at TIMESTAMP, "
    "s STRUCT<a: INT, l: ARRAY<STRING>>, m MAP<STRING, BIGINT>"
)
NAMES = ("id", "n", "d", "x", "t", "b", "day", "at", "s", "m")
PIECES = (
    b"",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"'",
    b",",
    b":",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"null",
    b"true",
    b"NaN",
    b"Infinity",
    b"-",
    b"0",
    b"00",
    b"1e400",
    b"9" * 40,
    b"-9223372036854775809",
    b"1.",
    b".5",
    b"${env:HOME}",
    b"/*x*/",
    b"\t",
    b" ",
    b'{"id":1}',
    b'"id":1',
    b"\xe2\x80\xa8",
    b"0x1F",
    b"1_000",
    b"'it''s'",
)
JSON_VALUES: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**40,
    1.5,
    -0.0,
    1e308,
    "",
    "x",
    "1",
    "1.5",
    "2024-02-29",
    "2024-13-01",
    "24:00",
    "2024-02-29T12:00:00Z",
    "+20000-01-01",
    "9999-12-31T23:59:59.999999Z",
    [],
    [None],
    [[]],
    {},
    {"a": 1},
    {"a": "x"},
    {"l": ["x", None]},
    {"k": 2**62},
    {"": {}},
    "é" * 300,
    "\u0000",
    "a\nb",
    {"a": {"a": {"a": {}}}},
)
WORDS = (
    "ALTER",
    "SOURCE",
    "s",
    "ADD",
    "DROP",
    "COLUMN",
    "TYPE",
    "SET",
    "NOT",
    "NULL",
    "DEFAULT",
    "AFTER",
    "FORCE",
    "CREATE",
    "OR REPLACE",
    "MATERIALIZED VIEW",
    "SINK",
    "FROM",
    "AS",
    "SELECT",
    "WITH",
    "EMIT",
    "CHANGES",
    "EXPLAIN",
    "DESCRIBE",
    "m.x",
    "`a",
    "b`",
    "STRUCT<x:",
    "DECIMAL(4,2)",
    "'x'",
    "-1",
    "1e9",
    ";",
    "(",
    ")",
    ",",
    "=",
    "*",
    "'",
    '"',
    "`",
    "--",
    "/*",
    "INTERVAL '5' SECOND",
    "PRIMARY KEY (a)",
    "WATERMARK FOR ts AS ts",
    "COUNT(*)",
    "\x00",
    "é",
    "GROUP BY",
    "UNION",
    "HAVING",
    "WHERE",
    "window(ts, '1 minute')",
    "CASE WHEN",
    "END",
    "::",
    "[0]",
    "${env:HOME}",
    "0x1F",
    "X'0g'",
    "'it''s'",
    "laminar_catalog.sources",
    "CHANGES OF s",
    "(SELECT 1)",
    "DISTINCT",
    "LATERAL",
    "VALUES (1)",
    "\ud800",
)
STATEMENTS = (
    "ALTER SOURCE s ADD COLUMN c STRING DEFAULT 'x' AFTER a FORCE",
    "ALTER SOURCE s ALTER COLUMN m.x TYPE BIGINT",
    "ALTER SOURCE s ALTER COLUMN a SET DEFAULT 7",
    "ALTER SOURCE s DROP COLUMN IF EXISTS c",
    "ALTER SOURCE s RENAME COLUMN a TO b",
    "ALTER SOURCE s SET (evolve = 'auto', on_rejected = 'dead_letter')",
    "CREATE SOURCE IF NOT EXISTS u (a INT NOT NULL, ts TIMESTAMP, PRIMARY KEY (a)) WITH (changelog = 'upsert')",
    "CREATE SOURCE w (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector = 'push')",
    "SELECT source_name, count(*) FROM laminar_catalog.schema_history GROUP BY source_name",
    "SELECT name, CAST(version AS STRING) || 'x' FROM laminar_catalog.sources WHERE version > 0 ORDER BY 1 LIMIT 3",
    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM s GROUP BY a EMIT CHANGES",
    "CREATE MATERIALIZED VIEW y AS SELECT DISTINCT a FROM s WHERE a > 1 UNION ALL SELECT a + 1 FROM s",
    "CREATE SINK k FROM v WITH (connector = 'console', mode = 'changelog')",
    "EXPLAIN ALTER SOURCE s SET COMPATIBILITY = FULL",
    "DROP MATERIALIZED VIEW IF EXISTS v; SET late_retention = '3 days'",
    "DROP SOURCE IF EXISTS u CASCADE",
    "DESCRIBE SOURCE s",
    "SHOW VIEWS",
)


def odd_arguments() -> list[Any]:
    """One of each kind of thing that a caller may hand over by mistake."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    circle: list[object] = []
    circle.append(circle)
    return [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        float("nan"),
        "",
        "s",
        "v",
        "x",
        "BACKWARD",
        "seed",
        "arrow",
        "s.a",
        "\ud800",
        "a\0b",
        "x" * 300,
        b"s",
        [],
        [None],
        [1],
        [{"a": 1}],
        [{"a": {1, 2}}],
        [{1: 2}],
        [circle],
        (),
        {},
        {"a": 1},
        {"a": None},
        object(),
        type,
        len,
        Decimal("NaN"),
        date.max,
        datetime.max,
        timedelta.max,
        schema,
        pa.schema([]),
        [schema],
        [schema, schema],
        pa.schema([("a", pa.int32()), ("A", pa.int64())]),
        pa.int32(),
        pa.null(),
        pa.table({"a": [1]}),
        pa.table([[1], [2]], ["a", "a"]),
        pa.table({"a": pa.array([10**7], pa.date32())}),
        pa.record_batch({"a": [1]}),
        pa.array([1]),
        '{"type":"record","name":"R","fields":[]}',
        '{"type":"record"',
        {"type": "int"},
        iter([{"a": 1}]),
        range(3),
        "1 second",
        "0 s",
        "CREATE SOURCE",
        "SELECT 1",
    ]


def mutated_statement(chance: random.Random) -> str:
    text = chance.choice(STATEMENTS)
    for _ in range(chance.randint(0, 4)):
        place = chance.randint(0, len(text))
        match chance.randrange(4):
            case 0:
                text = text[:place] + text[place + chance.randint(1, 9) :]
            case 1:
                text = f"{text[:place]} {chance.choice(WORDS)} {text[place:]}"
            case 2:
                text = text[:place] + text[place // 2 :]
            case _:
                text = text[:place] + chance.choice("'\"`();,.-=<>*\\\x00é0A") + text[place + 1 :]
    return text


def valid_document(chance: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "n": chance.randint(-9, 9),
        "d": chance.choice([0.5, -3, 1e10]),
        "x": chance.choice([1, 2.25, "3.50"]),
        "t": chance.choice(["a", "é", "", 'quote " and \\']),
        "b": chance.choice([True, False, None]),
        "day": "2024-02-29",
        "at": "2024-02-29T12:34:56Z",
        "s": {"a": 1, "l": ["x", None]},
        "m": {"k": number},
    }


def mutated_bytes(chance: random.Random, record: bytes) -> bytes:
    """Bytes cut out, put in, changed and doubled."""
    for _ in range(chance.randint(1, 3)):
        place = chance.randint(0, len(record))
        match chance.randrange(4):
            case 0:
                record = record[:place] + record[place + chance.randint(1, 12) :]
            case 1:
                record = record[:place] + chance.choice(PIECES) + record[place:]
            case 2:
                record = record[:place] + bytes([chance.randrange(256)]) + record[place + 1 :]
            case _:
                record = record[:place] + record[place // 2 :]
    return record


def mutated_json(chance: random.Random, number: int) -> bytes:
    document = valid_document(chance, number)
    for _ in range(chance.randint(0, 2)):
        name = chance.choice(NAMES)
        match chance.randrange(4):
            case 0:
                document.pop(name, None)
            case 1:
                document[chance.choice([name.upper(), f"{name}.x", "", "new", "`", "${env:HOME}"])] = 1
            case _:
                document[name] = chance.choice(JSON_VALUES)
    record = json.dumps(document, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass")
    return mutated_bytes(chance, record) if chance.random() < 0.4 else record


def mutated_event(chance: random.Random, number: int) -> bytes:
    """A Debezium event without its schema: odd in its envelope, in a row, or in its bytes.

    Each is a row or a letter; messages and truncations, which are neither, are not among them.
    """
    event: dict[str, object] = {
        "op": chance.choice(["c", "u", "d", "r", "c", "c", "x", None, 1]),
        "before": chance.choice([None, {"id": number}, valid_document(chance, number), 1]),
        "after": chance.choice([valid_document(chance, number), valid_document(chance, number), None, {}, "x"]),
        "source": chance.choice(
            [{"connector": "postgresql", "lsn": number}, {"lsn": number}, {}, None, "x", {"lsn": "x"}]
        ),
        "ts_ms": chance.choice([number, None, "x"]),
    }
    if isinstance(event["after"], dict) and chance.random() < 0.4:
        event["after"] = {**event["after"], chance.choice(NAMES): chance.choice(JSON_VALUES)}
    if chance.random() < 0.2:
        event.pop(chance.choice(list(event)))
    whole = {"schema": None, "payload": event} if chance.random() < 0.2 else event
    record = json.dumps(whole).encode()
    return mutated_bytes(chance, record) if chance.random() < 0.25 else record


def mutated_csv(chance: random.Random, number: int) -> bytes:
    """One line. Quotes stand only where they are closed, so that each line is a record of its own."""
    fields = [str(number), "1", "0.5", "2.25", '"a, ""b"""', "true", "2024-02-29", "2024-02-29T12:00:00Z"]
    for _ in range(chance.randint(0, 3)):
        match chance.randrange(3):
            case 0:
                fields[chance.randrange(len(fields))] = chance.choice(
                    ["", "x", "-", "1e5", "E5", ".e1", "NaN", "9" * 30, "\x00", "é", "\\", "null", "24:00", " 1 ", '""']
                )
            case 1:
                fields.insert(chance.randrange(len(fields)), "more")
            case _ if len(fields) > 1:
                fields.pop()
    line = ",".join(fields).encode()
    if chance.random() < 0.2:
        line = mutated_bytes(chance, line.replace(b'"', b""))
    odd = line.count(b'"') % 2
    line = line.translate(None, b"\r\n") + (b'"' if odd else b"")
    return line if line.strip() else b"x"


def many(make: Callable[[random.Random, int], bytes], count: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    return (make(chance, number) for number in range(count))
