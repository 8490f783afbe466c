"""A home that a released version wrote opens with its rows, and continues exactly once."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import laminae as lm
from laminae.errors import QueryFailed
from tests.support.homes import integral, rows_of, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


def minute(number: int) -> datetime:
    return datetime(2024, 5, 1, 10, number, tzinfo=UTC)


ROWS = {
    "large": [(2, "OSLO", 50), (3, "ROME", 20), (4, "OSLO", 5_000_000_000)],
    "by_city": [
        ("Bonn", 1, 7, 7, 1),
        ("Oslo", 2, 5_000_000_050, 50, 2),
        ("Rome", 2, 25, 5, 2),
        (None, 1, None, None, 0),
    ],
    "sizes": [(1, 2), (2, 2)],
    "cities": [("Bonn",), ("Oslo",), ("Rome",), (None,)],
    "everyone": [(1,), (1,), (2,), (3,), (4,), (5,), (6,)],
    "per_minute": [(minute(0), 2), (minute(1), 1), (minute(2), 2)],
    "owners": [("b", Decimal("10.50"), Decimal("10.50"))],
    "items": [("bolt", 6), ("nut", 9)],
    "by_currency": [("EUR", 5), ("NOK", 1)],
}

LATER = {
    "large": [*ROWS["large"], (7, "BONN", 30)],
    "by_city": [
        ("Bonn", 2, 37, 7, 2),
        ("Oslo", 2, 5_000_000_050, 50, 2),
        ("Rome", 2, 25, 5, 2),
        (None, 1, None, None, 0),
    ],
    "sizes": [(1, 1), (2, 3)],
    "cities": ROWS["cities"],
    "everyone": [(2,), (2,), *((number,) for number in (1, 3, 4, 5, 6, 7))],
    "per_minute": [*ROWS["per_minute"], (minute(9), 1)],
    "owners": [("c", Decimal("1.00"), Decimal("1.00"))],
    "items": [("bolt", 6)],
    "by_currency": [("CHF", 1), ("EUR", 5), ("NOK", 1)],
}


@pytest.fixture
def released(spark: SparkSession, tmp_path: Path) -> Iterator[lm.Database]:
    unpack("0.1", tmp_path / "home")
    with lm.connect(str(tmp_path / "home"), spark=spark) as database:
        yield database


def test_a_home_of_version_0_1_opens_with_its_rows_and_continues_exactly_once(released: lm.Database) -> None:
    assert {view: rows_of(released, view) for view in ROWS} == {view: Counter(rows) for view, rows in ROWS.items()}
    assert released.sql("SELECT count(*) FROM laminar_catalog.dead_letters").fetchall() == [(1,)]
    assert released.sql("SELECT source_name, state FROM laminar_catalog.pending_changes").fetchall() == [
        ("watched", "pending")
    ]
    assert released.version("orders") == 4

    bonn = {"id": 7, "place": "Bonn", "amount": 30, "placed": "2024-05-01 10:20:00", "currency": "CHF"}
    released.insert("orders", [bonn])
    released.insert("accounts", [{"id": 1, "gone": True}, {"id": 2, "owner": "c", "balance": "1.00"}])
    released.insert("stock", [{"item": "nut", "quantity": 9, "w": -1}])
    released.run()

    assert {view: rows_of(released, view) for view in LATER} == {view: Counter(rows) for view, rows in LATER.items()}
    assert {view: integral(released, view) for view in LATER} == {view: Counter(rows) for view, rows in LATER.items()}
    released.run()
    assert {view: rows_of(released, view) for view in LATER} == {view: Counter(rows) for view, rows in LATER.items()}


def test_a_savepoint_of_version_0_1_can_be_restored(released: lm.Database) -> None:
    released.restore("before")
    assert rows_of(released, "cities") == Counter([("Oslo",), ("Rome",), (None,)])
    released.run()
    assert rows_of(released, "by_currency") == Counter(ROWS["by_currency"])


def rewrite_records(home: Path, old: bytes, new: bytes) -> None:
    """Records as version 0.1 could have taken them, in the log that it has read."""
    for file in home.glob("sources/*/log/*.parquet"):
        table = pq.read_table(file)
        values = table["value"].to_pylist()
        if any(old in value for value in values):
            changed = pa.array([value.replace(old, new) for value in values], table.schema.field("value").type)
            pq.write_table(table.set_column(table.schema.get_field_index("value"), "value", changed), file)


def test_epochs_of_version_0_1_are_read_again_by_its_rules(released: lm.Database, tmp_path: Path) -> None:
    """It took "2024-05" for 1 May, which is a dead letter today."""
    placed = "SELECT id, placed FROM orders ORDER BY id"
    before = dict(released.sql(placed).fetchall())
    rewrite_records(tmp_path / "home", b'"2024-05-01 10:02:00"', b'"2024-05"')
    after = dict(released.sql(placed).fetchall())
    assert before[4] == minute(2)
    assert after == {**before, 4: datetime(2024, 5, 1, tzinfo=UTC)}
    released.insert("orders", [{"id": 8, "place": "Bonn", "amount": 1, "placed": "2024-05", "currency": "CHF"}])
    released.run()
    assert dict(released.sql(placed).fetchall()) == after
    released.sql("CREATE MATERIALIZED VIEW again AS SELECT id, placed FROM orders")
    released.run()
    assert dict(released.sql("SELECT * FROM again").fetchall()) == after


def test_a_row_of_version_0_1_that_is_refused_now_is_no_row_less_without_a_word(
    released: lm.Database, tmp_path: Path
) -> None:
    rewrite_records(tmp_path / "home", b'"Oslo"', b'"\\ud800"')
    with pytest.raises(QueryFailed, match="was a row when an older version of laminae read it, and is refused now"):
        released.sql("SELECT * FROM orders").fetchall()
