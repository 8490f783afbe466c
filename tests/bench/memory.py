"""Memory of a process and everything below it: the driver, its JVM, the Python workers of tasks. Linux only."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 0.5
PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def sampled() -> Iterator[list[int]]:
    """Bytes of all processes together, twice a second while it lasts."""
    found: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SECONDS):
            found.append(_bytes_below(os.getpid()))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def _bytes_below(root: int) -> int:
    children: defaultdict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                status = (place / "stat").read_text().rpartition(")")[2].split()
                sizes[int(place.name)] = int((place / "statm").read_text().split()[1]) * PAGE
            except (OSError, IndexError):
                # It ended while it was looked at.
                continue
            children[int(status[1])].append(int(place.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += sizes.get(process, 0)
        waiting += children[process]
    return total
