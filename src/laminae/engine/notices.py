"""From a plan that was committed to the notice of it. A pure function: nobody is told here."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from laminae.catalog.updates import RecordVerdict
from laminae.engine.evolution import history_of
from laminae.engine.plan import Outcome
from laminae.notices import SchemaNotice
from laminae.schema.evolvable import EvolutionTrigger

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.engine.plan import Plan

OUTCOMES = {Outcome.APPLY: "applied", Outcome.WAIT: "waiting", Outcome.REFUSE: "refused"}


def notice_of(plan: Plan, source: SourceRecord, change_id: int | None) -> SchemaNotice | None:
    """None for a plan that judged no change, and for a statement that was refused: whoever typed it was told."""
    kept = next((update for update in plan.updates if isinstance(update, RecordVerdict)), None)
    if kept is None or not plan.changes or plan.outcome not in OUTCOMES:
        return None
    # The same facts that DESCRIBE SOURCE shows.
    told = json.loads(kept.verdict)
    if plan.outcome is Outcome.REFUSE and EvolutionTrigger(told["trigger"]).is_by_person:
        return None
    return SchemaNotice(
        id=uuid4().hex,
        source=source.name,
        outcome=OUTCOMES[plan.outcome],
        version=source.version if plan.version is None else plan.version,
        verdict=told["verdict"],
        mode=told["mode"],
        rules=told["rules"],
        trigger=told["trigger"],
        changes=history_of(plan.changes),
        reasons=tuple(told["reasons"]),
        at=datetime.fromisoformat(told["at"]),
        change_id=change_id,
    )
