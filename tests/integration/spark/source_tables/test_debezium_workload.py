"""Thousands of changes on three tables of a real PostgreSQL through a real connector, which is killed on the way.

Each table goes by way of one topic for each form of messages into a source and a view of its own, while it is altered.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.services.connect import running_connect
from tests.services.fixtures import said_if_missing
from tests.support.debezium import AVRO, FORMS, JSON, new_database
from tests.support.debezium_workload import ALTERATIONS, COLUMNS, SCHEMA, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import laminae as lm
    from tests.services.connect import Connect
    from tests.support.debezium import Database
    from tests.support.debezium_workload import Alteration

pytestmark = [pytest.mark.services, pytest.mark.postgres, pytest.mark.usefixtures("connector_jars")]

# What a killed worker had sent and not yet written down is sent again.
FLUSH_MILLISECONDS = 3_000


@pytest.mark.parametrize(
    ("transactions", "kills"), [(300, 1), pytest.param(1_500, 4, marks=pytest.mark.chaos)], ids=["short", "long"]
)
def test_views_of_tables_equal_the_tables(
    db: lm.Database,
    tmp_path: Path,
    postgres_url: str,
    kafka_address: str,
    registry_address: str,
    transactions: int,
    kills: int,
) -> None:
    """Between two alterations there are so many transactions, more than one change each."""
    with new_database(postgres_url) as database, ExitStack() as stack:
        database.execute(*SCHEMA)
        workload = Workload(database)
        workload.change(transactions)
        worker = stack.enter_context(connectors(tmp_path, database, kafka_address, registry_address))
        database.until_sent(worker, *FORMS)
        for form in FORMS:
            for table in COLUMNS:
                db.sql(declared(database, form, table, kafka_address, registry_address))
                source, view = source_of(form, table), view_of(form, table)
                db.sql(f"CREATE MATERIALIZED VIEW {view} AS SELECT * FROM {source}")  # noqa: S608  # names of this file
        pipeline = db.start("200 milliseconds")
        stack.callback(pipeline.stop)
        for number, alteration in enumerate(ALTERATIONS):
            workload.change(transactions)
            if number % 2:
                # Here what comes before an alteration is read before it, there with it.
                database.until_sent(worker, *FORMS)
                pipeline.process_all_available()
            tell(db, alteration)
            workload.alter(alteration)
            workload.change(transactions // 2)
            if number < kills:
                os.kill(worker.pid, signal.SIGKILL)
                workload.change(transactions // 2)
                worker = stack.enter_context(connectors(tmp_path, database, kafka_address, registry_address))
        workload.change(transactions)
        database.until_sent(worker, *FORMS)
        pipeline.process_all_available()
        for form in FORMS:
            for table in COLUMNS:
                assert seen(db, database, view_of(form, table), table) == there(database, table), (table, form)
        assert db.sql("SELECT source_name, reason FROM laminar_catalog.dead_letters").fetchall() == []
        runs = {status.source: status.problem for status in pipeline.status()}
        assert not any(runs.values()), runs


@contextmanager
def connectors(place: Path, database: Database, kafka: str, registry: str) -> Iterator[Connect]:
    """A worker with a connector for each form, going on where the last one had written down that it was."""
    with said_if_missing(), running_connect(place / "connect", kafka, FLUSH_MILLISECONDS) as worker:
        for form in FORMS:
            worker.run(database.prefix(form), database.config(form, registry))
        yield worker


def declared(database: Database, form: str, table: str, kafka: str, registry: str) -> str:
    how = f"format = 'avro', registry = '{registry}'" if form == AVRO else "format = 'debezium-json', evolve = 'auto'"
    return f"""CREATE SOURCE {source_of(form, table)} ({COLUMNS[table]}, PRIMARY KEY (id)) WITH (
                 connector = 'kafka', changelog = 'debezium', topic = '{database.topic(form, table)}',
                 kafka.bootstrap.servers = '{kafka}', {how})"""


def source_of(form: str, table: str) -> str:
    return f"{table}_{form}".replace("-", "_")


def view_of(form: str, table: str) -> str:
    return f"{source_of(form, table)}_now"


def tell(db: lm.Database, alteration: Alteration) -> None:
    """What the guide says that a person tells first."""
    for form in FORMS:
        told = alteration.told or (alteration.told_without_schema if form == JSON else None)
        if told is not None:
            db.sql(f"ALTER SOURCE {source_of(form, alteration.table)} {told}")


def there(database: Database, table: str) -> list[dict[str, object]]:
    return sorted(database.rows(table), key=lambda row: row["id"])


def seen(db: lm.Database, database: Database, view: str, table: str) -> list[dict[str, object]]:
    """The rows of a view, in the columns that the table has: one that was dropped stays until somebody says so."""
    names = ", ".join(database.columns(table))
    found = db.sql(f"SELECT {names} FROM {view} ORDER BY id").arrow().to_pylist()  # noqa: S608  # names of this file
    return list(found)
