"""Plan one evolution: diff, judge, number the new columns, and decide. A pure function of values.

The same function serves DDL, a registry, a catalog and the data: who asks only changes whether a lossy change waits.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import AddPending, AddVersion, RecordVerdict
from laminae.engine.changelogs import column_problems, option_columns, own_names
from laminae.engine.edits import edit_field
from laminae.engine.options import compatibility_of, option, rules_of
from laminae.engine.plan import Outcome, Plan, verdict_name
from laminae.engine.view_changes import broken_views
from laminae.errors import DependentsExist, EvolutionRejected, IncompatibleChange, InvalidSchema
from laminae.schema.apply import apply_changes
from laminae.schema.change import ColumnAdded, DefaultChanged, TypeChanged
from laminae.schema.column import ID, columns_of, dotted
from laminae.schema.compatibility import RULES, Answer, Compatible, Incompatible, Rule, judge
from laminae.schema.defaults import check_defaults
from laminae.schema.describe import describe_change, history_change
from laminae.schema.diff import diff_schemas
from laminae.schema.evolvable import EvolutionTrigger
from laminae.schema.identity import assign_ids, rewrite, with_outside_ids, without_ids
from laminae.views.dependencies import ALL_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.updates import CatalogUpdate
    from laminae.errors import LaminaeError
    from laminae.schema.change import SchemaChange
    from laminae.schema.column import Columns
    from laminae.schema.compatibility import EvolutionVerdict, Reason, RuleSet
    from laminae.schema.describe import HistoryChange


@dataclass(frozen=True, slots=True)
class Proposal:
    """A schema somebody wants a source to have, and who wants it."""

    schema: pa.Schema
    trigger: EvolutionTrigger
    force: bool = False
    confirmed: bool = False
    schema_id: int | None = None
    registry_version: int | None = None


def plan_evolution(
    source: SourceRecord,
    history: Sequence[pa.Schema],
    proposal: Proposal,
    views: Sequence[ViewRecord],
    now: datetime,
    action: str,
    sources: Sequence[SourceRecord] = (),
) -> Plan:
    """What becomes of `proposal`; `history` holds the source's schemas, oldest first, the last in force.

    `sources` are all there are: views of this one may read others as well.
    """
    mode, rules = compatibility_of(source.options), rules_of(source.options)
    asked = _asked(source, proposal)
    # Who finds a schema outside may know the ids its columns have there, by which a later rename is recognised.
    learned = with_outside_ids(source.schema, proposal.schema)
    if not asked and learned.equals(source.schema, check_metadata=True):
        return Plan(action, source.name, Outcome.NOTHING, notes=("the schema is already so",))
    # Against older versions a new column must have its number: by name alone it would be taken for a dropped one.
    judged, _ = assign_ids(apply_changes(source.schema, asked), source.next_column_id)
    verdict = judge(asked, columns_of(judged), history, mode, rules)
    evolved, next_id = numbered(replace(source, schema=learned), asked)
    check_defaults(columns_of(evolved))
    changes = diff_schemas(source.schema, evolved)
    refusal = _refusal(source, evolved, verdict, proposal, views, sources, history)
    outcome = _outcome(source, verdict, proposal, refusal) if asked else Outcome.APPLY
    kept = RecordVerdict(source.id, verdict_text(verdict, mode, rules, proposal.trigger, now))
    updates: tuple[CatalogUpdate, ...] = (kept,)
    if outcome is Outcome.APPLY:
        forced = proposal.force and isinstance(verdict, Incompatible)
        updates = (
            AddVersion(
                source_id=source.id,
                source_name=source.name,
                expected_version=source.version,
                expected_seq=source.definition_seq,
                schema=evolved,
                next_column_id=next_id,
                history=history_of(changes),
                trigger=proposal.trigger,
                compatibility=mode,
                forced=forced,
                applied_at=now,
                schema_id=proposal.schema_id,
                registry_version=proposal.registry_version,
            ),
            kept,
        )
    elif outcome is Outcome.WAIT:
        updates = (_pending(source, proposal, asked, verdict, now), kept)
    return Plan(
        action=action,
        target=source.name,
        outcome=outcome,
        updates=updates,
        changes=changes if outcome is Outcome.APPLY else asked,
        verdict=verdict,
        judged_by=f"{mode} ({rules} rules)",
        version=source.version + 1 if outcome is Outcome.APPLY else source.version,
        refusal=refusal,
        rests_on_others=outcome is Outcome.APPLY and bool(removed_ids(source.schema, evolved)),
        notes=_notes(asked, verdict, proposal, outcome),
    )


def _asked(source: SourceRecord, proposal: Proposal) -> tuple[SchemaChange, ...]:
    """What the proposal changes. An id that no live column has comes from elsewhere and means nothing here.

    Who finds a schema outside does not know the defaults that were declared here: only DDL takes one away.
    """
    live = _ids(columns_of(source.schema))

    def known(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if ID in metadata and not (metadata[ID].isdigit() and int(metadata[ID]) in live):
            del metadata[ID]
        return metadata

    changes = diff_schemas(source.schema, rewrite(proposal.schema, known))
    if proposal.trigger.is_by_person:
        return changes
    return tuple(change for change in changes if not _means_nothing(source, change))


def _means_nothing(source: SourceRecord, change: SchemaChange) -> bool:
    """Of a change that was found: a default that is not told, and a field by a name that no column can have."""
    if isinstance(change, DefaultChanged):
        return change.new_default is None
    return (
        isinstance(change, ColumnAdded)
        and len(change.path) == 1
        and change.path[0].casefold() in own_names(source.options)
    )


def numbered(source: SourceRecord, changes: Sequence[SchemaChange]) -> tuple[pa.Schema, int]:
    """The schema to store: old ids kept, a new id for each new column and for each column of an unrelated type."""
    evolved = apply_changes(source.schema, changes)
    for change in changes:
        if isinstance(change, TypeChanged):
            evolved = edit_field(evolved, change.path, source.name, without_ids)
    return assign_ids(evolved, source.next_column_id)


def history_of(changes: Sequence[SchemaChange]) -> tuple[HistoryChange, ...]:
    return tuple(history_change(change) for change in changes)


def verdict_text(verdict: EvolutionVerdict, mode: str, rules: RuleSet, trigger: EvolutionTrigger, now: datetime) -> str:
    """The verdict as the JSON that DESCRIBE SOURCE and status show."""
    told = {
        "verdict": verdict_name(verdict),
        "mode": str(mode),
        "rules": str(rules),
        "trigger": str(trigger),
        "at": now.isoformat(),
        "changes": [f"{change.column_name}: {describe_change(change)}" for change in verdict.changes],
        "reasons": [str(reason) for reason in verdict.reasons],
    }
    return json.dumps(told, ensure_ascii=False)


def dependents_on(
    ids: set[int], source: SourceRecord, views: Sequence[ViewRecord], history: Sequence[pa.Schema] = ()
) -> list[str]:
    """Who uses one of these columns: the source's own key, watermark and options, and views."""
    used = [f"the PRIMARY KEY of {source.name}"] if ids & set(source.primary_key) else []
    used += [
        f"the option {name} of {source.name}" for id_, name in option_columns(source, history).items() if id_ in ids
    ]
    if source.watermark is not None and source.watermark.column_id in ids:
        used.append(f"the WATERMARK of {source.name}")
    name = source.name.casefold()
    for view in views:
        if any(read.casefold() == name and _reads_any(ids, columns) for read, columns in view.reads):
            used += [f"materialized view {view.name}"]
    return used


def _reads_any(ids: set[int], columns: tuple[int, ...]) -> bool:
    return bool(ids) and (columns == ALL_COLUMNS or not ids.isdisjoint(columns))


def _refusal(
    source: SourceRecord,
    evolved: pa.Schema,
    verdict: EvolutionVerdict,
    proposal: Proposal,
    views: Sequence[ViewRecord],
    sources: Sequence[SourceRecord],
    history: Sequence[pa.Schema],
) -> LaminaeError | None:
    for path, problem in _new_problems(source, evolved):
        return InvalidSchema(path=path, problem=problem)
    removed = removed_ids(source.schema, evolved)
    if users := dependents_on(removed, source, views, history):
        gone = ", ".join(dotted(path) for path in _paths(columns_of(source.schema), removed))
        return DependentsExist(name=f"Column {gone} of {source.name}", dependents=", ".join(users), cascade="")
    if broken := broken_views(source, evolved, sources, views):
        users = [f"materialized view {view}, which this would break ({problem})" for view, problem in broken]
        return DependentsExist(name=f"Source {source.name}", dependents="; ".join(users), cascade="")
    if not isinstance(verdict, Incompatible):
        return None
    rules = rules_of(source.options)
    undecodable = [r for r in verdict.reasons if RULES[rules][Rule(r.rule)].none is Answer.NO]
    if undecodable:
        return IncompatibleChange(source=source.name, reasons="; ".join(map(str, undecodable)))
    if proposal.force:
        return None
    return rejection(source, verdict.reasons, _alternative(proposal))


def _new_problems(source: SourceRecord, evolved: pa.Schema) -> Iterator[tuple[str, str]]:
    """Columns that the source cannot have. What was there before is not judged: another change may mend it."""

    def found(schema: pa.Schema) -> dict[tuple[int | None, str], str]:
        problems = column_problems(schema, source.options, source.primary_key)
        return {(node.id, problem): node.name for node, problem in problems}

    before = found(source.schema)
    for key, name in found(evolved).items():
        if key not in before:
            yield name, key[1]


def rejection(source: SourceRecord, reasons: Iterable[Reason | str], alternative: str = "") -> EvolutionRejected:
    return EvolutionRejected(
        source=source.name,
        mode=compatibility_of(source.options),
        rules=rules_of(source.options),
        reasons="; ".join(map(str, reasons)),
        alternative=alternative,
    )


def _alternative(proposal: Proposal) -> str:
    """What else can be done: only a statement that names a column takes FORCE."""
    if proposal.confirmed:
        return " and confirm the change again, or give it up with REJECT CHANGE"
    return ", or add FORCE to the statement" if proposal.trigger.is_by_person else ""


def _outcome(
    source: SourceRecord, verdict: EvolutionVerdict, proposal: Proposal, refusal: LaminaeError | None
) -> Outcome:
    if refusal is not None:
        return Outcome.REFUSE
    if proposal.trigger.is_by_person or proposal.confirmed:
        return Outcome.APPLY
    is_found = proposal.trigger in (EvolutionTrigger.DATA, EvolutionTrigger.CATALOG_REFRESH)
    asks_always = is_found and option(source.options, "evolve") == "confirm"
    added = sum(isinstance(change, ColumnAdded) for change in verdict.changes)
    is_flood = is_found and added > int(option(source.options, "max_new_columns") or 0)
    return Outcome.WAIT if asks_always or is_flood or not isinstance(verdict, Compatible) else Outcome.APPLY


def _notes(
    asked: Sequence[SchemaChange], verdict: EvolutionVerdict, proposal: Proposal, outcome: Outcome
) -> tuple[str, ...]:
    if not asked:
        return ("the columns take over the ids that they have outside",)
    return ("FORCE overrides the mode",) if proposal.force and outcome is Outcome.APPLY and verdict.reasons else ()


def _pending(
    source: SourceRecord,
    proposal: Proposal,
    changes: Sequence[SchemaChange],
    verdict: EvolutionVerdict,
    now: datetime,
) -> AddPending:
    return AddPending(
        source_id=source.id,
        source_name=source.name,
        base_version=source.version,
        schema=proposal.schema,
        fingerprint=hashlib.sha256(proposal.schema.serialize().to_pybytes()).hexdigest(),
        summary="; ".join(f"{change.column_name}: {describe_change(change)}" for change in changes),
        reasons="; ".join(map(str, verdict.reasons)),
        trigger=proposal.trigger,
        created_at=now,
        schema_id=proposal.schema_id,
        registry_version=proposal.registry_version,
    )


def removed_ids(old: pa.Schema, new: pa.Schema) -> set[int]:
    return _ids(columns_of(old)) - _ids(columns_of(new))


def _ids(columns: Columns) -> set[int]:
    found = {node.id for node in columns if node.id is not None}
    return found.union(*(_ids(node.children) for node in columns))


def _paths(columns: Columns, ids: set[int], parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The outermost columns among `ids`."""
    found: list[tuple[str, ...]] = []
    for node in columns:
        path = (*parent, node.name)
        found += [path] if node.id in ids else _paths(node.children, ids, path)
    return found
