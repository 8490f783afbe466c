"""An Apicurio registry with the Confluent API, on the loopback address alone; its schemas are in a file."""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.services.jars import jars
from tests.services.processes import free_port, service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"
API = "/apis/ccompat/v7"


@contextmanager
def running_registry(directory: Path, port: int | None = None) -> Iterator[str]:
    """The address of its Confluent API. A directory used before gives that registry again, with its schemas."""
    directory.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    address = f"http://{HOST}:{port}{API}"
    (runner,) = jars("registry").glob("apicurio-registry-app-*-runner.jar")
    settings = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(port),
        "quarkus.management.enabled": "false",
        "apicurio.datasource.url": f"jdbc:h2:file:{directory / 'schemas'}",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options, "-jar", str(runner)]
    with service("registry", command, os.environ, directory, lambda: _answers(address)):
        yield address


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/subjects", timeout=5) as answer:
            return isinstance(json.load(answer), list)
    except (OSError, ValueError):
        return False
