"""Every format that was ever released opens, with all that is in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from laminae.catalog import open_catalog
from laminae.catalog.migrations import MIGRATIONS
from laminae.catalog.model import Lease, PendingState, WatermarkRecord
from tests.support.catalogs import NOON, SECOND, columns, epoch, evolve, live

OLDEST = Path(__file__).with_name("format_1.sql")


@pytest.fixture
def oldest_home(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        database.executescript(OLDEST.read_text())
    return str(tmp_path)


def test_the_oldest_format_opens_with_all_that_is_in_it(oldest_home: str) -> None:
    with closing(open_catalog(oldest_home)) as catalog:
        (source,) = catalog.sources()
        assert (source.name, source.version, source.primary_key) == ("Orders", 2, (1,))
        assert source.watermark == WatermarkRecord(2, 5_000_000)
        # Numbers in TIMESTAMP columns were seconds then.
        assert source.options == (("connector", "push"), ("timestamp_unit", "seconds"))
        assert source.schema.equals(columns("id", "price", "note"), check_metadata=True)
        assert source.last_verdict == "RequiresConfirmation"
        assert [(version.version, version.position) for version in catalog.versions(source.id)] == [(1, "0"), (2, None)]
        assert [row.column_name for row in catalog.history()] == ["id", "price", "note"]
        assert [pending.state for pending in catalog.pending()] == [PendingState.PENDING]
        assert [view.reads for view in catalog.views()] == [(("orders", (1, 2)), ("other", ()))]
        assert [catalog.compacted(view.id) for view in catalog.views()] == [()]
        assert [sink.relation for sink in catalog.sinks()] == ["orders"]
        assert [found.end_offsets for found in catalog.epochs(source.id)] == ["10"]
        assert catalog.settings() == {"language": "en"}
        assert catalog.lease() == Lease("driver", "host-1", 4711, 1, NOON + 15 * SECOND)


def test_the_oldest_format_takes_new_commits(oldest_home: str) -> None:
    with closing(open_catalog(oldest_home)) as catalog:
        source = live(catalog)
        assert catalog.commit([evolve(source, "x"), epoch(source, 1)]).ids == (3, 2)


def test_a_released_step_is_never_edited(tmp_path: Path) -> None:
    def tables(database: sqlite3.Connection) -> set[tuple[str, str]]:
        return set(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))

    with closing(sqlite3.connect(":memory:")) as released, closing(sqlite3.connect(":memory:")) as present:
        released.executescript(OLDEST.read_text())
        for statement in MIGRATIONS[0]:
            present.execute(statement)
        assert tables(present) == tables(released)
