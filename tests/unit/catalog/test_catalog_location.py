"""From what a user writes to where the catalog is; a password gets no further than the database driver."""

from __future__ import annotations

import sys
import traceback

import pytest

from laminae.catalog import open_catalog
from laminae.catalog.drivers.postgres import PostgresDriver
from laminae.catalog.location import find_home
from laminae.errors import CatalogUnavailable, InvalidOption, NotAvailable
from laminae.net.postgres import PostgresSettings

SECRET = "s3cr3t"


def test_the_schema_of_a_home_can_be_told_by_people_and_is_unique() -> None:
    one, other = find_home("/data/Order Events").schema_name, find_home("/elsewhere/Order Events").schema_name
    assert one.startswith("laminae_order_events_")
    assert one != other
    assert len(find_home("/" + "long" * 50).schema_name) <= 63


def test_a_link_to_a_home_is_that_home(tmp_path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert find_home(str(tmp_path / "link")) == find_home(str(tmp_path / "home"))


def test_a_file_uri_may_escape_its_characters() -> None:
    assert find_home("file:///a%20b") == find_home("/a b")


def test_a_reference_stands_for_a_part_of_the_url_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "a:b@c/d%")
    monkeypatch.setenv("SERVER", "db.example")
    settings = PostgresSettings.of_url("postgresql://u:${env:PASSWORD}@${env:SERVER}:5433/d", "h")
    driver = PostgresDriver(settings, schema="s")
    assert settings.parameters["password"] == "a:b@c/d%"
    assert driver.location == "postgresql://u@db.example:5433/d (schema s)"


def test_a_reference_can_be_the_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", f"postgres://u:{SECRET}@db.example/d?sslmode=require")
    settings = PostgresSettings.of_url("${env:URL}", "h")
    driver = PostgresDriver(settings, schema="s")
    assert (settings.parameters["password"], settings.parameters["sslmode"]) == (SECRET, "require")
    assert SECRET not in repr(settings)
    assert SECRET not in driver.location


@pytest.mark.parametrize(
    ("catalog", "problem"),
    [
        ("mysql://u@h/d", "not a PostgreSQL URL"),
        ("catalog.db", "not a PostgreSQL URL"),
        ("postgresql://${env:LAMINAE_NO_SUCH}@h/d", "LAMINAE_NO_SUCH is not set"),
        ("postgresql://${vault:x}@h/d", "vault is not a kind of reference"),
        (f"postgresql://u:{SECRET}%zz@h/d", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(tmp_path, catalog: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem) as refused:
        open_catalog(str(tmp_path), catalog)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_an_unreachable_server_is_named_without_the_password(tmp_path) -> None:
    with pytest.raises(CatalogUnavailable, match=r"u@127\.0\.0\.1:1/d") as refused:
        open_catalog(str(tmp_path), f"postgresql://u:{SECRET}@127.0.0.1:1/d")
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_without_psycopg_the_extra_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(NotAvailable, match=r"laminae\[postgres\]"):
        open_catalog(str(tmp_path), "postgresql://u@h/d")
