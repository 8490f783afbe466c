"""How a catalog is opened, and what a user is told when it cannot be."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from laminae.catalog import migrations, open_catalog
from laminae.catalog.drivers import sqlite
from laminae.catalog.updates import PutSetting
from laminae.errors import (
    CatalogCorrupt,
    CatalogUnavailable,
    HomeUnwritable,
    InvalidOption,
    LaminaeError,
    NewerHome,
)
from laminae.net import postgres
from tests.support.catalogs import POSTGRES, create, driver_of, epoch, evolve, live, made, propose, sink, view

if TYPE_CHECKING:
    from laminae.catalog import Catalog
    from tests.support.catalogs import CatalogPlace


def test_what_was_committed_is_there_after_reopening(catalog_place: CatalogPlace) -> None:
    with catalog_place.opened() as first:
        source = made(first)
        first.commit([propose(source), view("v"), sink("k"), epoch(source, 0)])
        first.commit([evolve(source, "x")])
    with catalog_place.opened() as second:
        assert live(second).version == 2
        assert (len(second.history()), len(second.pending()), second.last_epoch()) == (2, 1, 1)
        assert (len(second.views()), len(second.sinks())) == (1, 1)


def test_homes_do_not_mix(catalog_place: CatalogPlace, tmp_path: Path) -> None:
    with catalog_place.opened() as one, closing(open_catalog(str(tmp_path / "other"), catalog_place.url)) as two:
        made(one)
        assert two.sources() == ()
        assert one.location != two.location


def test_every_spelling_of_a_home_is_the_same_home(catalog_place: CatalogPlace) -> None:
    path = Path(catalog_place.home)
    with catalog_place.opened() as catalog:
        made(catalog)
        for spelling in (f"{path}/", path.as_uri(), f"file:{path}", f"file://localhost{path}", f"{path}/../home"):
            with closing(open_catalog(spelling, catalog_place.url)) as same:
                assert live(same).id == live(catalog).id


def test_many_first_opens_at_once_make_one_catalog(catalog_place: CatalogPlace) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: catalog_place.open(), range(8)))
    made(opened[0])
    for catalog in opened:
        assert len(catalog.sources()) == 1
        catalog.close()


def test_a_closed_catalog_says_so(catalog: Catalog) -> None:
    catalog.close()
    with pytest.raises(CatalogUnavailable, match="closed"):
        catalog.sources()
    catalog.close()


def test_a_newer_format_is_refused_with_both_numbers(
    catalog_place: CatalogPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = ("CREATE TABLE novelty (id BIGINT PRIMARY KEY)",)
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
        catalog_place.open().close()
    with pytest.raises(NewerHome) as refused:
        catalog_place.open()
    known = len(migrations.MIGRATIONS)
    assert (refused.value.params["found"], refused.value.params["known"]) == (known + 1, known)


def test_an_older_format_is_migrated_and_keeps_its_content(
    catalog_place: CatalogPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog_place.opened() as catalog:
        made(catalog)
    step = ("ALTER TABLE sources ADD COLUMN comment TEXT", "UPDATE sources SET name = 'migrated'")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    with catalog_place.opened() as catalog:
        assert live(catalog).name == "migrated"


def test_a_failed_migration_leaves_the_older_format(
    catalog_place: CatalogPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog_place.opened() as catalog:
        made(catalog)
    step = ("UPDATE sources SET name = 'half'", "INSERT INTO absent VALUES (1)")
    with monkeypatch.context() as broken:
        broken.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
        with pytest.raises(LaminaeError):
            catalog_place.open()
    with catalog_place.opened() as catalog:
        assert live(catalog).name == "orders"


def test_a_catalog_locked_for_too_long_is_unavailable(
    catalog_place: CatalogPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(postgres, "LOCK_SECONDS", 0.1)
    with catalog_place.opened() as first, catalog_place.opened() as second:
        made(first)
        with driver_of(first).write(), pytest.raises(CatalogUnavailable) as refused:
            second.commit([create("late")])
        assert second.location in str(refused.value)
        second.commit([create("later")])
        assert len(first.sources()) == 2


def test_a_text_that_is_not_unicode_is_refused_whole(catalog: Catalog) -> None:
    with pytest.raises(CatalogUnavailable, match="cannot be stored"):
        catalog.commit([create("orders"), PutSetting("a", "\ud800")])
    assert catalog.sources() == ()


def test_a_damaged_schema_is_named_as_damage(catalog_place: CatalogPlace) -> None:
    with catalog_place.opened() as catalog:
        source = made(catalog)
        catalog.commit([propose(source)])
        with driver_of(catalog).write() as transaction:
            transaction.execute("UPDATE schema_versions SET arrow_schema = ?", b"damaged")
            transaction.execute("UPDATE pending_changes SET arrow_schema = ?", b"")
    with catalog_place.opened() as catalog:
        for read in (lambda: catalog.source("orders"), lambda: catalog.versions(source.id), catalog.pending):
            with pytest.raises(CatalogCorrupt):
                read()


def test_a_home_is_made_with_its_parents(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    with closing(open_catalog(str(home))) as catalog:
        assert catalog.location == str(home / "catalog.db")
    assert (home / "catalog.db").is_file()


def test_a_home_below_a_file_cannot_be_written(catalog_place: CatalogPlace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeUnwritable) as refused:
        open_catalog(str(tmp_path / "file" / "home"), catalog_place.url)
    assert str(tmp_path / "file" / "home") in str(refused.value)


def test_a_directory_in_the_place_of_the_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").mkdir()
    with pytest.raises(HomeUnwritable, match=r"catalog\.db"):
        open_catalog(str(tmp_path))


def test_a_file_that_is_not_a_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database, " * 100)
    with pytest.raises(CatalogCorrupt, match=r"catalog\.db"):
        open_catalog(str(tmp_path))
    assert (tmp_path / "catalog.db").read_bytes().startswith(b"not a database")


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as foreign:
        foreign.execute("CREATE TABLE browser_history (url TEXT)")
    with pytest.raises(CatalogCorrupt, match="browser_history"):
        open_catalog(str(tmp_path))


def test_damaged_pages_are_named_as_damage(tmp_path: Path) -> None:
    with closing(open_catalog(str(tmp_path))) as catalog:
        made(catalog)
    file = tmp_path / "catalog.db"
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(CatalogCorrupt):
        open_catalog(str(tmp_path)).sources()


@pytest.mark.parametrize("home", ["s3://bucket/home", "hdfs://node/home", "file://server/share"])
def test_a_home_elsewhere_needs_a_catalog_on_a_server(home: str) -> None:
    with pytest.raises(InvalidOption, match="postgresql://"):
        open_catalog(home)


def test_a_home_elsewhere_has_its_catalog_on_the_server(postgres_url: str) -> None:
    with closing(open_catalog("s3://bucket/home", postgres_url)) as catalog:
        made(catalog)
        assert "laminae_home_" in catalog.location
    with closing(open_catalog("s3://bucket/home/", postgres_url)) as same:
        assert len(same.sources()) == 1


def test_both_backends_are_exercised(catalog_place: CatalogPlace) -> None:
    with catalog_place.opened() as catalog:
        assert catalog.location.startswith("postgresql://") == (catalog_place.backend == POSTGRES)
