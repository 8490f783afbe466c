"""Decide when to poll the schema registry for schemas that no record uses yet: only if `registry_poll` is set."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.catalog.model import SourceRecord


@dataclass(slots=True)
class RegistryPoller:
    """The poll times of one driver, per source."""

    clock: Callable[[], float] = time.monotonic
    _asked: dict[int, float] = field(default_factory=dict)

    def is_due(self, source: SourceRecord) -> bool:
        """Whether to poll now: when the driver starts, then at the source's `registry_poll` interval."""
        every = spec_of(source).registry.poll
        if every is None or not spec_of(source).is_framed:
            return False
        now, last = self.clock(), self._asked.get(source.id)
        if last is not None and now - last < every.total_seconds():
            return False
        self._asked[source.id] = now
        return True
