"""Which runs make up the state of one operator on one shard at an epoch. An immutable value with a JSON form.

The catalog stores one for each (operator, shard); what no manifest names does not exist.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from laminae.errors import NewerHome, RunDamaged

MANIFEST_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run file, by its path below the store's root. `dead` rows delete or cancel others."""

    path: str
    rows: int
    dead: int
    bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runs of each trace, oldest first. Traces are sorted by name, so equal states have equal texts."""

    traces: tuple[tuple[str, tuple[RunEntry, ...]], ...] = ()

    def runs(self, trace: str) -> tuple[RunEntry, ...]:
        return next((runs for name, runs in self.traces if name == trace), ())

    def with_runs(self, trace: str, runs: tuple[RunEntry, ...]) -> Manifest:
        others = [(name, found) for name, found in self.traces if name != trace]
        return Manifest(tuple(sorted([*others, (trace, runs)] if runs else others)))

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
        """Raises `RunDamaged` for what is not a manifest, `NewerHome` for one of a later laminae."""
        try:
            found = json.loads(text)
            if found["format"] > MANIFEST_FORMAT:
                raise NewerHome(location="a trace manifest", found=found["format"], known=MANIFEST_FORMAT)
            named = [(name, tuple(RunEntry(**entry) for entry in runs)) for name, runs in found["traces"].items()]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            told = f"it is not a manifest: {problem}"
            raise RunDamaged(file=text if len(text) <= 80 else text[:77] + "...", problem=told) from None
        return cls(tuple(sorted(named)))
