"""A plan is a value: what a statement would do, and the updates that do it. EXPLAIN shows it, the engine commits it.

Both use the same plan, so a dry run cannot differ from what would happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from laminae.schema.change import describe_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.updates import CatalogUpdate
    from laminae.errors import LaminaeError
    from laminae.schema.change import SchemaChange
    from laminae.schema.compatibility import EvolutionVerdict


class Outcome(Enum):
    APPLY = "applies"
    NOTHING = "changes nothing"
    WAIT = "waits for confirmation"
    REFUSE = "is refused"
    REJECT = "rejects the change"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one statement does to one object. `updates` are committed together, also those that only record a verdict.

    `notes` are shown by EXPLAIN; `summary` is the statement's result where the notes would be too long.

    A plan that depends on other objects (a drop on having no dependents, a view on the relations it reads) is committed
    only if no definition has changed since `expected_seq`.
    """

    action: str
    target: str
    outcome: Outcome
    updates: tuple[CatalogUpdate, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    verdict: EvolutionVerdict | None = None
    judged_by: str = ""
    version: int | None = None
    refusal: LaminaeError | None = None
    notes: tuple[str, ...] = ()
    summary: str = ""
    rests_on_others: bool = False
    expected_seq: int | None = None


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of an explained plan."""

    step: str
    subject: str
    detail: str


def explain(plan: Plan) -> tuple[PlanLine, ...]:
    return tuple(_lines(plan))


def _lines(plan: Plan) -> Iterator[PlanLine]:
    yield PlanLine("statement", plan.target, plan.action)
    for change in plan.changes:
        yield PlanLine("change", change.column_name, describe_change(change))
    if plan.verdict is not None:
        yield PlanLine("verdict", plan.target, f"{verdict_name(plan.verdict)} under {plan.judged_by}")
        for reason in plan.verdict.reasons:
            yield PlanLine("reason", reason.path, str(reason))
    for note in plan.notes:
        yield PlanLine("note", plan.target, note)
    written = f" as version {plan.version}" if plan.version is not None and plan.outcome is Outcome.APPLY else ""
    yield PlanLine("outcome", plan.target, plan.outcome.value + written)
    if plan.refusal is not None:
        yield PlanLine("refusal", plan.target, plan.refusal.message)
        yield PlanLine("remedy", plan.target, plan.refusal.remedy)


def verdict_name(verdict: EvolutionVerdict) -> str:
    return {"Compatible": "compatible", "RequiresConfirmation": "requires confirmation"}.get(
        type(verdict).__name__, "incompatible"
    )
