"""Which log belongs to which connector: one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.spark.logs.head import log_directory
from laminae.spark.logs.push import PushLog
from laminae.spark.logs.stream import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord
    from laminae.spark.contract import SourceLog
    from laminae.spark.logs.tails import Settings


def _push(source: SourceRecord, home: str) -> SourceLog:
    return PushLog(_settings(source, home, "push"))


def _settings(source: SourceRecord, home: str, connector: str) -> Settings:
    directory = log_directory(source.name, source.id, home)
    limit = dict(source.options).get(LIMIT, DEFAULT_LIMIT)
    return {"connector": connector, "source": source.name, "directory": directory.path, LIMIT: limit}


# More items in one epoch make Spark list and open so many files that the epoch holds up the next schema change.
DEFAULT_LIMIT = "1000"

OPENERS: dict[str, Callable[[SourceRecord, str], SourceLog]] = {"push": _push}
