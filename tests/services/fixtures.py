"""Services that many tests share: each is started once in a run, when the first test asks for it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.services.jars import ServiceMissing
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry

if TYPE_CHECKING:
    from collections.abc import Iterator


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
