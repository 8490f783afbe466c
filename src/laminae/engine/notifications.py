"""Builds the notice of a committed plan. A pure function: it sends nothing."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from laminae.catalog.updates import RecordVerdict
from laminae.engine.evolution.evolution_plan import history_of
from laminae.engine.plan import Outcome
from laminae.notifications import SchemaNotice
from laminae.schema.evolvable import EvolutionTrigger

if TYPE_CHECKING:
    from laminae.catalog.model import SourceRecord
    from laminae.engine.plan import Plan

OUTCOMES = {Outcome.APPLY: "applied", Outcome.WAIT: "waiting", Outcome.REFUSE: "refused"}


def notice_of(plan: Plan, source: SourceRecord, change_id: int | None) -> SchemaNotice | None:
    """None for a plan that judged no change, and for a refused statement: its caller has received the error."""
    verdict_update = next((update for update in plan.updates if isinstance(update, RecordVerdict)), None)
    if verdict_update is None or not plan.changes or plan.outcome not in OUTCOMES:
        return None
    # The same facts that DESCRIBE SOURCE shows.
    facts = json.loads(verdict_update.verdict)
    if plan.outcome is Outcome.REFUSE and EvolutionTrigger(facts["trigger"]).is_by_person:
        return None
    return SchemaNotice(
        id=uuid4().hex,
        source=source.name,
        outcome=OUTCOMES[plan.outcome],
        version=source.version if plan.version is None else plan.version,
        verdict=facts["verdict"],
        mode=facts["mode"],
        rules=facts["rules"],
        trigger=facts["trigger"],
        changes=history_of(plan.changes),
        reasons=tuple(facts["reasons"]),
        at=datetime.fromisoformat(facts["at"]),
        change_id=change_id,
    )
