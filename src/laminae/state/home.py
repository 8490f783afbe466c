"""What a check of a home's own state found: for each trace, now and at each savepoint, whether its runs can be read."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from laminae.state.compatibility import Kind


@dataclass(frozen=True, slots=True)
class TraceCheck:
    """The runs of one trace at one place: `now`, or the name of a savepoint. `problem` says why not, or what else."""

    place: str
    relation: str
    operator: str
    trace: str
    runs: int
    rows: int
    kind: Kind
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HomeReport:
    """`is_enabled` is the home's setting state.schema-evolution.enable; it holds for checkpoints of Spark queries."""

    home: str
    is_enabled: bool
    traces: tuple[TraceCheck, ...]

    @property
    def kind(self) -> Kind:
        kinds = {trace.kind for trace in self.traces}
        return next((kind for kind in (Kind.INCOMPATIBLE, Kind.AFTER_MIGRATION) if kind in kinds), Kind.AS_IS)

    @property
    def is_compatible(self) -> bool:
        return self.kind is not Kind.INCOMPATIBLE

    def to_dict(self) -> dict[str, object]:
        return {
            "home": self.home,
            "kind": self.kind.value,
            "enabled": self.is_enabled,
            "traces": [asdict(trace) for trace in self.traces],
        }
