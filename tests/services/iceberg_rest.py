"""An Iceberg REST catalog on the loopback address alone; its catalog is in SQLite, its tables are files beside that."""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.jars import java_command
from tests.services.processes import free_port, service

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
SERVER = Path(__file__).with_suffix(".xml")
STARTER = "org.eclipse.jetty.xml.XmlConfiguration"


@dataclass(frozen=True, slots=True)
class IcebergRest:
    """A catalog that answers. Each namespace is a directory of `warehouse`."""

    address: str
    warehouse: Path
    pid: int


@contextmanager
def running_iceberg_rest(directory: Path, port: int | None = None) -> Iterator[IcebergRest]:
    """A directory used before, with its port, gives that catalog again, with its tables."""
    # A space and brackets: paths are written as URIs by some and as patterns by others.
    warehouse = directory / "lake [1]"
    warehouse.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    address = f"http://{HOST}:{port}"
    settings = {"port": port, "uri": f"jdbc:sqlite:{directory / 'catalog.db'}", "warehouse": warehouse}
    given = [f"{name}={value}" for name, value in settings.items()]
    command = java_command("iceberg-rest", STARTER, *given, str(SERVER))
    with service("iceberg-rest", command, os.environ, directory, lambda: _answers(address)) as pid:
        yield IcebergRest(address, warehouse, pid)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/v1/config", timeout=5) as answer:
            return "endpoints" in json.load(answer)
    except (OSError, ValueError):
        return False
