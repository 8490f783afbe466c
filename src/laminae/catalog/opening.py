"""Opens the catalog of a home: a file in the home itself, or a PostgreSQL database that several homes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.drivers.postgres import PostgresDriver
from laminae.catalog.drivers.sqlite import SqliteDriver
from laminae.catalog.location import find_home, make_directory
from laminae.catalog.migrations import migrate
from laminae.catalog.store import SqlCatalog
from laminae.errors import InvalidOption
from laminae.net.postgres import PostgresSettings

if TYPE_CHECKING:
    from laminae.catalog.drivers.protocol import Driver
    from laminae.catalog.port import Catalog

CATALOG_FILE = "catalog.db"


def open_catalog(home: str, catalog: str | None = None) -> Catalog:
    """Creates the catalog if it is missing and migrates it if its format is older."""
    driver = _driver(home, catalog)
    try:
        migrate(driver)
    except BaseException:
        driver.close()
        raise
    return SqlCatalog(driver)


def _driver(home: str, catalog: str | None) -> Driver:
    location = find_home(home)
    if location.directory is not None:
        make_directory(location.directory)
    if catalog is not None:
        return PostgresDriver(PostgresSettings.of_url(catalog, home), schema=location.schema_name)
    if location.directory is None:
        raise InvalidOption(
            option="catalog",
            owner=home,
            problem="it is missing, and this home is not a local directory",
            advice="Use a catalog on a server: connect(home, catalog='postgresql://...').",
        )
    return SqliteDriver(location.directory / CATALOG_FILE)
