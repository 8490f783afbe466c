"""Which replaced views somebody has yet to read, so that their files stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from laminae.catalog import open_catalog
from laminae.catalog.updates import AdvanceOwner, NextEpoch, PutSavepoint, PutSink, SetSinkProgress
from laminae.engine.views.replacement import delivered_before, still_read
from tests.support.catalogs import NOON, columns, view

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laminae.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    found = open_catalog(str(tmp_path / "home"))
    found.commit([view("v")])
    found.commit([PutSink("k", "V", (("connector", "console"),), "live", NOON)])
    yield found
    found.close()


def advance(catalog: Catalog, rows: int = 1) -> int:
    """An epoch of the view that is there; its number."""
    owner = present(catalog)
    expected = catalog.last_advance(owner)
    catalog.commit([NextEpoch(), AdvanceOwner(owner, "v", expected, (), ("f",) * bool(rows), rows, columns("id"))])
    return catalog.last_epoch()


def present(catalog: Catalog) -> int:
    found = catalog.view("v")
    assert found is not None
    return found.id


def replaced(catalog: Catalog) -> int:
    """The id of the view that was there."""
    old = present(catalog)
    catalog.commit([view("v", replaces=old)])
    return old


def before(catalog: Catalog, progress: int) -> int | None:
    found = catalog.view("v")
    assert found is not None
    former = delivered_before(catalog, found, progress)
    return None if former is None else former.id


def deliver(catalog: Catalog, progress: int) -> None:
    sink = catalog.sink("k")
    assert sink is not None
    catalog.commit([SetSinkProgress(sink.id, progress, "live")])


def test_a_sink_has_rows_of_the_last_view_that_gave_it_some(catalog: Catalog) -> None:
    first = advance(catalog)
    old = replaced(catalog)
    replaced(catalog)
    assert before(catalog, first) == old
    assert before(catalog, 0) is None
    second = advance(catalog)
    assert before(catalog, first) == old
    assert before(catalog, second) is None


def test_a_view_without_rows_has_emptied_its_sinks(catalog: Catalog) -> None:
    first = advance(catalog)
    old = replaced(catalog)
    second = advance(catalog, rows=0)
    replaced(catalog)
    assert before(catalog, first) == old
    assert before(catalog, second) is None


def test_a_replaced_view_is_read_until_every_sink_has_taken_it_back(catalog: Catalog) -> None:
    first = advance(catalog)
    deliver(catalog, first)
    assert still_read(catalog) == frozenset()
    old = replaced(catalog)
    assert still_read(catalog) == {old}
    second = advance(catalog)
    assert still_read(catalog) == {old}
    deliver(catalog, second)
    assert still_read(catalog) == frozenset()


def test_a_savepoint_keeps_what_a_sink_would_take_back_after_going_there(catalog: Catalog) -> None:
    deliver(catalog, advance(catalog))
    catalog.commit([PutSavepoint("then", NOON)])
    old = replaced(catalog)
    deliver(catalog, advance(catalog))
    assert still_read(catalog) == {old}
