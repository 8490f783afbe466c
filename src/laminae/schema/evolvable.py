"""What a connector that can evolve offers, what set an evolution off, and how it ended: the names of seed 000."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from laminae.schema.change import SchemaChange
    from laminae.schema.compatibility import EvolutionVerdict, Reason
    from laminae.schema.projection import ColumnProjection


class EvolutionTrigger(StrEnum):
    """What set a new version off. `schema_id` and `registry_version` of a registry stand beside it in the history."""

    CREATED = "Created"
    DDL = "Ddl"
    REGISTRY = "Registry"
    CATALOG_REFRESH = "CatalogRefresh"
    MANUAL_REFRESH = "ManualRefresh"
    DATA = "Data"

    @property
    def is_by_person(self) -> bool:
        """Whether a person typed the change, which counts as the confirmation a lossy change needs."""
        return self is EvolutionTrigger.DDL


@runtime_checkable
class SchemaEvolvable(Protocol):
    """A source or sink whose schema can change while it runs."""

    def diff_schemas(self, old: pa.Schema, new: pa.Schema) -> tuple[SchemaChange, ...]: ...

    def evaluate_evolution(
        self, new: pa.Schema, history: Sequence[pa.Schema], mode: str = "BACKWARD", rules: str = "seed"
    ) -> EvolutionVerdict: ...

    def apply_evolution(
        self, schema: pa.Schema, changes: Iterable[SchemaChange]
    ) -> tuple[pa.Schema, ColumnProjection]: ...

    def schema_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class NoChange:
    """The proposed schema is the current one."""

    version: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A new version is in force; `projection` carries batches of the version before it."""

    schema: pa.Schema
    projection: ColumnProjection
    version: int
    changes: tuple[SchemaChange, ...]


@dataclass(frozen=True, slots=True)
class NeedsConfirmation:
    """The change waits in `laminar_catalog.pending_changes` under `change_id`."""

    change_id: int
    changes: tuple[SchemaChange, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The change is refused; the source goes on with the version it had. `problem` is told where no rule refuses it."""

    changes: tuple[SchemaChange, ...]
    reasons: tuple[Reason, ...]
    problem: str = ""

    @property
    def told(self) -> tuple[Reason | str, ...]:
        """Why, in words."""
        return self.reasons or ((self.problem,) if self.problem else ())


EvolutionResult = NoChange | Applied | NeedsConfirmation | Rejected
