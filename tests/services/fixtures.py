"""Services that many tests share: each is started once in a run, when the first test asks for it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from tests.services.connect import Connect, running_connect
from tests.services.iceberg_rest import IcebergRest, running_iceberg_rest
from tests.services.jars import ServiceMissing, jars
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry
from tests.support.spark_sessions import give_jars

if TYPE_CHECKING:
    from collections.abc import Iterator


JARS = "connector_jars"


def pytest_collection_finish(session: pytest.Session) -> None:
    """The JVM of a run is started once: where a test of the run needs the jars of connectors, it begins with them."""
    if any(JARS in getattr(item, "fixturenames", ()) for item in session.items):
        with suppress(ServiceMissing):
            give_jars(sorted(jars("spark-kafka").glob("*.jar")))


@pytest.fixture(scope="session")
def connector_jars() -> None:
    """Asked for by tests that need Spark's connectors for Kafka and Avro; see `pytest_collection_finish`."""
    with said_if_missing():
        jars("spark-kafka")


@contextmanager
def said_if_missing() -> Iterator[None]:
    """A service that cannot be started here is a skip with its reason, which is a failure in CI."""
    try:
        yield
    except ServiceMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker for the run."""
    with said_if_missing(), running_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="session")
def registry_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the Confluent API of a registry for the run."""
    with said_if_missing(), running_registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRest]:
    """An Iceberg REST catalog for the run."""
    with said_if_missing(), running_iceberg_rest(tmp_path_factory.mktemp("iceberg-rest")) as server:
        yield server


@pytest.fixture(scope="session")
def connect_of_the_run(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    with said_if_missing(), running_connect(tmp_path_factory.mktemp("connect"), kafka_address) as worker:
        yield worker


@pytest.fixture
def connect_worker(connect_of_the_run: Connect) -> Iterator[Connect]:
    """The worker of Kafka Connect for the run, with Debezium's connector for PostgreSQL. No test leaves one behind."""
    yield connect_of_the_run
    connect_of_the_run.end_all()
