"""Which files nobody needs any more: a pure function of what is stored and of the manifests that are alive."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from laminae.trace.manifest import Manifest
    from laminae.trace.store import StoredFile

GRACE = timedelta(hours=1)
"""A younger file may belong to an attempt that has not committed yet."""


def orphans(
    files: Iterable[StoredFile], alive: Iterable[Manifest], now: datetime, grace: timedelta = GRACE
) -> tuple[str, ...]:
    """Paths that no living manifest names (the last committed epochs and every savepoint) and that are old enough."""
    named = frozenset[str]().union(*(manifest.paths for manifest in alive))
    return tuple(sorted(file.path for file in files if file.path not in named and now - file.modified > grace))
