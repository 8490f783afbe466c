"""What the two databases do behind the driver: connections per thread, full disks, lost connections."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from laminae.catalog import open_catalog
from laminae.catalog.drivers.protocol import PerThread
from laminae.catalog.drivers.sqlite import SqliteDriver
from laminae.errors import CatalogUnavailable, HomeUnwritable
from tests.support.catalogs import create, driver_of, live, made

if TYPE_CHECKING:
    from pathlib import Path

    from laminae.catalog import Catalog


class FakeConnection:
    def __init__(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def connections() -> PerThread[FakeConnection]:
    return PerThread("here", FakeConnection, FakeConnection.close)


def in_thread(connections: PerThread[FakeConnection]) -> FakeConnection:
    found: list[FakeConnection] = []
    thread = threading.Thread(target=lambda: found.append(connections.get()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_keeps_its_connection(connections: PerThread[FakeConnection]) -> None:
    assert connections.get() is connections.get()
    assert in_thread(connections) is not connections.get()


def test_the_connection_of_an_ended_thread_is_closed_by_the_next(connections: PerThread[FakeConnection]) -> None:
    mine, first = connections.get(), in_thread(connections)
    second = in_thread(connections)
    assert (mine.is_open, first.is_open, second.is_open) == (True, False, True)


def test_closing_closes_the_connections_of_all_threads(connections: PerThread[FakeConnection]) -> None:
    mine, other = connections.get(), in_thread(connections)
    connections.close()
    assert not mine.is_open
    assert not other.is_open
    with pytest.raises(CatalogUnavailable, match="closed"):
        connections.get()


def _close_in_child(connections: PerThread[FakeConnection], inherited: FakeConnection, answer) -> None:
    fresh = connections.get()
    connections.close()
    answer.put((fresh is not inherited, inherited.is_open))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_neither_uses_nor_closes_what_it_inherited(connections: PerThread[FakeConnection]) -> None:
    fork = multiprocessing.get_context("fork")
    answer = fork.SimpleQueue()
    child = fork.Process(target=_close_in_child, args=(connections, connections.get(), answer))
    child.start()
    child.join()
    assert answer.get() == (True, True)
    answer.close()


def test_a_full_disk_makes_the_home_unwritable_and_changes_nothing(tmp_path: Path) -> None:
    with closing(SqliteDriver(tmp_path / "x.db")) as driver:
        with driver.write() as transaction:
            transaction.execute("CREATE TABLE t (a TEXT)")
        driver.query("PRAGMA max_page_count = 2")
        with pytest.raises(HomeUnwritable, match="full"), driver.write() as transaction:
            transaction.execute("INSERT INTO t VALUES (?)", "x" * 100_000)
        assert driver.query("SELECT count(*) FROM t") == [(0,)]
        with driver.write() as transaction:
            transaction.execute("INSERT INTO t VALUES (?)", "x")


def test_a_read_only_file_makes_the_home_unwritable(tmp_path: Path) -> None:
    with closing(SqliteDriver(tmp_path / "x.db")) as driver:
        driver.query("PRAGMA query_only = ON")
        with pytest.raises(HomeUnwritable, match=r"x\.db"), driver.write() as transaction:
            transaction.execute("CREATE TABLE t (a TEXT)")


def test_a_commit_is_on_disk_before_it_returns(tmp_path: Path) -> None:
    with closing(SqliteDriver(tmp_path / "x.db")) as driver:
        facts = [driver.query(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "foreign_keys")]
    assert facts == ["wal", 2, 1]


def terminate_clients(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        # Waits until each has ended: the next statement on such a connection must fail, not race.
        admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'laminae'")


def write_and_lose_connection(catalog: Catalog, url: str, then: str | None = None) -> None:
    with driver_of(catalog).write() as transaction:
        transaction.execute("UPDATE counters SET epoch = 7")
        terminate_clients(url)
        if then:
            transaction.execute(then)


@pytest.mark.postgres
def test_an_idle_connection_that_was_lost_is_made_again(tmp_path: Path, postgres_url: str) -> None:
    with closing(open_catalog(str(tmp_path), postgres_url)) as catalog:
        made(catalog)
        terminate_clients(postgres_url)
        assert live(catalog).version == 1
        terminate_clients(postgres_url)
        catalog.commit([create("other")])
        assert len(catalog.sources()) == 2


@pytest.mark.postgres
def test_a_connection_lost_during_a_commit_is_never_retried(tmp_path: Path, postgres_url: str) -> None:
    with closing(open_catalog(str(tmp_path), postgres_url)) as catalog:
        with pytest.raises(CatalogUnavailable, match="outcome is unknown"):
            write_and_lose_connection(catalog, postgres_url)
        assert catalog.last_epoch() == 0


@pytest.mark.postgres
def test_a_connection_lost_within_a_transaction_changes_nothing(tmp_path: Path, postgres_url: str) -> None:
    with closing(open_catalog(str(tmp_path), postgres_url)) as catalog:
        with pytest.raises(CatalogUnavailable, match=r"terminating|closed"):
            write_and_lose_connection(catalog, postgres_url, then="UPDATE counters SET epoch = 8")
        assert catalog.last_epoch() == 0


@pytest.mark.postgres
def test_a_stricter_default_isolation_of_the_server_does_no_harm(tmp_path: Path, postgres_url: str) -> None:
    url = f"{postgres_url}?options=-c%20default_transaction_isolation%3Dserializable"
    with closing(open_catalog(str(tmp_path), url)) as catalog:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: made(catalog, f"s{number}"), range(20)))
        assert len(catalog.sources()) == 20
