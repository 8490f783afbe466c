"""How far a log goes now: the one question the stream reader asks, in a process of its own, some times a second.

A tail is made from text settings alone, because that is what Spark hands to that process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from laminae.spark.logs.head import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        return checked_items(self.directory, seen)


def checked_items(directory: LogDirectory, seen: int) -> int:
    items = directory.head().items
    if items < seen:
        raise directory.damaged(directory.head_file, f"it has {items} items, and {seen} were read before")
    return items


def log_at(settings: Mapping[str, str]) -> LogDirectory:
    return LogDirectory(settings["source"], settings["directory"])


def _push(settings: Mapping[str, str]) -> Tail:
    return HeadTail(log_at(settings))


TAILS: dict[str, Callable[[Mapping[str, str]], Tail]] = {"push": _push}


def open_tail(settings: Mapping[str, str]) -> Tail:
    return TAILS[settings["connector"]](settings)
