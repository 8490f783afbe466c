"""Connections to PostgreSQL: parameters from a URL, defaults that the URL may change, and settings of the session."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from laminae.errors import InvalidOption
from laminae.net.postgres import LOCK_SECONDS, PostgresSettings, error_text

if TYPE_CHECKING:
    from laminae.net.postgres import Connection

SECRET = "s3cr3t"


def shown(connection: Connection, name: str) -> object:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return None if row is None else row[0]


def test_a_connection_has_limits_of_time_and_a_url_may_change_them() -> None:
    defaults = PostgresSettings.of_url("postgresql://u@h/d", "s", "url").parameters
    assert (defaults["connect_timeout"], defaults["tcp_user_timeout"]) == ("10", "30000")
    own = PostgresSettings.of_url("postgresql://u@h/d?connect_timeout=3&tcp_user_timeout=5", "s", "url").parameters
    assert (own["connect_timeout"], own["tcp_user_timeout"], own["application_name"]) == ("3", "5", "laminae")


def test_a_password_of_its_own_wins_over_that_of_the_url_and_is_not_shown() -> None:
    settings = PostgresSettings.of_url("postgresql://u:other@h:5433/d", "s", "url", password=SECRET)
    assert settings.parameters["password"] == SECRET
    assert settings.address == "postgresql://u@h:5433/d"
    assert SECRET not in repr(settings)


def test_option_and_owner_of_a_url_that_is_none_are_named() -> None:
    with pytest.raises(InvalidOption, match="url of shipped") as raised:
        PostgresSettings.of_url("mysql://u@h/d", "shipped", "url")
    assert "file in the home" not in str(raised.value)


@pytest.mark.postgres
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_session_waits_for_locks_for_a_limited_time(postgres_url: str, autocommit: bool) -> None:
    settings = PostgresSettings.of_url(postgres_url, "s", "url")
    with closing(settings.connect(autocommit=autocommit, search_path="elsewhere")) as connection:
        assert shown(connection, "lock_timeout") == f"{LOCK_SECONDS}s"
        assert shown(connection, "search_path") == "elsewhere"
        assert shown(connection, "application_name") == "laminae"


@pytest.mark.postgres
def test_a_transaction_reads_what_is_committed_whatever_the_server_prefers(postgres_url: str) -> None:
    url = f"{postgres_url}?options=-c%20default_transaction_isolation%3Dserializable"
    with closing(PostgresSettings.of_url(url, "s", "url").connect(autocommit=False)) as connection:
        assert shown(connection, "transaction_isolation") == "read committed"


@pytest.mark.postgres
def test_an_error_is_told_in_the_words_of_the_server(postgres_url: str) -> None:
    settings = PostgresSettings.of_url(postgres_url, "s", "url")
    with closing(settings.connect(autocommit=True)) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute("SELECT 1 / 0")
    assert error_text(raised.value) == "division by zero"


@pytest.mark.postgres
def test_a_setting_that_the_server_refuses_closes_the_connection(postgres_url: str) -> None:
    with pytest.raises(psycopg.Error, match="no_such_setting"):
        PostgresSettings.of_url(postgres_url, "s", "url").connect(autocommit=True, no_such_setting="1")
