"""EXPLAIN EPOCH: the stages of a source's next epoch, from the plan that runs, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.catalog.model import ViewStatus
from laminae.catalog.updates import SetViewState
from laminae.errors import LaminaeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lm.Database]:
    with lm.connect(str(tmp_path / "home")) as database:
        yield database


def explained(db: lm.Database, source: str) -> list[tuple[object, ...]]:
    return [(step, subject) for step, subject, _ in db.sql(f"EXPLAIN EPOCH {source}").fetchall()]


def live(db: lm.Database, name: str, state: ViewStatus = ViewStatus.LIVE) -> None:
    view = db._catalog.view(name)
    assert view is not None
    db._catalog.commit([SetViewState(view.id, state)])


def test_a_view_that_is_filled_or_has_failed_takes_no_part_in_the_epoch(db: lm.Database) -> None:
    db.sql("CREATE SOURCE orders (id BIGINT)")
    for name, state in (("good", ViewStatus.LIVE), ("bad", ViewStatus.FAILED), ("new", ViewStatus.CREATING)):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT id FROM orders")  # noqa: S608  # names of this test
        live(db, name, state)
    assert [line for line in explained(db, "orders") if line[0] == "update view"] == [("update view", "good")]


def test_an_epoch_shows_strategies_views_sinks_and_the_positions_it_binds(db: lm.Database, tmp_path: Path) -> None:
    db.sql("CREATE SOURCE orders (city STRING, amount BIGINT)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT city, SUM(amount) AS total FROM orders GROUP BY city")
    db.sql(f"CREATE SINK out FROM totals WITH (connector = 'files', mode = 'changelog', path = '{tmp_path / 'out'}')")
    live(db, "totals")
    lines = db.sql("EXPLAIN EPOCH orders").fetchall()
    assert [line[:2] for line in lines] == [
        ("read records", "orders"),
        ("decode", "orders"),
        ("strategy", "FAST_PLAN"),
        ("strategy", "EXACT"),
        ("update view", "totals"),
        ("emit", "orders"),
        ("write dead letters", "orders"),
        ("commit", "orders"),
    ]
    details = {step: detail for step, _, detail in lines}
    assert details["read records"] == 'from {"item": 0}'
    assert details["decode"] == "versions 1"
    assert details["emit"] == "feeds sinks out"
    assert details["commit"] == "at version 1; version 1 holds from item 0"


def test_an_altered_source_decodes_with_the_version_that_the_epoch_will_bind(db: lm.Database) -> None:
    db.sql("CREATE SOURCE orders (id BIGINT)")
    db.sql("ALTER SOURCE orders ADD COLUMN note STRING")
    commit = db.sql("EXPLAIN EPOCH orders").fetchall()[-1]
    assert commit[2] == "at version 2; version 1 holds from item 0; version 2 holds from item 0"


def test_a_table_of_events_is_updated_and_a_sink_of_the_source_gets_a_segment(db: lm.Database, tmp_path: Path) -> None:
    db.sql("CREATE SOURCE users (id BIGINT PRIMARY KEY) WITH (format = 'debezium-json')")
    db.sql(f"CREATE SINK out FROM users WITH (connector = 'files', mode = 'upsert', path = '{tmp_path / 'out'}')")
    assert explained(db, "users") == [
        ("read records", "users"),
        ("decode", "users"),
        ("strategy", "ARROW_SHORT_LINES"),
        ("strategy", "ARROW_LINES"),
        ("strategy", "EXACT"),
        ("write segment", "users"),
        ("update table", "users"),
        ("write dead letters", "users"),
        ("commit", "users"),
    ]


def test_an_unknown_source_has_no_epoch(db: lm.Database) -> None:
    with pytest.raises(LaminaeError, match="nowhere"):
        db.sql("EXPLAIN EPOCH nowhere")


def test_a_source_may_be_called_epoch(db: lm.Database) -> None:
    db.sql("CREATE SOURCE epoch (id BIGINT)")
    assert explained(db, "epoch")[0] == ("read records", "epoch")
