"""Which runs make up the state of one operator on one shard at an epoch. An immutable value with a JSON form.

The catalog stores one per (operator, shard); a run that no manifest references does not exist.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from laminae.errors import NewerHome, RunDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from laminae.trace.store import StoredFile

MANIFEST_FORMAT = 1
GRACE = timedelta(hours=1)
"""A younger file may belong to a task attempt that has not committed yet."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run file, by its path relative to the store's root. `dead` counts the rows that delete or cancel others."""

    path: str
    rows: int
    dead: int
    bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runs of each trace, oldest first. Traces are sorted by name, so that equal states have equal JSON texts."""

    traces: tuple[tuple[str, tuple[RunEntry, ...]], ...] = ()

    def runs(self, trace: str) -> tuple[RunEntry, ...]:
        return next((runs for name, runs in self.traces if name == trace), ())

    def with_runs(self, trace: str, runs: tuple[RunEntry, ...]) -> Manifest:
        remaining = [(name, entries) for name, entries in self.traces if name != trace]
        return Manifest(tuple(sorted([*remaining, (trace, runs)] if runs else remaining)))

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(entry.path for _, runs in self.traces for entry in runs)

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for _, runs in self.traces for entry in runs)

    def to_json(self) -> str:
        traces = {name: [asdict(entry) for entry in runs] for name, runs in self.traces}
        return json.dumps({"format": MANIFEST_FORMAT, "traces": traces}, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Raises `RunDamaged` if the text is not a manifest, `NewerHome` if a later version of laminae wrote it."""
        try:
            document = json.loads(text)
            if document["format"] > MANIFEST_FORMAT:
                raise NewerHome(location="a trace manifest", found=document["format"], known=MANIFEST_FORMAT)
            named = [(name, tuple(RunEntry(**entry) for entry in runs)) for name, runs in document["traces"].items()]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            message = f"it is not a manifest: {problem}"
            raise RunDamaged(file=text if len(text) <= 80 else text[:77] + "...", problem=message) from None
        return cls(tuple(sorted(named)))


def orphans(
    files: Iterable[StoredFile], alive: Iterable[Manifest], now: datetime, grace: timedelta = GRACE
) -> tuple[str, ...]:
    """Paths of old enough files that no live manifest references.

    Live manifests are those of the last committed epochs and of every savepoint.
    """
    named = frozenset[str]().union(*(manifest.paths for manifest in alive))
    return tuple(sorted(file.path for file in files if file.path not in named and now - file.modified > grace))
