"""Schema evolution during an epoch, triggered by its records or by a schema change in an external catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # the name everybody knows it by

from laminae.catalog.model import PendingState
from laminae.engine import faults
from laminae.engine.epochs.epoch_plan import plan_replay
from laminae.engine.evolution.evolution_plan import rejection
from laminae.engine.evolution.inferred_fractions import inferred_ids, only_fractions, without_fractions
from laminae.engine.ports import FoundSchema
from laminae.engine.source_spec import OnRejected, spec_of
from laminae.errors import ConcurrentChange
from laminae.schema.evolvable import Applied, EvolutionTrigger, NeedsConfirmation, Rejected
from laminae.spark.formats.csv.values import REASON as CSV_REASON
from laminae.spark.formats.file_records import UNKNOWN_COLUMN
from laminae.spark.formats.json.exact_check import REASONS
from laminae.spark.formats.protocol import ERROR, UNKNOWN
from laminae.spark.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from laminae.catalog.model import EpochRecord, SourceRecord
    from laminae.catalog.port import Catalog
    from laminae.engine.engine import Engine
    from laminae.engine.epochs.epoch_plan import EpochPlan
    from laminae.spark.driver.storage import Storage
    from laminae.spark.formats.protocol import Decoded
    from laminae.spark.sources.protocol import Outside

NOT_TAKEN = (REASONS["unknown"], UNKNOWN_COLUMN)
OTHER_TYPE = rf"^[^ ]+({REASONS['type']}|{CSV_REASON})(TINYINT|SMALLINT|INT|BIGINT)"


# Every round but the last may apply a new version. The limit keeps a stream that invents new fields all the time from
# blocking an epoch forever.
MOST_ROUNDS = 5
WAITING = "waits for confirmation of change "
"""Prefix of the dead letter reason of a record with a field from a change that a person must confirm."""
MAY_FIT = "; it may fit when change {} is confirmed"


@dataclass(frozen=True, slots=True)
class Proposed:
    """The outcome of a proposal. If applied, the epoch runs again. `waits_for` is the id of a change to confirm."""

    is_applied: bool
    waits_for: int | None = None

    def __bool__(self) -> bool:
        return self.is_applied


def set_aside(records: DataFrame, change_id: int) -> DataFrame:
    """Refuse records with fields of a pending change; the reason has its id, so that a replay can take them later."""
    waiting = f"{WAITING}{change_id}: the record has a field that the source does not have yet"
    is_other_type = F.col(ERROR).rlike(OTHER_TYPE)
    error = (
        F.when(F.col(UNKNOWN) & (F.col(ERROR).isNull() | F.col(ERROR).isin(*NOT_TAKEN)), F.lit(waiting))
        .when(is_other_type, F.concat(F.col(ERROR), F.lit(MAY_FIT.format(change_id))))
        .otherwise(F.col(ERROR))
    )
    return records.withColumn(ERROR, error)


def released_by(catalog: Catalog, source: SourceRecord) -> frozenset[int]:
    """The confirmed or superseded changes that dead letters still wait for."""
    waited = {epoch.waits_for for epoch in catalog.dead_letter_epochs(source.id)} - {None}
    if not waited:
        return frozenset()
    over = (PendingState.CONFIRMED, PendingState.SUPERSEDED)
    return frozenset(change.id for change in catalog.pending(source.id) if change.id in waited and change.state in over)


@dataclass(frozen=True, slots=True)
class SchemaEvolver:
    """Proposes schema changes to the engine under the lease of the driver."""

    engine: Engine
    lease_token: int
    catalog: Catalog

    def evolve(self, plan: EpochPlan, decoded: Decoded) -> Proposed:
        """Propose the schema that the records require, and return the outcome."""
        source = plan.source
        if not spec_of(source).evolves:
            return Proposed(False)
        wanted = decoded.wanted(source.schema)
        if spec_of(source).format.infers_types:
            inferred = inferred_ids(self.catalog.versions(source.id))
            wanted = without_fractions(source.schema, wanted, but_for=inferred)
            plain = without_fractions(source.schema, wanted)
            if plain is not wanted:
                # Propose other changes and integer-to-DOUBLE changes separately: a new column must not wait for the
                # confirmation of a fraction, and a fraction must not be rejected with a change that the mode forbids.
                if not plain.equals(source.schema, check_metadata=True):
                    proposed = self._proposed(plan, FoundSchema(plain), EvolutionTrigger.DATA)
                    if proposed or proposed.waits_for is not None:
                        return proposed
                wanted = only_fractions(source.schema, wanted)
        return self._proposed(plan, FoundSchema(wanted), EvolutionTrigger.DATA)

    def replayed(
        self, storage: Storage, source: SourceRecord, dead: Sequence[EpochRecord], letters: DataFrame
    ) -> tuple[EpochPlan, DataFrame, int | None]:
        """The plan of a replay, its decoded records, and the change that some of them wait for.

        As in any epoch, the records may evolve the schema.
        """
        for rounds_left in reversed(range(MOST_ROUNDS)):
            versions, sinks = self.catalog.versions(source.id), self.catalog.sinks()
            writers = self.catalog.writers(source.id)
            plan = plan_replay(source, versions, sinks, dead, self.catalog.last_epoch(), writers)
            again = open_source(source, str(storage.home)).decoded_again(letters, plan.table)
            if spec_of(source).has_writers or not spec_of(source).evolves or not rounds_left:
                break
            proposed = self.evolve(plan, again)
            if proposed.waits_for is not None:
                return plan, set_aside(again.records, proposed.waits_for), proposed.waits_for
            if not proposed:
                break
            source = self.engine.source(source.name)
        return plan, again.records, None

    def follow(self, plan: EpochPlan, outside: Outside | None) -> bool:
        """Propose a schema change of the external catalog before any record is read; whether it was applied."""
        if outside is None:
            return False
        schema = FoundSchema(outside.wanted(plan.source.schema), outside.schema_id)
        return bool(self._proposed(plan, schema, EvolutionTrigger.CATALOG_REFRESH))

    def _proposed(self, plan: EpochPlan, found: FoundSchema, trigger: EvolutionTrigger) -> Proposed:
        source = plan.source
        faults.reach("schema inferred")
        try:
            result = self.engine.propose(source.name, found, trigger, source.version, self.lease_token)
        except ConcurrentChange:
            # The schema was changed concurrently while the epoch ran: run again with the new schema.
            return Proposed(True)
        if isinstance(result, Rejected) and spec_of(source).on_rejected is OnRejected.STOP:
            raise rejection(source, result.told, ", or set on_rejected = 'ignore'")
        waits_for = result.change_id if isinstance(result, NeedsConfirmation) else None
        return Proposed(isinstance(result, Applied), waits_for)
