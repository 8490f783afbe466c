"""The one backoff: waits double up to a longest one, and jitter keeps many drivers from coming back at the same time.

`Retry` sleeps between attempts in one thread. Loops that must not sleep ask `Backoff` when the next attempt is due.
Clock, sleep and random numbers are parameters, so that tests can replace them.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Further doublings would overflow a float after a thousand failures, and change nothing.
_MOST_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds to wait after failures in a row. `jitter` is the share of a wait that is random: 0 none, 1 all of it."""

    first: float = 1.0
    longest: float = 60.0
    jitter: float = 0.5
    chance: Callable[[], float] = random.random

    def ceiling(self, failures: int) -> float:
        """The longest wait after this many failures in a row; with 0, the same as after the first."""
        doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
        return min(self.longest, self.first * 2.0**doublings)

    def wait(self, failures: int) -> float:
        """The wait after this many failures in a row."""
        return self.ceiling(failures) * (1 - self.jitter + self.jitter * self.chance())


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` in total, the first immediately; none starts after `budget` seconds have passed."""

    attempts: int = 5
    first: float = 0.1
    longest: float = 5.0
    budget: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def rounds(self) -> Iterator[Round]:
        """One round per attempt, after its wait. The caller leaves the loop on success."""
        backoff = Backoff(self.first, self.longest, jitter=1.0, chance=self.chance)
        end = self.clock() + self.budget
        current = Round()
        yield current
        for failures in range(1, self.attempts):
            # A Retry-After of the server takes precedence, up to `longest`.
            wait = max(backoff.wait(failures), min(current.wait_at_least, self.longest))
            if self.clock() + wait > end:
                return
            self.sleep(wait)
            current = Round()
            yield current


@dataclass(slots=True)
class Round:
    """One attempt; `wait_at_least` can be set to the server's Retry-After."""

    wait_at_least: float = 0.0
