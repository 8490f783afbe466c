"""`make services`: Kafka, a registry, PostgreSQL and others for a developer, until Ctrl+C, with addresses."""

from __future__ import annotations

import signal
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.connect import running_connect
from tests.services.iceberg_rest import running_iceberg_rest
from tests.services.jars import ServiceMissing, jars
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry
from tests.support.postgres import find_binaries, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def main() -> int:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laminae-services-")))
        wanted: tuple[tuple[str, Callable[[], AbstractContextManager[str]]], ...] = (
            ("kafka.bootstrap.servers", lambda: running_kafka(place / "kafka")),
            ("registry", lambda: running_registry(place / "registry")),
            ("PostgreSQL", _postgres),
            ("Iceberg REST catalog", lambda: _iceberg_rest(place / "iceberg")),
            ("Kafka Connect", lambda: _connect(place / "connect", addresses["kafka.bootstrap.servers"])),
        )
        # An end by SIGTERM is an end, too: every service is stopped by its own process id.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        addresses: dict[str, str | None] = {}
        try:
            for name, start in wanted:
                print(f"{name:<24}", end="", flush=True)
                addresses[name] = _started(stack, start)
            print(f"{'jars for connect()':<24}{','.join(map(str, sorted(jars('spark-kafka').glob('*.jar'))))}")
            print("Ctrl+C ends them all.", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            print()
    return 0


def _started(stack: ExitStack, start: Callable[[], AbstractContextManager[str]]) -> str | None:
    """The address, which is printed, or else the reason is."""
    try:
        address = stack.enter_context(start())
    except ServiceMissing as missing:
        print(missing, flush=True)
        return None
    print(address, flush=True)
    return address


@contextmanager
def _postgres() -> Iterator[str]:
    binaries = find_binaries()
    if binaries is None:
        raise ServiceMissing("PostgreSQL is not installed (initdb, pg_ctl)")
    with running_server(binaries) as url:
        yield url


@contextmanager
def _iceberg_rest(place: Path) -> Iterator[str]:
    with running_iceberg_rest(place) as server:
        yield server.address


@contextmanager
def _connect(place: Path, kafka_address: str | None) -> Iterator[str]:
    if kafka_address is None:
        raise ServiceMissing("Kafka Connect needs the broker")
    with running_connect(place, kafka_address) as worker:
        yield worker.address


if __name__ == "__main__":
    sys.exit(main())
