"""Drivers that are killed while their sinks are written to: upserts and deletes of a source that takes on a column."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.support.driving import Driver
from tests.support.waiting import pass_a_moment, until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import laminae as lm
    from laminae.catalog import Catalog

SEED = 20260303
WORK_SECONDS = 600.0
INSERTS, ROWS, KEYS = 4, 200, 300
SOURCE = """CREATE SOURCE users (id BIGINT NOT NULL, gone BOOLEAN, n BIGINT, PRIMARY KEY (id))
            WITH (changelog = 'upsert', deleted_by = 'gone')"""

Table = dict[object, object]


def through_kills(db: lm.Database, catalog: Catalog, place: Path, kills: Sequence[str]) -> Table:
    """Send rows to `users` through drivers that die as told, and one that ends well; the table that must be there."""
    dice, expected, sent = random.Random(SEED), Table(), 0
    for number, kill in enumerate([*kills, None]):
        driver = Driver(catalog, db.home, place / f"driver-{number}.log").start()
        try:
            begun = progress(db)
            sent += send(db, dice, expected, has_note=number > 0)
            if kill is None:
                work_to_the_end(db, driver, sent)
            else:
                work_until_the_moment(db, driver, begun, dice)
                driver.kill(kill)
        except BaseException as problem:
            problem.add_note(f"the end of {driver.log}:\n{driver.tail()}")
            driver.sweep()
            raise
        if number == 0:
            db.sql("ALTER SOURCE users ADD COLUMN note STRING")
    return expected


def work_until_the_moment(db: lm.Database, driver: Driver, begun: int, dice: random.Random) -> None:
    until(lambda: driver.is_running() and progress(db) > begun, WORK_SECONDS, "it delivers")
    pass_a_moment(dice)


def work_to_the_end(db: lm.Database, driver: Driver, sent: int) -> None:
    until(lambda: driver.is_running() and is_delivered(db, sent), WORK_SECONDS, "all is delivered")
    driver.stop()


def send(db: lm.Database, dice: random.Random, expected: Table, has_note: bool) -> int:
    """Some inserts of upserts and deletes, and what they make of the table that is expected."""
    for _ in range(INSERTS):
        rows: list[dict[str, object]] = []
        for _ in range(ROWS):
            row: dict[str, object] = {
                "id": dice.randrange(KEYS),
                "gone": dice.random() < 0.2,
                "n": dice.randrange(1_000_000),
            }
            rows.append({**row, "note": f"note {row['n']}"} if has_note else row)
        db.insert("users", rows)
        for row in rows:
            if row["gone"]:
                expected.pop(row["id"], None)
            else:
                expected[row["id"]] = row
    return INSERTS * ROWS


def progress(db: lm.Database) -> int:
    return min(sink.progress for sink in db._catalog.sinks())


def is_delivered(db: lm.Database, sent: int) -> bool:
    found = db.status().to_pylist()
    rows = sum(row["rows"] for row in found if row["kind"] == "source")
    return rows == sent and all((row["state"], row["lag"]) == ("live", 0) for row in found if row["kind"] == "sink")
