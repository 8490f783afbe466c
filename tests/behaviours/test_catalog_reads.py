"""What is kept in memory never hides what another process, thread or connection has written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from laminae.catalog.updates import SetPosition
from tests.support.catalogs import create, drop, epoch, evolve, live, made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog import Catalog
    from tests.support.catalogs import CatalogPlace


@pytest.fixture
def other(catalog: Catalog, catalog_place: CatalogPlace) -> Iterator[Catalog]:
    """The same catalog opened a second time, as another process does."""
    with catalog_place.opened() as opened:
        yield opened


def test_a_version_written_elsewhere_is_in_the_history_at_once(catalog: Catalog, other: Catalog) -> None:
    made(catalog)
    for number in range(5):
        assert len(other.history("orders")) == len(catalog.history()) == number + 1
        catalog.commit([evolve(live(other), f"c{number}")])
    assert other.history("orders") == catalog.history("orders") == other.history()


def test_history_follows_a_source_dropped_and_created_elsewhere(catalog: Catalog, other: Catalog) -> None:
    first = made(catalog, "orders", "a", "b")
    assert len(other.history("orders")) == 2
    catalog.commit([drop("source", first.id), create("orders", "z")])
    assert [row.column_name for row in other.history("orders")] == ["z"]
    catalog.commit([drop("source", live(catalog).id)])
    assert other.history("orders") == other.history() == ()
    assert other.source("orders") is None


def test_a_version_without_changes_adds_no_row_and_hides_none(catalog: Catalog, other: Catalog) -> None:
    source = made(catalog)
    catalog.commit([evolve(source)])
    assert len(other.history("orders")) == 1
    catalog.commit([evolve(live(catalog), "x")])
    assert [row.version for row in other.history("orders")] == [1, 3]


def test_one_version_is_always_the_same_schema_object(catalog: Catalog) -> None:
    source = made(catalog)
    catalog.commit([evolve(source, "x")])
    current = live(catalog)
    assert live(catalog).schema is current.schema
    assert catalog.sources()[0].schema is current.schema
    assert [version.schema for version in catalog.versions(source.id)] == [source.schema, current.schema]
    assert catalog.versions(source.id)[0].schema is source.schema


def test_a_position_set_elsewhere_is_seen_though_its_version_is_known(catalog: Catalog, other: Catalog) -> None:
    source = made(catalog)
    assert other.versions(source.id)[0].position is None
    catalog.commit([SetPosition(source.id, 1, "p")])
    assert other.versions(source.id)[0].position == "p"


def test_threads_share_one_catalog(catalog: Catalog) -> None:
    sources = [made(catalog, f"s{number}") for number in range(4)]

    def work(number: int) -> list[int]:
        numbers = []
        for batch in range(10):
            numbers += catalog.commit([epoch(sources[number], batch)]).ids
            catalog.commit([evolve(live(catalog, f"s{number}"), f"c{batch}")])
            assert len(catalog.history(f"s{number}")) == batch + 2
        return numbers

    with ThreadPoolExecutor(4) as pool:
        numbers = [number for found in pool.map(work, range(4)) for number in found]
    assert sorted(numbers) == list(range(1, 41))
    assert len(catalog.history()) == 44
