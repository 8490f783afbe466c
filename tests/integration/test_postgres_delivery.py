"""Segments in a table of a real PostgreSQL: put and deleted by key, once each, in one transaction with their epoch."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laminae.catalog.model import SinkRecord
from laminae.engine import faults
from laminae.errors import InvalidOption, NotAvailable, SinkTableOutdated, SinkUnavailable
from laminae.schema.types import VARIANT
from laminae.spark.sinks.postgres import deliver_postgres, take_back_postgres
from laminae.spark.sinks.segment import Holds, Segment
from tests.support.crashing import crash_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
META = [("_op", pa.string()), ("_weight", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC"))]
ROW = pa.schema([("customer", pa.string()), ("n", pa.int64())])
MADE = {"create_table": "true", "add_columns": "true"}
_numbers = count()


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    """A schema of the test's own, with a name that must be quoted."""
    name = f'My "own" {next(_numbers)}'
    quoted = name.replace('"', '""')
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{quoted}"'.encode())
    yield quoted
    faults.clear()


@pytest.fixture
def ask(postgres_url: str, schema: str) -> Callable[[str], list[tuple[object, ...]]]:
    """Answers of the database, with the schema of the test in front."""

    def answer(statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'SET search_path = "{schema}"'.encode())
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    return answer


@pytest.fixture
def sink(postgres_url: str, schema: str) -> Callable[..., SinkRecord]:
    def made(table: str = "totals", **options: str) -> SinkRecord:
        given = {"connector": "postgres", "url": postgres_url, "table": f'"{schema}".{table}', "mode": "upsert"}
        pairs = tuple(sorted({**given, **options}.items()))
        return SinkRecord(1, "shipped", "totals", pairs, "live", None, 0, NOON, 1)

    return made


def changes(home: Path, rows: list[tuple], epoch: int = 7, row: pa.Schema = ROW, key=("customer",)) -> Segment:
    schema = pa.schema([*META, *row])
    lines = [(op, 1 if op[0] == "+" else -1, NOON, *rest) for op, *rest in rows]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*lines, strict=True), schema, strict=True)]
    name = f"{epoch}-{next(_numbers)}.parquet"
    pq.write_table(pa.table(columns, schema=schema), home / name)
    return Segment(epoch, str(home), schema, len(rows), Holds.CHANGES, (name,), key=key)


def rows_of(home: Path, rows: list[dict], row: pa.Schema, holds: Holds, epoch: int = 7, key=None) -> Segment:
    name = f"{epoch}-{next(_numbers)}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, row), home / name)
    return Segment(epoch, str(home), row, len(rows), holds, (name,), NOON, key)


TOTALS = "SELECT customer, n FROM totals ORDER BY customer NULLS FIRST"


def test_rows_are_put_changed_and_deleted_by_key(tmp_path, sink, ask):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1), ("+I", "b", 1), ("+I", None, 5)]), sink(**MADE))
    assert ask(TOTALS) == [(None, 5), ("a", 1), ("b", 1)]
    second = [("-U", "a", 1), ("+U", "a", 2), ("-D", "b", 1), ("-U", None, 5), ("+U", None, 6), ("+I", "c\t\\N\n", 0)]
    deliver_postgres(changes(tmp_path, second, 8), sink())
    assert ask(TOTALS) == [(None, 6), ("a", 2), ("c\t\\N\n", 0)]
    deliver_postgres(changes(tmp_path, [("-D", None, 6)], 9), sink())
    assert ask(TOTALS) == [("a", 2), ("c\t\\N\n", 0)]


def test_an_epoch_is_in_the_table_once_however_often_it_comes(tmp_path, sink, ask):
    added = rows_of(tmp_path, [{"customer": "a", "n": 1}], ROW, Holds.ROWS)
    appended = sink(mode="append", **MADE)
    for segment in (added, added, replace(added, epoch=6), replace(added, epoch=8)):
        deliver_postgres(segment, appended)
    assert ask(TOTALS) == [("a", 1), ("a", 1)]
    assert ask("SELECT sink, epoch FROM laminae_progress_v1") == [("shipped/1/1772366400123456", 8)]


@pytest.mark.parametrize("point", faults.DATABASE_POINTS)
def test_a_crash_at_any_step_leaves_all_of_an_epoch_or_nothing(tmp_path, sink, ask, point):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1), ("+I", "b", 1)]), sink(**MADE))
    second = changes(tmp_path, [("-U", "a", 1), ("+U", "a", 2), ("-D", "b", 1)], 8)
    with crash_at(point):
        deliver_postgres(second, sink())
    is_committed = point == "transaction committed"
    assert ask(TOTALS) == ([("a", 2)] if is_committed else [("a", 1), ("b", 1)])
    assert ask("SELECT epoch FROM laminae_progress_v1") == [(8 if is_committed else 7,)]
    # Were it merged once more, this row would be gone.
    if is_committed:
        ask("INSERT INTO totals VALUES ('b', 9)")
    deliver_postgres(second, sink())
    assert ask(TOTALS) == [("a", 2), *([("b", 9)] if is_committed else [])]


def test_a_driver_that_was_replaced_waits_and_finds_its_epoch_done(tmp_path, sink, ask):
    """Two deliver one epoch at once: the row of the sink lets one pass at a time."""
    deliver_postgres(changes(tmp_path, [("+I", "a", 1)], 6), sink(**MADE))
    segment = changes(tmp_path, [("+I", "b", 1)], 7)
    started: list[threading.Thread] = []

    def other() -> None:
        faults.clear()
        thread = threading.Thread(target=deliver_postgres, args=(segment, sink()))
        thread.start()
        started.append(thread)

    faults.install("rows staged", other)
    deliver_postgres(segment, sink())
    (thread,) = started
    thread.join(60)
    assert ask(TOTALS) == [("a", 1), ("b", 1)]


def test_a_snapshot_comes_over_the_rows_that_are_there(tmp_path, sink, ask):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1), ("+I", "z", 1)]), sink(**MADE))
    snapshot = rows_of(tmp_path, [{"customer": "a", "n": 4}], ROW, Holds.SNAPSHOT, 8, ("customer",))
    deliver_postgres(snapshot, sink())
    assert ask(TOTALS) == [("a", 4), ("z", 1)]


def test_what_is_taken_back_is_emptied_for_the_snapshot_that_follows(tmp_path, sink, ask):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1), ("+I", "z", 1)]), sink(**MADE))
    take_back_postgres(sink(snapshot="false"), 5)
    assert len(ask(TOTALS)) == 2
    take_back_postgres(sink(), 5)
    assert ask(TOTALS) == []
    deliver_postgres(rows_of(tmp_path, [{"customer": "a", "n": 4}], ROW, Holds.SNAPSHOT, 5, ("customer",)), sink())
    assert ask(TOTALS) == [("a", 4)]


EVERY = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False), ("yes", pa.bool_()), ("tiny", pa.int8()), ("small", pa.int16()),
        ("whole", pa.int32()), ("real", pa.float32()), ("x", pa.float64()), ("price", pa.decimal128(38, 10)),
        ("text", pa.string()), ("raw", pa.binary()), ("day", pa.date32()), ("clock", pa.time64("ns")),
        ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("took", pa.duration("us")),
        ("tags", pa.list_(pa.string())), ("inner", pa.struct([("a b", pa.decimal128(10, 2)), ("t", pa.string())])),
        ("counts", pa.map_(pa.string(), pa.int64())), ('odd "name"', pa.string()), ("Select", pa.string()),
    ]
)  # fmt: skip
VALUES = {
    "id": 1, "yes": True, "tiny": -128, "small": 32767, "whole": -(2**31), "real": 0.1, "x": 5e-324,
    "price": Decimal("1234567890123456789012345678.0123456789"), "text": 'a\\b\t"\n\r\'', "raw": b"\x00\xff\\",
    "day": date(1, 1, 1), "clock": time(23, 59, 59, 999999), "at": NOON, "local": NOON.replace(tzinfo=None),
    "took": timedelta(days=-3, microseconds=1), "tags": ["a", None, "\\n"],
    "inner": {"a b": Decimal("1.10"), "t": "\\\t"}, "counts": {"k": 1}, 'odd "name"': "", "Select": "\\N",
}  # fmt: skip
KINDS = [
    "bigint", "boolean", "smallint", "smallint", "integer", "real", "double precision", "numeric(38,10)", "text",
    "bytea", "date", "time without time zone", "timestamp with time zone", "timestamp without time zone", "interval",
    "jsonb", "jsonb", "jsonb", "text", "text",
]  # fmt: skip


def test_every_type_arrives_as_it_is(tmp_path, sink, ask):
    given = [VALUES, {"id": 2, **dict.fromkeys(EVERY.names[1:])}, {"id": 3, "x": float("nan"), "real": -0.0}]
    segment = rows_of(tmp_path, given, EVERY, Holds.SNAPSHOT, key=("id",))
    deliver_postgres(segment, sink("every", **MADE))
    kinds = ask(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'every'::regclass AND attnum > 0 "
        "ORDER BY attnum"
    )
    assert [kind for (kind,) in kinds] == KINDS
    first, second, third = ask("SELECT * FROM every ORDER BY id")
    expected = {**VALUES, "inner": {"a b": "1.10", "t": "\\\t"}}
    found = dict(zip(EVERY.names, first, strict=True))
    assert {**found, "real": None} == {**expected, "real": None}
    assert found["real"] == pytest.approx(0.1)
    assert second == (2, *[None] * (len(EVERY) - 1))
    assert str(third[EVERY.names.index("x")]) == "nan"
    # The key cannot be NULL, so it is the primary key of the table.
    assert ask("SELECT contype::text FROM pg_constraint WHERE conrelid = 'every'::regclass AND contype = 'p'")


def test_a_table_of_another_maker_keeps_its_types_and_its_own_columns(tmp_path, sink, ask):
    ask("CREATE TABLE totals (customer varchar(3) PRIMARY KEY, note text DEFAULT 'mine', n numeric)")
    ask("INSERT INTO totals (customer, note, n) VALUES ('a', 'kept', 0)")
    deliver_postgres(changes(tmp_path, [("+U", "a", 2), ("+I", "b", 1)]), sink())
    assert ask("SELECT customer, note, n FROM totals ORDER BY 1") == [("a", "kept", 2), ("b", "mine", 1)]


def test_a_table_or_column_that_is_missing_is_named_and_made_only_on_request(tmp_path, sink, ask):
    with pytest.raises(InvalidOption, match=r"create_table of shipped .* no table .*totals"):
        deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink())
    deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink(create_table="true"))
    wider = pa.schema([*ROW, ("Größe", pa.decimal128(10, 2))])
    grown = changes(tmp_path, [("+I", "b", 1, Decimal("1.50"))], 8, wider)
    with pytest.raises(SinkTableOutdated, match=r"has no column Größe\n.* ADD COLUMN \"Größe\" numeric\(10, 2\); "):
        deliver_postgres(grown, sink())
    assert ask(TOTALS) == [("a", 1)]
    deliver_postgres(grown, sink(add_columns="true"))
    assert ask("SELECT * FROM totals ORDER BY 1") == [("a", 1, None), ("b", 1, Decimal("1.50"))]


def test_what_the_database_refuses_is_told_with_the_table_and_without_the_password(tmp_path, sink, ask, monkeypatch):
    ask("CREATE TABLE totals (customer text PRIMARY KEY, n smallint)")
    with pytest.raises(SinkTableOutdated, match=r"(?s)table .*totals.*out of range.* ALTER COLUMN \"n\" TYPE bigint; "):
        deliver_postgres(changes(tmp_path, [("+I", "a", 1 << 40)]), sink())
    ask("ALTER TABLE totals DROP CONSTRAINT totals_pkey")
    with pytest.raises(SinkUnavailable, match="no unique or exclusion constraint"):
        deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink())
    monkeypatch.setenv("SINK_PW", "hunter2")
    away = {"url": "postgresql://nobody@127.0.0.1:1/none", "password": "${env:SINK_PW}"}
    with pytest.raises(SinkUnavailable, match=r"127\.0\.0\.1:1/none") as told:
        deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink(**away))
    assert "hunter2" not in str(told.value)
    monkeypatch.delenv("SINK_PW")
    with pytest.raises(InvalidOption, match=r"password of shipped .* SINK_PW is not set"):
        deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink(**away))


def test_a_user_without_the_right_to_create_can_write_to_what_is_there(tmp_path, sink, ask, postgres_url, schema):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1)]), sink(**MADE))
    with suppress(psycopg.errors.DuplicateObject):
        ask("CREATE ROLE writer LOGIN")
    ask(f'GRANT USAGE ON SCHEMA "{schema}" TO writer')
    ask(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO writer')
    limited = sink(url=postgres_url.replace("laminae@", "writer@"))
    deliver_postgres(changes(tmp_path, [("-D", "a", 1), ("+I", "b", 2)], 8), limited)
    assert ask(TOTALS) == [("b", 2)]


def test_options_that_name_nothing_are_refused(tmp_path, sink):
    segment = changes(tmp_path, [("+I", "a", 1)])
    for table in ("a.b", '"open', "", ".b"):
        with pytest.raises(InvalidOption, match="table of shipped"):
            deliver_postgres(segment, sink(table))
    with pytest.raises(InvalidOption, match="url of shipped"):
        deliver_postgres(segment, sink(url="mysql://here/there"))
    variant = pa.schema([("customer", pa.string()), pa.field("v", VARIANT)])
    with pytest.raises(NotAvailable, match="Column v in sink shipped"):
        deliver_postgres(changes(tmp_path, [("+I", "a", None)], row=variant), sink(**MADE))


def test_rows_of_a_replaced_view_go_in_the_transaction_that_brings_the_new_ones(tmp_path, sink, ask):
    deliver_postgres(changes(tmp_path, [("+I", "a", 1), ("+I", None, 5)], epoch=7), sink(**MADE))
    gone = replace(changes(tmp_path, [("-D", None, 5), ("-D", "a", 1)], epoch=8), holds=Holds.TAKEN_BACK)
    row = pa.schema([("customer", pa.string()), ("most", pa.int64())])
    came = changes(tmp_path, [("+I", "b", 3), ("+I", "a", 4)], epoch=8, row=row)
    deliver_postgres(replace(came, former=gone), sink(**MADE))
    assert ask("SELECT customer, n, most FROM totals ORDER BY customer") == [("a", None, 4), ("b", None, 3)]
    deliver_postgres(replace(gone, epoch=9), sink(**MADE))
    assert ask("SELECT customer FROM totals") == [("b",)]
