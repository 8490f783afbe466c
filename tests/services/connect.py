"""A worker of Kafka Connect with Debezium's connector for PostgreSQL, on the loopback address alone."""

from __future__ import annotations

import os
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from tests.services.jars import java_command
from tests.services.processes import free_port, service
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

HOST = "127.0.0.1"
STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
REST_SECONDS, RUNNING_SECONDS = 30.0, 120.0
FLUSH_MILLISECONDS = 500
# Debezium tells of much at INFO, and of every problem at WARN.
LOGGING = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.debezium.name = io.debezium.connector
logger.debezium.level = info
"""


@dataclass(frozen=True, slots=True)
class Connect:
    """A worker that answers: `address` is that of its REST interface."""

    address: str
    pid: int

    def run(self, connector: str, config: Mapping[str, str]) -> None:
        """Returns when the connector and its task run."""
        self._ask("PUT", f"/connectors/{connector}/config", dict(config))
        until(lambda: self._runs(connector), RUNNING_SECONDS, f"connector {connector} runs")

    def end_all(self) -> None:
        """No connector runs any more; the slots from which they read are where they were."""
        for connector in self._ask("GET", "/connectors?expand=status"):
            self._ask("DELETE", f"/connectors/{connector}")

    def position(self, connector: str) -> int:
        """The LSN of the last event up to which the broker has all of them, as the worker has written it down."""
        found = self._ask("GET", f"/connectors/{connector}/offsets")["offsets"]
        return max((int(each["offset"].get("lsn") or 0) for each in found), default=0)

    def _runs(self, connector: str) -> bool:
        # The worker knows nothing of a connector in the moment in which it is made.
        told = self._ask("GET", "/connectors?expand=status").get(connector, {}).get("status")
        if told is None:
            return False
        parts = [told["connector"], *told["tasks"]]
        failed = [part["trace"] for part in parts if part["state"] == "FAILED"]
        assert not failed, failed[0]
        return len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts)

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.address}{path}",
            None if body is None else orjson.dumps(body),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=REST_SECONDS) as answer:
            return dict(orjson.loads(answer.read() or b"{}"))


@contextmanager
def running_connect(
    directory: Path, kafka_address: str, flush_milliseconds: int = FLUSH_MILLISECONDS
) -> Iterator[Connect]:
    """A worker without connectors. In a directory used before, they go on where they were, as it was written down.

    That is every `flush_milliseconds`: what came after it is sent again after a kill.
    """
    directory.mkdir(parents=True, exist_ok=True)
    address = f"http://{HOST}:{free_port()}"
    settings = {
        "bootstrap.servers": kafka_address,
        "listeners": address,
        "plugin.discovery": "service_load",
        "offset.storage.file.filename": str(directory / "offsets"),
        "offset.flush.interval.ms": str(flush_milliseconds),
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    properties, logging = directory / "worker.properties", directory / "log4j2.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    logging.write_text(LOGGING)
    java, *rest = java_command("debezium", STANDALONE, str(properties))
    command = [java, f"-Dlog4j2.configurationFile={logging}", *rest]
    with service("connect", command, os.environ, directory, lambda: _answers(address)) as pid:
        yield Connect(address, pid)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/connectors", timeout=5) as answer:
            return isinstance(orjson.loads(answer.read()), list)
    except (OSError, ValueError):
        return False
