"""Plans one schema evolution: diff, judge, assign column ids, and decide. A pure function of values.

DDL, a registry, a catalog and the data all use this function. The trigger only decides whether a lossy change needs
confirmation.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laminae.catalog.updates import AddPending, AddVersion, RecordVerdict
from laminae.engine.changelogs import column_problems, option_columns, own_names
from laminae.engine.definitions.schema_edits import edit_field
from laminae.engine.evolution.inferred_fractions import rounded_ids, takes_fractions, with_fractions
from laminae.engine.plan import Outcome, Plan, verdict_name
from laminae.engine.source_spec import Evolve, spec_of
from laminae.engine.views.impact import broken_views
from laminae.errors import DependentsExist, EvolutionRejected, IncompatibleChange, InvalidSchema
from laminae.schema.apply import apply_changes
from laminae.schema.change import ColumnAdded, DefaultChanged, TypeChanged, describe_change, history_change
from laminae.schema.column import ID, column, columns_of, dotted
from laminae.schema.compatibility import RULES, Answer, CompatibilityMode, Compatible, Incompatible, Rule, judge
from laminae.schema.defaults import check_defaults
from laminae.schema.diff import diff_schemas
from laminae.schema.evolvable import EvolutionTrigger
from laminae.schema.identity import assign_ids, rewrite, with_default, with_outside_ids, without_ids
from laminae.views.dependencies import ALL_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.updates import CatalogUpdate
    from laminae.errors import LaminaeError
    from laminae.schema.change import HistoryChange, SchemaChange
    from laminae.schema.column import Columns
    from laminae.schema.compatibility import EvolutionVerdict, Reason, RuleSet


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed schema for a source, and what triggered it."""

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
    """The outcome of `proposal`; `history` holds the source's schemas, oldest first, the last one in force.

    `sources` are all sources: views of this one may read others as well.
    """
    mode, rules = spec_of(source).compatibility, spec_of(source).rules
    requested = _asked(source, proposal)
    # A schema from outside may carry the external ids of its columns, which identify a later rename.
    learned = with_outside_ids(source.schema, proposal.schema)
    if not requested and learned.equals(source.schema, check_metadata=True):
        return Plan(action, source.name, Outcome.NOTHING, notes=("the schema is unchanged",))
    # A new column needs its id before it is compared with older versions: by name it could be taken for a dropped one.
    judged, _ = assign_ids(apply_changes(source.schema, requested), source.next_column_id)
    verdict = judge(requested, columns_of(judged), history, mode, rules)
    if proposal.trigger is EvolutionTrigger.DATA and mode is CompatibilityMode.NONE:
        verdict = with_fractions(verdict)
    evolved, next_id = numbered(replace(source, schema=learned), requested)
    check_defaults(columns_of(evolved))
    changes = diff_schemas(source.schema, evolved)
    refusal = _refusal(source, evolved, verdict, proposal, views, sources, history)
    outcome = _outcome(source, verdict, proposal, refusal) if requested else Outcome.APPLY
    verdict_update = RecordVerdict(source.id, verdict_text(verdict, mode, rules, proposal.trigger, now))
    updates: tuple[CatalogUpdate, ...] = (verdict_update,)
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
            verdict_update,
        )
    elif outcome is Outcome.WAIT:
        updates = (_pending(source, proposal, requested, verdict, now), verdict_update)
    return Plan(
        action=action,
        target=source.name,
        outcome=outcome,
        updates=updates,
        changes=changes if outcome is Outcome.APPLY else requested,
        verdict=verdict,
        judged_by=f"{mode} ({rules} rules)",
        version=source.version + 1 if outcome is Outcome.APPLY else source.version,
        refusal=refusal,
        rests_on_others=outcome is Outcome.APPLY and bool(removed_ids(source.schema, evolved)),
        notes=_notes(requested, verdict, proposal, outcome),
    )


def _asked(source: SourceRecord, proposal: Proposal) -> tuple[SchemaChange, ...]:
    """The changes that the proposal makes. An id that no live column has is foreign and is ignored.

    A schema from outside does not include the defaults that were declared here: only DDL removes a default.
    """
    live = _ids(columns_of(source.schema))

    def known(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
        if ID in metadata and not (metadata[ID].isdigit() and int(metadata[ID]) in live):
            del metadata[ID]
        return metadata

    differences = diff_schemas(source.schema, rewrite(proposal.schema, known))
    changes = tuple(completed for change in differences if (completed := _with_the_initial_default(change)) is not None)
    if proposal.trigger.is_by_person:
        return changes
    return tuple(change for change in changes if not _means_nothing(source, change))


def _with_the_initial_default(change: SchemaChange) -> SchemaChange | None:
    """The change without its initial default, which is immutable; None if it changes nothing else."""
    if not isinstance(change, DefaultChanged) or change.new_initial_default is None:
        return change
    return None if change.old_default == change.new_default else replace(change, new_initial_default=None)


def _means_nothing(source: SourceRecord, change: SchemaChange) -> bool:
    """Whether a change from outside is ignored: a default that is not stated there, or a reserved column name."""
    if isinstance(change, DefaultChanged):
        return change.new_default is None
    return (
        isinstance(change, ColumnAdded)
        and len(change.path) == 1
        and change.path[0].casefold() in own_names(spec_of(source).changelog)
    )


def numbered(source: SourceRecord, changes: Sequence[SchemaChange]) -> tuple[pa.Schema, int]:
    """The schema to store: existing columns keep their ids; new columns and those of an unrelated type get new ones."""
    evolved = apply_changes(source.schema, changes)
    for change in changes:
        if isinstance(change, TypeChanged):
            evolved = edit_field(evolved, change.path, source.name, _as_a_new_column)
    return assign_ids(evolved, source.next_column_id)


def _as_a_new_column(field: pa.Field) -> pa.Field:
    return with_default(without_ids(field), column(field).default)


def history_of(changes: Sequence[SchemaChange]) -> tuple[HistoryChange, ...]:
    return tuple(history_change(change) for change in changes)


def verdict_text(verdict: EvolutionVerdict, mode: str, rules: RuleSet, trigger: EvolutionTrigger, now: datetime) -> str:
    """The verdict as the JSON that DESCRIBE SOURCE and status show."""
    facts = {
        "verdict": verdict_name(verdict),
        "mode": str(mode),
        "rules": str(rules),
        "trigger": str(trigger),
        "at": now.isoformat(),
        "changes": [f"{change.column_name}: {describe_change(change)}" for change in verdict.changes],
        "reasons": [str(reason) for reason in verdict.reasons],
    }
    return json.dumps(facts, ensure_ascii=False)


def dependents_on(
    ids: set[int], source: SourceRecord, views: Sequence[ViewRecord], history: Sequence[pa.Schema] = ()
) -> list[str]:
    """What uses one of these columns: the source's own key, watermark and options, and views."""
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
    # View state that was computed from integers cannot become floating-point.
    removed = removed_ids(source.schema, evolved) | rounded_ids(source.schema, verdict.changes)
    if users := dependents_on(removed, source, views, history):
        gone = ", ".join(dotted(path) for path in _paths(columns_of(source.schema), removed))
        return DependentsExist(name=f"Column {gone} of {source.name}", dependents=", ".join(users), cascade="")
    if broken := broken_views(source, evolved, sources, views):
        users = [f"materialized view {view}, which this would break ({problem})" for view, problem in broken]
        return DependentsExist(name=f"Source {source.name}", dependents="; ".join(users), cascade="")
    if not isinstance(verdict, Incompatible):
        return None
    rules = spec_of(source).rules
    undecodable = [r for r in verdict.reasons if RULES[rules][Rule(r.rule)].none is Answer.NO and not _may_force(r)]
    if undecodable:
        return IncompatibleChange(source=source.name, reasons="; ".join(map(str, undecodable)))
    if proposal.force:
        return None
    return rejection(source, verdict.reasons, _alternative(proposal))


def _may_force(reason: Reason) -> bool:
    """Integers can be read as DOUBLE except beyond 2^53, so FORCE is allowed."""
    return reason.change is not None and takes_fractions(reason.change)


def _new_problems(source: SourceRecord, evolved: pa.Schema) -> Iterator[tuple[str, str]]:
    """Columns that the source cannot have. Problems that existed before are ignored: another change may fix them."""

    def found(schema: pa.Schema) -> dict[tuple[int | None, str], str]:
        problems = column_problems(schema, spec_of(source).changelog, source.primary_key)
        return {(node.id, problem): node.name for node, problem in problems}

    before = found(source.schema)
    for key, name in found(evolved).items():
        if key not in before:
            yield name, key[1]


def rejection(source: SourceRecord, reasons: Iterable[Reason | str], alternative: str = "") -> EvolutionRejected:
    return EvolutionRejected(
        source=source.name,
        mode=spec_of(source).compatibility,
        rules=spec_of(source).rules,
        reasons="; ".join(map(str, reasons)),
        alternative=alternative,
    )


def _alternative(proposal: Proposal) -> str:
    """What else the user can do: only a statement that names a column accepts FORCE."""
    if proposal.confirmed:
        return " and confirm the change again, or discard it with REJECT CHANGE"
    return ", or add FORCE to the statement" if proposal.trigger.is_by_person else ""


def _outcome(
    source: SourceRecord, verdict: EvolutionVerdict, proposal: Proposal, refusal: LaminaeError | None
) -> Outcome:
    if refusal is not None:
        return Outcome.REFUSE
    if proposal.trigger.is_by_person or proposal.confirmed:
        return Outcome.APPLY
    is_found = proposal.trigger in (EvolutionTrigger.DATA, EvolutionTrigger.CATALOG_REFRESH)
    asks_always = is_found and spec_of(source).evolve is Evolve.CONFIRM
    added = sum(isinstance(change, ColumnAdded) for change in verdict.changes)
    is_flood = is_found and added > spec_of(source).max_new_columns
    return Outcome.WAIT if asks_always or is_flood or not isinstance(verdict, Compatible) else Outcome.APPLY


def _notes(
    asked: Sequence[SchemaChange], verdict: EvolutionVerdict, proposal: Proposal, outcome: Outcome
) -> tuple[str, ...]:
    if not asked:
        return ("the columns adopt their external ids",)
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
    ids = {node.id for node in columns if node.id is not None}
    return ids.union(*(_ids(node.children) for node in columns))


def _paths(columns: Columns, ids: set[int], parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The outermost columns among `ids`."""
    paths: list[tuple[str, ...]] = []
    for node in columns:
        path = (*parent, node.name)
        paths += [path] if node.id in ids else _paths(node.children, ids, path)
    return paths
