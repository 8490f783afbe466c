"""kill -9 of drivers whose sinks write to a real PostgreSQL and a real Kafka: both end with every row as it is."""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import laminae as lm
from laminae.catalog import open_catalog
from tests.support.crash import seeded_kills
from tests.support.driving import BOTH, PYTHON, Driver
from tests.support.received import make_topic, once, received, table
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [pytest.mark.services, pytest.mark.postgres]

SEED = 20260303
WORK_SECONDS = 600.0
INSERTS, ROWS, KEYS = 4, 200, 300
SOURCE = """CREATE SOURCE users (id BIGINT NOT NULL, gone BOOLEAN, n BIGINT, PRIMARY KEY (id))
            WITH (changelog = 'upsert', deleted_by = 'gone')"""

Table = dict[object, object]


@pytest.mark.parametrize("kills", [[PYTHON, BOTH], pytest.param(seeded_kills(3), marks=pytest.mark.chaos)])
def test_sinks_of_killed_drivers_have_what_was_sent(
    tmp_path: Path, postgres_url: str, kafka_address: str, connector_jars: None, kills: Sequence[str]
) -> None:
    name, home = f"users-{uuid4()}", str(tmp_path / "home")
    make_topic(kafka_address, name)
    with lm.connect(home) as db, closing(open_catalog(home, None)) as catalog:
        db.sql(SOURCE)
        db.sql(
            f"""CREATE SINK rows FROM users WITH (connector = 'postgres', url = '{postgres_url}', table = '{name}',
                                                  create_table = 'true', add_columns = 'true')"""
        )
        db.sql(
            f"""CREATE SINK messages FROM users WITH (connector = 'kafka', topic = '{name}',
                                                      kafka.bootstrap.servers = '{kafka_address}')"""
        )
        dice, expected, sent = random.Random(SEED), Table(), 0
        for number, kill in enumerate([*kills, None]):
            driver = Driver(catalog, home, tmp_path / f"driver-{number}.log").start()
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
    assert in_postgres(postgres_url, name) == expected
    messages = received(kafka_address, name)
    assert table(messages, "id") == expected
    assert table(once(messages), "id") == expected


def work_until_the_moment(db: lm.Database, driver: Driver, begun: int, dice: random.Random) -> None:
    until(lambda: driver.is_running() and progress(db) > begun, WORK_SECONDS, "it delivers")
    # The moment within a delivery at which it dies: nothing to wait for tells such moments apart.
    time.sleep(dice.uniform(0, 1.0))


def work_to_the_end(db: lm.Database, driver: Driver, sent: int) -> None:
    until(lambda: driver.is_running() and is_delivered(db, sent), WORK_SECONDS, "all is delivered")
    driver.stop()


def send(db: lm.Database, dice: random.Random, expected: Table, has_note: bool) -> int:
    """Some inserts of upserts and deletes, and what they make of the table that is expected."""
    for _ in range(INSERTS):
        rows = []
        for _ in range(ROWS):
            row = {"id": dice.randrange(KEYS), "gone": dice.random() < 0.2, "n": dice.randrange(1_000_000)}
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


def in_postgres(url: str, name: str) -> Table:
    """Rows from before the column was added have none here, as they have in their messages."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    return {row["id"]: {key: value for key, value in row.items() if value is not None} for row in rows}
