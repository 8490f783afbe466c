"""The logs that sources are read from: pushed rows, directories of files, a generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.options import option
from laminae.errors import NotAvailable

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.spark.contract import SourceLog


def open_log(source: SourceRecord, home: str) -> SourceLog:
    """The log of this incarnation of the source; nothing is read or written before it is asked for something."""
    # Loaded late: kinds of logs import modules of this package, and tasks need some of those alone.
    from laminae.spark.logs.open import OPENERS

    connector = option(source.options, "connector") or "push"
    if connector not in OPENERS:
        raise NotAvailable(
            feature=f"Connector {connector}",
            problem=f"source {source.name} cannot be read with it yet",
            advice=f"Use one of {', '.join(OPENERS)}.",
        )
    return OPENERS[connector](source, home)
