"""A Spark standalone cluster of one master and two workers from the pip package, on the loopback address alone."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.processes import free_port, service

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
WORKERS = 2
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
# What a driver needs to run there. Executors are small: two of them, the driver and a catalog share one machine.
SETTINGS = (
    f"spark.driver.host={HOST}",
    f"spark.driver.bindAddress={HOST}",
    "spark.cores.max=2",
    "spark.executor.cores=1",
    "spark.executor.memory=1g",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


@contextmanager
def running_cluster(directory: Path) -> Iterator[str]:
    """The URL of its master, when both workers have reported to it. Logs and work are below `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    port, console = free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    with ExitStack() as stack:
        ports = ("--host", HOST, "--port", str(port), "--webui-port", str(console))
        stack.enter_context(
            service("master", _command(MASTER, *ports), _environment(), directory, lambda: _workers(console) == 0)
        )
        for number in range(1, WORKERS + 1):
            options = (
                "-c",
                "1",
                "-m",
                "2g",
                "--host",
                HOST,
                "--webui-port",
                "0",
                "-d",
                str(directory / f"work-{number}"),
            )
            stack.enter_context(
                service(
                    f"worker-{number}",
                    _command(WORKER, *options, url),
                    _environment(),
                    directory,
                    lambda expected=number: _workers(console) == expected,  # type: ignore[misc]  # bound at once
                )
            )
        yield url


def _command(main: str, *options: str) -> list[str]:
    import pyspark

    # It ends in an exec of java: the process that we start is the service itself.
    return [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), main, *options]


def _environment() -> dict[str, str]:
    import pyspark

    # Executors start Python workers with what the Spark worker has: our interpreter, and the package beside it.
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        # Its second way in has a fixed port, which another cluster may have.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _workers(console: int) -> int:
    """How many workers the master has, -1 while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{console}/json/", timeout=5) as answer:
            state = json.load(answer)
    except (OSError, ValueError):
        # Its console listens before it has anything to say.
        return -1
    return sum(worker["state"] == "ALIVE" for worker in state["workers"])
