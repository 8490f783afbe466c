"""How far a log goes now: the one question that Spark asks of a stream, some times a second."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laminae.spark.logs.head import LogDirectory
from laminae.spark.logs.listing import FileList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECOND = 1_000_000
Settings = dict[str, str]
"""Of one log. `connector`, `source` (its name) and `directory` are always there; names are lower case."""


class Tail(Protocol):
    def items(self, seen: int) -> int:
        """How many items there are, `seen` or more: a log that lost some is damaged, and says so."""
        ...


@dataclass(frozen=True, slots=True)
class HeadTail:
    """Writers move the head themselves."""

    directory: LogDirectory

    def items(self, seen: int) -> int:
        return self.directory.items(seen)


@dataclass(frozen=True, slots=True)
class ClockTail:
    """An item is a second that has passed. A clock that was set back makes the log wait, not shrink."""

    created: int

    def items(self, seen: int) -> int:
        return max(seen, (time.time_ns() // 1000 - self.created) // SECOND, 0)


def log_at(settings: Mapping[str, str]) -> LogDirectory:
    return LogDirectory(settings["source"], settings["directory"])


def _push(settings: Mapping[str, str]) -> Tail:
    return HeadTail(log_at(settings))


def _files(settings: Mapping[str, str]) -> Tail:
    return FileList(log_at(settings), settings["path"])


def _rate(settings: Mapping[str, str]) -> Tail:
    return ClockTail(int(settings["created"]))


def _iceberg(settings: Mapping[str, str]) -> Tail:
    # Loaded late: it builds upon modules of this package.
    from laminae.spark.lake.snapshot_list import snapshot_list

    return snapshot_list(settings)


def _delta(settings: Mapping[str, str]) -> Tail:
    from laminae.spark.lake.delta_commits import commit_list

    return commit_list(settings)


def _kafka(settings: Mapping[str, str]) -> Tail:
    # Loaded late: it builds upon modules of this package.
    from laminae.spark.kafka.broker import slice_list

    return slice_list(settings)


TAILS: dict[str, Callable[[Mapping[str, str]], Tail]] = {
    "push": _push,
    "files": _files,
    "rate": _rate,
    "iceberg": _iceberg,
    "delta": _delta,
    "kafka": _kafka,
}


def open_tail(settings: Mapping[str, str]) -> Tail:
    return TAILS[settings["connector"]](settings)
