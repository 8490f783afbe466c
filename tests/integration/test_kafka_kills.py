"""kill -9 of drivers that read Avro from a real Kafka while records keep coming and a new schema id comes up."""

from __future__ import annotations

import json
import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import laminae as lm
from laminae.catalog import open_catalog
from laminae.registry import RegistryClient, RegistrySettings
from tests.support.avro_records import Written, register
from tests.support.crash import seeded_kills
from tests.support.driving import BOTH, JVM, PYTHON, Driver
from tests.support.load import Load
from tests.support.registry_double import avro_field as field
from tests.support.topics import new_topic
from tests.support.waiting import pass_a_moment, until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from laminae.catalog import Catalog

pytestmark = pytest.mark.services

SEED = 20260304
WORK_SECONDS = 600.0
PARTITIONS = 2
ID, NOTE = field("id"), field("note", ["null", "string"], default=None)


@pytest.mark.parametrize("kills", [[PYTHON, JVM, BOTH], pytest.param(seeded_kills(4)[:10], marks=pytest.mark.chaos)])
def test_killed_drivers_have_every_record_once(
    tmp_path: Path, kafka_address: str, registry_address: str, connector_jars: None, kills: Sequence[str]
) -> None:
    topic, home, out = new_topic(kafka_address, PARTITIONS), str(tmp_path / "home"), tmp_path / "out"
    client = RegistryClient(RegistrySettings(registry_address, "orders"))
    schemas = [register(client, f"{topic.name}-value", ID)]
    with lm.connect(home) as db, closing(open_catalog(home, None)) as catalog:
        db.sql(
            f"""CREATE SOURCE orders (id BIGINT NOT NULL) WITH (connector = 'kafka', format = 'avro',
                  topic = '{topic.name}', kafka.bootstrap.servers = '{kafka_address}',
                  registry = '{registry_address}', compatibility = 'BACKWARD')"""
        )
        db.sql("CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(id) AS ids FROM orders")
        db.sql(f"CREATE SINK k FROM orders WITH (connector = 'files', format = 'json', path = '{out}')")
        with Load(topic, lambda number: record(schemas, number), PARTITIONS) as load:
            for life, kill in enumerate(kills):
                through_a_life(catalog, home, tmp_path / f"driver-{life}.log", kill, random.Random(SEED + life))
                if life == 0:
                    # Its first records are met by the next driver, and by the one after that if it dies too soon.
                    schemas.append(register(client, f"{topic.name}-value", ID, NOTE))
        to_the_end(catalog, home, tmp_path / "driver-last.log", load.sent)
        totals = db.changes("totals").arrow().to_pylist()[-1]
        version = db.version("orders")
    assert (totals["n"], totals["ids"]) == (load.sent, sum(range(load.sent)))
    assert version == 2
    delivered = [json.loads(line) for file in out.iterdir() for line in file.read_text().splitlines()]
    assert sorted(row["id"] for row in delivered) == list(range(load.sent))
    assert all(row.get("note") in (None, f"n{row['id']}") for row in delivered)
    assert any(row.get("note") is not None for row in delivered)


def record(schemas: Sequence[Written], number: int) -> bytes:
    (made,) = schemas[number % len(schemas)].records([{"id": number, "note": f"n{number}"}])
    return made


def through_a_life(catalog: Catalog, home: str, log: Path, kill: str, dice: random.Random) -> None:
    begun = committed(catalog)
    driver = Driver(catalog, home, log).start()
    try:
        until(lambda: driver.is_running() and committed(catalog) > begun, WORK_SECONDS, "records are read")
        pass_a_moment(dice)
        driver.kill(kill)
    except BaseException as problem:
        problem.add_note(f"the end of {log}:\n{driver.tail()}")
        driver.sweep()
        raise


def to_the_end(catalog: Catalog, home: str, log: Path, sent: int) -> None:
    driver = Driver(catalog, home, log).start()
    try:
        until(
            lambda: driver.is_running() and committed(catalog) >= sent and is_delivered(catalog),
            WORK_SECONDS,
            "all is delivered",
        )
        driver.stop()
    except BaseException as problem:
        problem.add_note(f"the end of {log}:\n{driver.tail()}")
        driver.sweep()
        raise


def committed(catalog: Catalog) -> int:
    (source,) = catalog.sources()
    return catalog.epoch_totals(source.id).rows


def is_delivered(catalog: Catalog) -> bool:
    (source,), (sink,) = catalog.sources(), catalog.sinks()
    last = catalog.last_batch(source.id)
    return last is not None and sink.progress >= last.epoch
