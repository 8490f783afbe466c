"""Wait for something that another process does. The only clock of a test: it says when to give up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 0.02


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Return when the condition holds; fail with `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(LOOK_SECONDS)
