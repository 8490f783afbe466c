"""Services that tests start: each a process with a log of its own, ended by its id whatever happens."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

READY_SECONDS, END_SECONDS = 120.0, 30.0


@contextmanager
def service(
    name: str, command: Sequence[str], env: Mapping[str, str], logs: Path, is_ready: Callable[[], bool]
) -> Iterator[int]:
    """The id of a process that is ready, as a probe says. Its log stays in `logs`, and its end is shown on failure."""
    log = logs / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command), env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        try:
            until(lambda: process.poll() is not None or is_ready(), READY_SECONDS, f"{name} is ready")
            assert process.poll() is None, f"{name} ended with {process.returncode}"
        except AssertionError as problem:
            problem.add_note(f"the end of {log}:\n{log.read_text(errors='replace')[-3000:]}")
            raise
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
