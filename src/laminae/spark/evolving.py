"""A schema that evolves while an epoch runs: by what its records ask for, or by what changed outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.engine import faults
from laminae.engine.evolution import rejection
from laminae.engine.options import option
from laminae.engine.ports import FoundSchema
from laminae.errors import ConcurrentChange
from laminae.schema.evolvable import Applied, EvolutionTrigger, Rejected

if TYPE_CHECKING:
    from laminae.engine.engine import Engine
    from laminae.engine.epochs import EpochPlan
    from laminae.spark.contract import Decoded, Outside


@dataclass(frozen=True, slots=True)
class Evolving:
    """Proposes to the engine, under the lease of the driver."""

    engine: Engine
    lease_token: int

    def evolve(self, plan: EpochPlan, decoded: Decoded) -> bool:
        """Whether the schema took on what the records ask for: then nothing was committed and the epoch runs again."""
        if option(plan.source.options, "evolve") == "off":
            return False
        return self._proposed(plan, FoundSchema(decoded.wanted(plan.source.schema)), EvolutionTrigger.DATA)

    def follow(self, plan: EpochPlan, outside: Outside | None) -> bool:
        """The same for what changed outside, before anything is read."""
        if outside is None:
            return False
        found = FoundSchema(outside.wanted(plan.source.schema), outside.schema_id)
        return self._proposed(plan, found, EvolutionTrigger.CATALOG_REFRESH)

    def _proposed(self, plan: EpochPlan, found: FoundSchema, trigger: EvolutionTrigger) -> bool:
        source = plan.source
        faults.reach("schema inferred")
        try:
            result = self.engine.propose(source.name, found, trigger, source.version, self.lease_token)
        except ConcurrentChange:
            # Somebody changed the schema while the epoch ran: look at the records once more with that.
            return True
        if isinstance(result, Rejected) and option(source.options, "on_rejected") == "stop":
            raise rejection(source, result.told, ", or set on_rejected = 'ignore'")
        return isinstance(result, Applied)
