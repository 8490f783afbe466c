"""A writer killed at any moment: what was acknowledged is there, and at most the one commit it was making."""

from __future__ import annotations

import multiprocessing
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from tests.support.catalogs import live, made

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tests.support.catalogs import CatalogPlace

SEED = 20260301
MOST_ACKNOWLEDGED = 25
LONGEST_WAIT_SECONDS = 0.005


def write_for_ever(place: CatalogPlace, acknowledged: Connection) -> None:
    with lm.connect(place.home, catalog=place.url) as db:
        while True:
            column = f"c{db.version('orders') + 1}"
            row = db.sql(f"ALTER SOURCE orders ADD COLUMN {column} BIGINT").fetchone()
            acknowledged.send(row[2])


@pytest.mark.parametrize("rounds", [5, pytest.param(20, marks=pytest.mark.chaos)])
def test_a_killed_writer_leaves_what_was_acknowledged_and_at_most_one_more(
    catalog_place: CatalogPlace, rounds: int
) -> None:
    dice = random.Random(SEED)
    with catalog_place.opened() as catalog:
        made(catalog, "orders", "c1")
    version = 1
    for _ in range(rounds):
        acknowledged = run_and_kill(catalog_place, dice)
        assert acknowledged == list(range(version + 1, version + 1 + len(acknowledged)))
        version = check_versions(catalog_place, acknowledged[-1])


def run_and_kill(place: CatalogPlace, dice: random.Random) -> list[int]:
    """The versions that the writer was told before it died."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=write_for_ever, args=(place, sender))
    process.start()
    sender.close()
    try:
        acknowledged = [receiver.recv() for _ in range(dice.randint(1, MOST_ACKNOWLEDGED))]
        # The moment within a commit at which it dies: nothing to wait for tells such moments apart.
        time.sleep(dice.uniform(0, LONGEST_WAIT_SECONDS))
    finally:
        process.kill()
        process.join()
        process.close()
    with receiver, suppress(EOFError):
        while True:
            acknowledged.append(receiver.recv())
    return acknowledged


def check_versions(place: CatalogPlace, acknowledged: int) -> int:
    """The version that the catalog is at, after a look at everything that belongs to it."""
    with place.opened() as catalog:
        # Waits for the lock: a PostgreSQL server may still be making the dead writer's last commit.
        catalog.commit([])
        source = live(catalog)
        assert source.version in (acknowledged, acknowledged + 1)
        names = [f"c{number}" for number in range(1, source.version + 1)]
        assert source.schema.names == [row.column_name for row in catalog.history("orders")] == names
        assert [version.schema.names for version in catalog.versions(source.id)] == [
            names[:number] for number in range(1, source.version + 1)
        ]
        assert catalog.definition_seq() == source.version
    return source.version
