"""Run a feed through drivers that are killed one after the other, and see what comes out at the end."""

from __future__ import annotations

import random
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from laminae.catalog import open_catalog
from laminae.errors import LeaseHeld
from laminae.spark.driver.lease import is_alive, take_lease
from laminae.spark.driver.pipeline import now
from tests.support.driving import BOTH, JVM, PYTHON, Driver
from tests.support.feed import Feed, committed, is_delivered, outcome
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from laminae.catalog import Catalog

SEED = 20260302
ROUNDS_PER_LIFE = 2
# A life is cut off while Spark warms up and runs its first epoch, or soon after that, when it delivers and goes on.
LONGEST_WAITS_SECONDS = (8.0, 1.0)
WORK_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the catalog of a run is, and what its drivers tell Spark."""

    catalog: str | None = None
    config: tuple[str, ...] = ()


def seeded_kills(of_each: int) -> list[str]:
    kills = [PYTHON, JVM, BOTH] * of_each
    random.Random(SEED).shuffle(kills)
    return kills


def assert_kills_change_nothing(directory: Path, kills: Sequence[str], place: Place) -> None:
    rounds = ROUNDS_PER_LIFE * (len(kills) + 1)
    undisturbed = run_through(directory / "undisturbed", rounds, [], place)
    killed = run_through(directory / "killed", rounds, kills, place)
    assert killed.keys() == undisturbed.keys()
    for part, expected in undisturbed.items():
        assert killed[part] == expected, part


def run_through(directory: Path, rounds: int, kills: Sequence[str], place: Place) -> dict[str, object]:
    """What a feed comes to when the driver is killed so many times, each life cut off at a seeded moment."""
    dice = random.Random(SEED)
    feed = Feed(directory, place.catalog, rounds)
    feed.create()
    jvms: list[str] = []
    with closing(open_catalog(feed.home, place.catalog)) as catalog:
        feed.start()
        for number in range(len(kills) + 1):
            # Each life has work of its own, so that every kill comes in the middle of some.
            feed.allow(ROUNDS_PER_LIFE if kills else rounds)
            log = directory / f"driver-{number}.log"
            driver = Driver(catalog, feed.home, log, place.catalog, place.config).start()
            try:
                # A JVM that outlives its Python could still write: the successor has waited for it.
                assert not any(map(is_alive, jvms))
                jvms.append(driver.jvm)
                assert_refused_by_name(catalog, driver)
                if number < len(kills):
                    work_until_the_moment(catalog, feed, driver, dice)
                    driver.kill(kills[number])
                else:
                    work_to_the_end(catalog, feed, driver)
                    driver.stop()
            except BaseException as problem:
                problem.add_note(f"the end of {log}:\n{driver.tail()}")
                driver.sweep()
                raise
        return outcome(catalog, feed)


def assert_refused_by_name(catalog: Catalog, driver: Driver) -> None:
    """A second driver on the home is told who runs it."""
    with pytest.raises(LeaseHeld, match=f"is being run by .*process {driver.pid} on "):
        take_lease(catalog, None, now)


def work_until_the_moment(catalog: Catalog, feed: Feed, driver: Driver, dice: random.Random) -> None:
    before, more = total(catalog), dice.randrange(len(LONGEST_WAITS_SECONDS))
    until(
        lambda: driver.is_running() and (feed.is_fed or total(catalog) >= before + more),
        WORK_SECONDS,
        f"{more} more epochs",
    )
    # The moment within an epoch or a delivery at which it dies: nothing to wait for tells such moments apart.
    time.sleep(dice.uniform(0, LONGEST_WAITS_SECONDS[more]))


def work_to_the_end(catalog: Catalog, feed: Feed, driver: Driver) -> None:
    until(lambda: driver.is_running() and is_delivered(catalog, feed), WORK_SECONDS, "all is delivered")


def total(catalog: Catalog) -> int:
    return sum(committed(catalog, source.name) for source in catalog.sources())
