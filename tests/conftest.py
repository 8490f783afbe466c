"""Fixtures that many tests share, and which tests run by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.catalogs import POSTGRES, SQLITE, CatalogPlace
from tests.support.postgres import find_binaries, running_server
from tests.support.spark_sessions import prepare_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laminae.catalog import Catalog
    from tests.support.iceberg import Lake

pytest_plugins = ["tests.support.skips", "tests.support.spark_marker", "tests.services.fixtures"]

prepare_jvm()

# How long it takes to draw an example says more of the machine's other work than of the strategy.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

NO_POSTGRES = "PostgreSQL is not installed (initdb, pg_ctl): the catalog was NOT tested on it"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long fault-injection runs are for `make chaos`. An expression that names the marker decides by itself."""
    if "chaos" in config.getoption("markexpr"):
        return
    long = [item for item in items if item.get_closest_marker("chaos")]
    items[:] = [item for item in items if not item.get_closest_marker("chaos")]
    config.hook.pytest_deselected(items=long)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the run, started when the first test asks for it."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(NO_POSTGRES)
    with running_server(binaries) as url:
        yield url


@pytest.fixture(params=[SQLITE, pytest.param(POSTGRES, marks=pytest.mark.postgres)])
def catalog_place(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogPlace:
    """A fresh home for each test, with its catalog on each backend in turn."""
    url = request.getfixturevalue("postgres_url") if request.param == POSTGRES else None
    return CatalogPlace(request.param, str(tmp_path / "home"), url)


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """An empty lake. Its catalog is in SQLite, unless the test is for `both_catalogs`."""
    from tests.support.iceberg import REST, SQL, rest_lake, sql_lake

    if getattr(request, "param", SQL) == REST:
        return rest_lake(request.getfixturevalue("iceberg_rest"))
    return sql_lake(tmp_path)


@pytest.fixture
def catalog(catalog_place: CatalogPlace) -> Iterator[Catalog]:
    with catalog_place.opened() as opened:
        yield opened
