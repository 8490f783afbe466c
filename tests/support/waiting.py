"""Wait for something that another process does. The only clock of a test: it says when to give up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

LOOK_SECONDS = 0.02
LONGEST_MOMENT_SECONDS = 1.0


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Return when the condition holds; fail with `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(LOOK_SECONDS)


def pass_a_moment(dice: random.Random) -> None:
    """The moment within an epoch or a delivery at which a driver dies: nothing to wait for tells such moments apart."""
    time.sleep(dice.uniform(0, LONGEST_MOMENT_SECONDS))
