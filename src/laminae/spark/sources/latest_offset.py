"""The latest offset of each kind of log. Spark asks a stream for it several times a second, so it must be cheap."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laminae.spark.sources.log_head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND = 1_000_000
Settings = dict[str, str]
"""The settings of one log. `connector`, `source` (its name) and `directory` are always set; names are lower case."""


class Tail(Protocol):
    def items(self, seen: int) -> int:
        """The number of items, at least `seen`. A log that has fewer has lost items, and this raises LogDamaged."""
        ...


@dataclass(frozen=True, slots=True)
class HeadTail:
    """The item count of the log's head, which its writers advance."""

    directory: LogDirectory

    def items(self, seen: int) -> int:
        return self.directory.items(seen)


@dataclass(frozen=True, slots=True)
class ClockTail:
    """An item is one elapsed second. If the clock is set back, the log stops growing; it never shrinks."""

    created: int

    def items(self, seen: int) -> int:
        return max(seen, (time.time_ns() // 1000 - self.created) // SECOND, 0)


def log_at(settings: Mapping[str, str]) -> LogDirectory:
    return LogDirectory(settings["source"], settings["directory"])
