"""Ask again after a while: exponential backoff with full jitter, so that many drivers do not come back at once.

Clock, sleep and chance are given from outside; a test has none of them for real.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` in all, the first at once; none begins when `budget` seconds would have passed by then."""

    attempts: int = 5
    first: float = 0.1
    longest: float = 5.0
    budget: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def rounds(self) -> Iterator[Round]:
        """One for each attempt, after its wait. Who succeeds leaves the loop."""
        end = self.clock() + self.budget
        current = Round()
        yield current
        for number in range(1, self.attempts):
            ceiling = min(self.longest, self.first * 2 ** (number - 1))
            # A server that says when to come back knows better, within reason.
            asked = current.wait_at_least
            wait = max(self.chance() * ceiling, min(asked, self.longest))
            if self.clock() + wait > end:
                return
            self.sleep(wait)
            current = Round()
            yield current


@dataclass(slots=True)
class Round:
    """One attempt; it may say how long the server wants to be left alone."""

    wait_at_least: float = 0.0
