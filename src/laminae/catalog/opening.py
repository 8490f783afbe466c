"""Open the catalog of a home: a file of the home itself, or a PostgreSQL database that several homes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.location import find_home, make_directory, postgres_url
from laminae.catalog.migrations import migrate
from laminae.catalog.postgres import PostgresDriver
from laminae.catalog.sqlite import SqliteDriver
from laminae.catalog.store import SqlCatalog
from laminae.errors import InvalidOption

if TYPE_CHECKING:
    from laminae.catalog.driver import Driver
    from laminae.catalog.port import Catalog

CATALOG_FILE = "catalog.db"


def open_catalog(home: str, catalog: str | None = None) -> Catalog:
    """Made when it is missing, brought to the present format when it is older."""
    driver = _driver(home, catalog)
    try:
        migrate(driver)
    except BaseException:
        driver.close()
        raise
    return SqlCatalog(driver)


def _driver(home: str, catalog: str | None) -> Driver:
    place = find_home(home)
    if place.directory is not None:
        make_directory(place.directory)
    if catalog is not None:
        return PostgresDriver(*postgres_url(catalog, home), schema=place.schema_name)
    if place.directory is None:
        raise InvalidOption(
            option="catalog",
            owner=home,
            problem="it is missing, and this home is not a local directory",
            advice="Give the home a catalog on a server: connect(home, catalog='postgresql://...').",
        )
    return SqliteDriver(place.directory / CATALOG_FILE)
