"""A schema id that a source has not met: ask the registry, judge what it asks of the source, apply, and bind it.

What an id was bound to is in the catalog, so a re-read needs no registry and reads every record as it was read first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.updates import BindWriter
from laminae.engine.event_columns import bound_columns, grown_columns
from laminae.engine.evolution import rejection
from laminae.engine.former_names import former_names_of
from laminae.engine.options import option
from laminae.engine.ports import FoundSchema
from laminae.engine.subjects import Unfit, latest, registered
from laminae.schema.evolvable import EvolutionTrigger, NeedsConfirmation, Rejected
from laminae.schema.writer import bound, misfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.model import SourceRecord, WriterRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.subjects import Registered
    from laminae.schema.evolvable import EvolutionResult

NOTHING = pa.schema([])
DEAD_LETTER, STOP = "dead_letter", "stop"


def as_of(writers: Sequence[WriterRecord], epoch: int | None = None) -> tuple[WriterRecord, ...]:
    """What each id stands for in an epoch (the next one unless told), in the order in which they were met."""
    found: dict[int, WriterRecord] = {}
    for writer in writers:
        if epoch is None or writer.after_epoch < epoch:
            found[writer.schema_id] = writer
    return tuple(found.values())


def refusal_of(source: SourceRecord, result: EvolutionResult) -> str | None:
    """Why records of a schema have no rows here after what became of it; EvolutionRejected where that is to stop."""
    if not isinstance(result, Rejected | NeedsConfirmation):
        return None
    policy = option(source.options, "on_rejected")
    if policy == STOP and isinstance(result, Rejected):
        raise rejection(source, result.told, ", or set on_rejected = 'ignore'")
    reasons = result.told if isinstance(result, Rejected) else result.reasons
    told = "; ".join(map(str, reasons)) or "it waits for a person"
    return f"its schema was not taken: {told}" if policy == DEAD_LETTER else None


@dataclass(frozen=True, slots=True)
class Writers:
    """Binds what the records of sources were written with, under the lease of a driver."""

    catalog: Catalog
    engine: Engine
    lease_token: int | None = None

    def meet(self, source_name: str, schema_id: int) -> None:
        """Bind an id, after the source has taken what its schema asks for, or has refused to.

        RegistryUnavailable where the registry cannot be asked; EvolutionRejected where the source's policy is to stop.
        """
        source = self.engine.source(source_name)
        known = as_of(self.catalog.writers(source.id))
        found = registered(source.options, source.name, schema_id)
        if isinstance(found, Unfit):
            self._bind(BindWriter(source.id, schema_id, None, False, found.reason, "", NOTHING), known)
            return
        applied = [writer for writer in known if writer.applied]
        newest = max(applied, key=_order, default=None)
        if newest is not None and found.version <= _order(newest):
            self._bind(self._bound(source, found, _nearest(applied, found), applied=True), known)
            return
        before = None if newest is None else newest.columns
        columns = bound_columns(source, found.columns, before, former_names_of(self.catalog, source))
        wanted = FoundSchema(grown_columns(source, before, columns), found.schema_id, found.version)
        result = self.engine.propose(source.name, wanted, EvolutionTrigger.REGISTRY, source.version, self.lease_token)
        refusal = refusal_of(source, result)
        taken = not isinstance(result, Rejected | NeedsConfirmation)
        made = self._bound(self.engine.source(source.name), found, newest, applied=taken, refusal=refusal)
        self._bind(made, known)

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
    """`laminae.engine.ports.SchemaFinder` of sources with a registry: the newest schema of their subject."""

    catalog: Catalog

    def find(self, source: SourceRecord) -> FoundSchema:
        found = latest(source.options, source.name)
        applied = [writer for writer in as_of(self.catalog.writers(source.id)) if writer.applied]
        newest = max(applied, key=_order, default=None)
        # Who asks for the registry's schema before any record was read wants what it has beyond the source's own.
        before = NOTHING if newest is None else newest.columns
        columns = bound_columns(source, found.columns, before, former_names_of(self.catalog, source))
        return FoundSchema(grown_columns(source, before, columns), found.schema_id, found.version)


def first_writer(found: Registered, schema: pa.Schema) -> BindWriter:
    """That of a source whose columns come from it."""
    columns = bound(found.columns, None, schema)
    return BindWriter(0, found.schema_id, found.version, True, None, found.text, columns)


def _order(writer: WriterRecord) -> int:
    """The registry's version orders schemas, and not their ids."""
    return writer.registry_version or 0


def _nearest(applied: Sequence[WriterRecord], found: Registered) -> WriterRecord:
    """Of the schemas that the source has met, the one whose names are most like those of an older one."""
    later = [writer for writer in applied if _order(writer) >= found.version]
    return min(later, key=_order)
