"""`make services`: Kafka, a registry and PostgreSQL for a developer, until Ctrl+C. Their addresses are printed."""

from __future__ import annotations

import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.services.jars import ServiceMissing, jars
from tests.services.kafka import running_kafka
from tests.services.registry import running_registry
from tests.support.postgres import find_binaries, running_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


def main() -> int:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laminae-services-")))
        binaries = find_binaries()
        wanted: tuple[tuple[str, Callable[[], AbstractContextManager[str]] | None], ...] = (
            ("kafka.bootstrap.servers", lambda: running_kafka(place / "kafka")),
            ("registry", lambda: running_registry(place / "registry")),
            ("PostgreSQL", None if binaries is None else lambda: running_server(binaries)),
        )
        # An end by SIGTERM is an end, too: every service is stopped by its own process id.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            for name, start in wanted:
                print(f"{name:<24}", end="", flush=True)
                print(_started(stack, start), flush=True)
            print(f"{'jars for connect()':<24}{','.join(map(str, sorted(jars('spark-kafka').glob('*.jar'))))}")
            print("Ctrl+C ends them all.", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            print()
    return 0


def _started(stack: ExitStack, start: Callable[[], AbstractContextManager[str]] | None) -> str:
    if start is None:
        return "is not installed (initdb, pg_ctl)"
    try:
        return stack.enter_context(start())
    except ServiceMissing as missing:
        return str(missing)


if __name__ == "__main__":
    sys.exit(main())
