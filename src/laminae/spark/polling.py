"""When the registry of a source is asked for a schema that no record has yet: by the source's option, else never."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.engine.options import duration, is_framed, option

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord


@dataclass(slots=True)
class Polling:
    """Of one driver; each source has its own time."""

    clock: Callable[[], float] = time.monotonic
    _asked: dict[int, float] = field(default_factory=dict)

    def is_due(self, source: SourceRecord) -> bool:
        """Whether to ask now: at the driver's start, and then as often as the source wants it."""
        every = option(source.options, "registry_poll")
        if every is None or not is_framed(source.options):
            return False
        now, last = self.clock(), self._asked.get(source.id)
        if last is not None and now - last < duration(every).total_seconds():
            return False
        self._asked[source.id] = now
        return True
