"""The lease of a running driver: refused while its holder lives, taken over when it is dead, never lost quietly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from laminae.catalog import open_catalog
from laminae.errors import HomeUnwritable, LeaseHeld, LeaseLost
from laminae.spark.driver import lease
from laminae.spark.driver.lease import take_lease
from tests.support.catalogs import NOON
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from laminae.catalog import Catalog

SECONDS = 30.0


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(str(tmp_path / "home"))
    yield opened
    opened.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing, to stand for a driver's Python or its JVM."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


def clock() -> datetime:
    return NOON


def hold(catalog: Catalog, python: int, jvm: int | None) -> None:
    """As a driver of another process would have written it."""
    holder = {"python": lease.identity(python), "jvm": lease.identity(jvm) if jvm else None}
    ttl = timedelta(days=36500)
    catalog.acquire_lease(json.dumps(holder), os.uname().nodename, python, NOON, ttl, dead=False, seen_token=None)


def test_a_live_holder_is_named(catalog: Catalog, sleeper: subprocess.Popen[bytes]) -> None:
    hold(catalog, sleeper.pid, None)
    with pytest.raises(LeaseHeld, match=f"process {sleeper.pid} on {os.uname().nodename}"):
        take_lease(catalog, None, clock)


def test_a_dead_holder_is_replaced_at_once(catalog: Catalog, sleeper: subprocess.Popen[bytes]) -> None:
    hold(catalog, sleeper.pid, None)
    # A zombie until its parent looks: it writes nothing more.
    os.kill(sleeper.pid, signal.SIGKILL)
    until(lambda: not lease.identity(sleeper.pid), SECONDS, "the holder is dead")
    held = take_lease(catalog, None, clock)
    assert held.token == 2
    held.release()
    assert catalog.lease() is None


def test_a_successor_waits_for_the_jvm_of_a_dead_driver(catalog: Catalog, sleeper: subprocess.Popen[bytes]) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    hold(catalog, gone.pid, sleeper.pid)
    gone.kill()
    gone.wait()
    taken: list[lease.HeldLease] = []
    successor = threading.Thread(target=lambda: taken.append(take_lease(catalog, None, clock)))
    successor.start()
    successor.join(0.3)
    assert successor.is_alive()
    assert not taken
    sleeper.kill()
    successor.join(SECONDS)
    assert [held.token for held in taken] == [2]
    taken[0].release()


def test_a_lease_that_was_taken_over_is_noticed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    held = take_lease(catalog, None, clock)
    other = catalog.acquire_lease("other", "elsewhere", 1, NOON, timedelta(hours=1), dead=True, seen_token=None)
    until(lambda: held.lost is not None, SECONDS, "the loss is noticed")
    assert isinstance(held.lost, LeaseLost)
    held.release()
    present = catalog.lease()
    assert present is not None
    assert present.token == other.token


def test_a_lease_that_cannot_be_given_back_is_no_hindrance(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk: what stopped the driver is told, and when there is room again it starts at once."""
    held = take_lease(catalog, None, clock)

    def refuse(_: int) -> None:
        raise HomeUnwritable(location="catalog.db", problem="database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(catalog, "release_lease", refuse)
        held.release()
    assert isinstance(held.lost, HomeUnwritable)
    again = take_lease(catalog, None, clock)
    assert again.token == held.token + 1
    again.release()
