"""Binds a schema id that is new to a source: queries the registry, judges and applies the changes it implies.

The binding is stored in the catalog, so a re-read needs no registry and decodes every record as it was decoded first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.updates import BindWriter
from laminae.engine.evolution.aliases import former_names_of
from laminae.engine.evolution.evolution_plan import rejection
from laminae.engine.ports import FoundSchema
from laminae.engine.source_spec import OnRejected, spec_of
from laminae.engine.writer_schemas.columns import bound_columns, grown_columns
from laminae.engine.writer_schemas.registry import Unfit, latest, registered
from laminae.schema.evolvable import EvolutionTrigger, NeedsConfirmation, Rejected
from laminae.schema.external.writer_schema import bound, misfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import SourceRecord, WriterRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.writer_schemas.registry import Registered
    from laminae.schema.evolvable import EvolutionResult

NOTHING = pa.schema([])


def as_of(writers: Sequence[WriterRecord], epoch: int | None = None) -> tuple[WriterRecord, ...]:
    """The binding of each id as of an epoch (default: the next one), in the order in which the ids were first seen."""
    bindings: dict[int, WriterRecord] = {}
    for writer in writers:
        if epoch is None or writer.after_epoch < epoch:
            bindings[writer.schema_id] = writer
    return tuple(bindings.values())


def refusal_of(source: SourceRecord, result: EvolutionResult) -> str | None:
    """Why an evolution result makes records of its schema dead letters, if so.

    Raises EvolutionRejected if the policy is `stop`.
    """
    if not isinstance(result, Rejected | NeedsConfirmation):
        return None
    policy = spec_of(source).on_rejected
    if policy is OnRejected.STOP and isinstance(result, Rejected):
        raise rejection(source, result.told, ", or set on_rejected = 'ignore'")
    reasons = result.told if isinstance(result, Rejected) else result.reasons
    reason = "; ".join(map(str, reasons)) or "it waits for confirmation"
    return f"its schema was not accepted: {reason}" if policy is OnRejected.DEAD_LETTER else None


@dataclass(frozen=True, slots=True)
class WriterSchemaBinder:
    """Binds the writer schemas of sources' records, under the lease of a driver."""

    catalog: Catalog
    engine: Engine
    lease_token: int | None = None

    def meet(self, source_name: str, schema_id: int) -> None:
        """Bind an id after the source has applied or refused the changes that its schema implies.

        Raises RegistryUnavailable if the registry cannot be reached, EvolutionRejected if the policy is `stop`.
        """
        source = self.engine.source(source_name)
        known = as_of(self.catalog.writers(source.id))
        registration = registered(spec_of(source), source.name, schema_id)
        if isinstance(registration, Unfit):
            self._bind(BindWriter(source.id, schema_id, None, False, registration.reason, "", NOTHING), known)
            return
        applied = [writer for writer in known if writer.applied]
        newest = max(applied, key=_order, default=None)
        if newest is not None and registration.version <= _order(newest):
            self._bind(self._bound(source, registration, _nearest(applied, registration), applied=True), known)
            return
        before = None if newest is None else newest.columns
        columns = bound_columns(source, registration.columns, before, former_names_of(self.catalog, source))
        proposed = FoundSchema(grown_columns(source, before, columns), registration.schema_id, registration.version)
        result = self.engine.propose(source.name, proposed, EvolutionTrigger.REGISTRY, source.version, self.lease_token)
        refusal = refusal_of(source, result)
        is_applied = not isinstance(result, Rejected | NeedsConfirmation)
        binding = self._bound(
            self.engine.source(source.name), registration, newest, applied=is_applied, refusal=refusal
        )
        self._bind(binding, known)

    def _bound(
        self,
        source: SourceRecord,
        found: Registered,
        before: WriterRecord | None,
        applied: bool,
        refusal: str | None = None,
    ) -> BindWriter:
        known = None if before is None else before.columns
        columns = bound_columns(source, found.columns, known, former_names_of(self.catalog, source))
        why = refusal or misfit(columns, source.schema)
        return BindWriter(source.id, found.schema_id, found.version, applied, why, found.text, columns)

    def _bind(self, made: BindWriter, known: Sequence[WriterRecord]) -> None:
        present = next((writer for writer in known if writer.schema_id == made.schema_id), None)
        if present is None or (present.refusal, present.applied) != (made.refusal, made.applied):
            self.catalog.commit([made], lease_token=self.lease_token)


@dataclass(frozen=True, slots=True)
class SubjectFinder:
    """`laminae.engine.ports.SchemaFinder` for sources with a registry: finds the newest schema of their subject."""

    catalog: Catalog

    def find(self, source: SourceRecord) -> FoundSchema:
        registration = latest(spec_of(source), source.name)
        applied = [writer for writer in as_of(self.catalog.writers(source.id)) if writer.applied]
        newest = max(applied, key=_order, default=None)
        # A REFRESH before any record was read adds all columns of the registry's schema that the source lacks.
        before = NOTHING if newest is None else newest.columns
        columns = bound_columns(source, registration.columns, before, former_names_of(self.catalog, source))
        return FoundSchema(grown_columns(source, before, columns), registration.schema_id, registration.version)


def first_writer(found: Registered, schema: pa.Schema) -> BindWriter:
    """The binding of the schema that supplied the columns of a new source."""
    columns = bound(found.columns, None, schema)
    return BindWriter(0, found.schema_id, found.version, True, None, found.text, columns)


def _order(writer: WriterRecord) -> int:
    """Schemas are ordered by registry version, not by id."""
    return writer.registry_version or 0


def _nearest(applied: Sequence[WriterRecord], found: Registered) -> WriterRecord:
    """The applied schema closest to an older one: the oldest at or after its version has the most similar names."""
    later = [writer for writer in applied if _order(writer) >= found.version]
    return min(later, key=_order)
