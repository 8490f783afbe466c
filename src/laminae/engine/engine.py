"""The engine: statement -> plan -> commit. Pure functions decide; its only effects are catalog reads and `commit`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Never

from laminae import sql as ddl
from laminae.catalog.model import PendingState, ViewStatus
from laminae.catalog.updates import AddVersion, PutView, ResolvePending, SetViewState
from laminae.engine.definitions import objects as definitions
from laminae.engine.definitions.alter import ALTERS, proposed_schema
from laminae.engine.definitions.sinks import plan_create_sink, refuse_lost_sinks, refuse_unwritable_names
from laminae.engine.evolution.evolution_plan import Proposal, plan_evolution
from laminae.engine.evolution.inferred_fractions import LARGEST, rounded_paths
from laminae.engine.notifications import notice_of
from laminae.engine.plan import Outcome, Plan
from laminae.engine.source_spec import spec_of
from laminae.engine.writer_schemas.registry import subject_of_new
from laminae.errors import (
    ChangeNotPending,
    ConcurrentChange,
    DuplicateObject,
    InvalidName,
    NotAvailable,
    UnknownObject,
    ValuesNotExact,
)
from laminae.schema.evolvable import Applied, EvolutionResult, EvolutionTrigger, NeedsConfirmation, NoChange, Rejected
from laminae.schema.projection import projection_between
from laminae.views.dependencies import parse_query, relations_of
from laminae.views.functions import allowed_functions, refuse_functions
from laminae.views.unsupported import refuse_unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from laminae.catalog.model import PendingRecord, SinkRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog, Committed
    from laminae.engine.ports import FoundSchema, SchemaFinder
    from laminae.notifications import SchemaNotice
    from laminae.schema.change import SchemaChange
    from laminae.schema.column import Path
    from laminae.sql.statements import AlterColumn

Definition = (
    ddl.CreateSource
    | ddl.statements.AlterSource
    | ddl.SetSetting
    | ddl.CreateView
    | ddl.ResumeView
    | ddl.CreateSink
    | ddl.Drop
)


# Planning takes a millisecond or two, and definitions never change that often.
MOST_ATTEMPTS = 10


AFTER_CONFIRM = "records that waited for it are replayed by the next run"
AFTER_REJECT = (
    "records that waited for it stay dead letters; to accept them without the new fields: laminae dead-letters replay "
)


BY_CONNECTOR = "*"


def _is_found(pending: PendingRecord) -> bool:
    """Whether the change was inferred from data: records then wait for the decision."""
    return EvolutionTrigger(pending.trigger) is EvolutionTrigger.DATA


def _now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """Runs definitions against one catalog. `finders` look up the external schema of a source, by connector; the one
    named `BY_CONNECTOR` is for every connector whose row in the table has a finder.

    `judge_view` is called with the name and the query of a new view, and raises if the view cannot run. `value_beyond`
    is called with a source, a column path and a bound, and returns a value above the bound, if any. `on_change`
    receives a notice of each judged change after its commit; it must return at once.
    """

    def __init__(
        self,
        catalog: Catalog,
        finders: Mapping[str, SchemaFinder] | None = None,
        clock: Callable[[], datetime] = _now,
        on_change: Callable[[SourceRecord, SchemaNotice], None] | None = None,
        judge_view: Callable[[str, str, Sequence[SourceRecord], Sequence[ViewRecord]], None] | None = None,
        value_beyond: Callable[[SourceRecord, Path, int], int | None] | None = None,
    ) -> None:
        self._catalog = catalog
        self._finders = finders or {}
        self._clock = clock
        self._on_change = on_change
        self._judge_view = judge_view
        self._value_beyond = value_beyond

    def run(self, statement: Definition) -> Plan:
        """Plan and commit. Raises the plan's refusal after its verdict was recorded.

        CREATE VIEW and CREATE SINK are planned again when other definitions have changed meanwhile: a driver changes
        the state of views at any moment, and the caller of the next statement has nothing to decide because of that.
        Statements that remove something are not retried: the name might refer to a different object by now.
        """
        for attempts_left in reversed(range(MOST_ATTEMPTS)):
            plan = self.plan(statement)
            try:
                self.execute(plan)
                break
            except ConcurrentChange:
                if not isinstance(statement, ddl.CreateView | ddl.CreateSink) or not attempts_left:
                    raise
        if plan.refusal is not None:
            raise plan.refusal
        return plan

    def execute(self, plan: Plan, lease_token: int | None = None) -> Committed | None:
        if not plan.updates:
            return None
        committed = self._catalog.commit(plan.updates, lease_token=lease_token, expected_seq=plan.expected_seq)
        if self._on_change is not None and plan.verdict is not None:
            self._tell(plan, committed, self._on_change)
        return committed

    def _tell(self, plan: Plan, committed: Committed, on_change: Callable[[SourceRecord, SchemaNotice], None]) -> None:
        source = self._catalog.source(plan.target)
        if source is None:
            return
        change_id = committed.ids[0] if plan.outcome is Outcome.WAIT else None
        if change_id is not None and self._pending_state(source, change_id) is PendingState.REJECTED:
            # A person has already rejected this change.
            return
        notice = notice_of(plan, source, change_id)
        if notice is not None:
            on_change(source, notice)

    def _pending_state(self, source: SourceRecord, change_id: int) -> PendingState:
        return next(pending.state for pending in self._catalog.pending(source.id) if pending.id == change_id)

    def propose(
        self,
        source_name: str,
        found: FoundSchema,
        trigger: EvolutionTrigger,
        base_version: int | None = None,
        lease_token: int | None = None,
    ) -> EvolutionResult:
        """Plan a schema from outside in the same way as DDL. A refused change is a result, not an error.

        Raises ConcurrentChange when the schema was derived from `base_version` and another version is in force by now:
        compared with that one, it would seem to undo the changes in between.
        """
        source = self.source(source_name)
        if base_version not in (None, source.version):
            raise ConcurrentChange(name=source.name, expected=base_version, found=source.version)
        plan = self._evolution(source, _found(found, trigger), f"evolve source ({trigger})")
        committed = self.execute(plan, lease_token)
        reasons = plan.verdict.reasons if plan.verdict is not None else ()
        match plan.outcome:
            case Outcome.NOTHING | Outcome.REJECT:
                return NoChange(source.version)
            case Outcome.REFUSE:
                return Rejected(plan.changes, reasons, "" if plan.refusal is None else plan.refusal.message)
            case Outcome.WAIT:
                return self._waiting(source, committed.ids[0] if committed else 0, plan)
            case Outcome.APPLY:
                evolved = self.source(source_name)
                projection = projection_between(source.schema, evolved.schema)
                return Applied(evolved.schema, projection, evolved.version, plan.changes)

    def _waiting(self, source: SourceRecord, change_id: int, plan: Plan) -> EvolutionResult:
        """A change that a person has rejected stays rejected while the version it was compared with is in force."""
        state = self._pending_state(source, change_id)
        reasons = plan.verdict.reasons if plan.verdict is not None else ()
        if state is PendingState.REJECTED:
            return Rejected(plan.changes, reasons)
        return NeedsConfirmation(change_id, plan.changes, reasons)

    def plan(self, statement: Definition) -> Plan:
        """What the statement would do. Raises only when no plan is possible at all, e.g. for an unknown column."""
        seq = self._catalog.definition_seq()
        plan = self._plan(statement)
        # Objects that a plan removes or depends on must not change between planning and commit.
        return replace(plan, expected_seq=seq) if plan.rests_on_others else plan

    def _plan(self, statement: Definition) -> Plan:
        match statement:
            case ddl.CreateSource():
                return self._create(statement, ddl.ObjectKind.SOURCE) or definitions.plan_create_source(
                    statement, self._clock(), subject_of_new(statement)
                )
            case ddl.RefreshSchema():
                return self._refresh(statement)
            case ddl.ConfirmChange() | ddl.RejectChange():
                return self._resolve(statement)
            case ddl.SetCompatibility():
                options = (ddl.Option("compatibility", statement.mode),)
                return self._plan(ddl.SetOptions(statement.source, options))
            case ddl.SetOptions():
                source = self.source(statement.source)
                return definitions.plan_set_options(
                    statement, source, is_read=self._catalog.last_batch(source.id) is not None
                )
            case ddl.SetSetting():
                return definitions.plan_setting(statement)
            case ddl.CreateView():
                return self._create_view(statement)
            case ddl.ResumeView():
                return _resume(self.view(statement.view))
            case ddl.CreateSink():
                return self._create_sink(statement)
            case ddl.Drop():
                return self._drop(statement)
            case _:
                return self._alter(statement)

    def source(self, name: str) -> SourceRecord:
        _refuse_unless_text(name, "source")
        if record := self._catalog.source(name):
            return record
        if dropped_at := self._catalog.source_dropped_at(name):
            suggestion = f" (a source of this name was dropped at {dropped_at:%Y-%m-%d %H:%M:%S} UTC)"
            raise UnknownObject(kind="source", name=name, suggestion=suggestion)
        return self._unknown("source", name, [source.name for source in self._catalog.sources()])

    def view(self, name: str) -> ViewRecord:
        _refuse_unless_text(name, "materialized view")
        names = [view.name for view in self._catalog.views()]
        return self._catalog.view(name) or self._unknown("materialized view", name, names)

    def sink(self, name: str) -> SinkRecord:
        return self._catalog.sink(name) or self._unknown("sink", name, [sink.name for sink in self._catalog.sinks()])

    def _alter(self, statement: AlterColumn) -> Plan:
        source = self.source(statement.source)
        action = f"alter source: {ALTERS[type(statement)]}"
        schema = proposed_schema(statement, source.schema)
        if schema is None:
            return Plan(action, source.name, Outcome.NOTHING, notes=("IF [NOT] EXISTS: nothing to do",))
        plan = self._evolution(source, Proposal(schema, EvolutionTrigger.DDL, force=statement.force), action)
        evolved = next((update.schema for update in plan.updates if isinstance(update, AddVersion)), source.schema)
        if sinks := self._catalog.sinks():
            sources, views = self._catalog.sources(), self._catalog.views()
            after = [replace(other, schema=evolved) if other.id == source.id else other for other in sources]
            refuse_unwritable_names((sources, views), (after, views), sinks)
        return plan

    def _evolution(self, source: SourceRecord, proposal: Proposal, action: str) -> Plan:
        history: list[pa.Schema] = [version.schema for version in self._catalog.versions(source.id)]
        # A version that another writer adds between the two reads is not part of what this plan is based on.
        history = history[: source.version]
        views, sources = self._catalog.views(), self._catalog.sources()
        return plan_evolution(source, history, proposal, views, self._clock(), action, sources)

    def _refresh(self, statement: ddl.RefreshSchema) -> Plan:
        source = self.source(statement.source)
        spec, connector = spec_of(source), spec_of(source).connector
        finder = self._finders.get("registry" if spec.registry.is_given else connector.name)
        if finder is None and connector.finder is not None:
            finder = self._finders.get(BY_CONNECTOR)
        if finder is None:
            raise NotAvailable(
                feature=f"REFRESH SCHEMA of {source.name}",
                problem=f"connector {connector.name} has no external schema to look up",
                advice="Change the columns with ALTER SOURCE ... ADD, DROP or ALTER COLUMN.",
            )
        proposal = _found(finder.find(source), EvolutionTrigger.MANUAL_REFRESH)
        return self._evolution(source, proposal, "refresh schema of source")

    def _resolve(self, statement: ddl.ConfirmChange | ddl.RejectChange) -> Plan:
        source, now = self.source(statement.source), self._clock()
        change_id = statement.change_id
        pending = next((p for p in self._catalog.pending(source.id) if p.id == change_id), None)
        if pending is None or pending.state is not PendingState.PENDING:
            problem = "there is no such change" if pending is None else f"it was {pending.state}"
            raise ChangeNotPending(change_id=change_id, source=source.name, problem=problem)
        if isinstance(statement, ddl.RejectChange):
            rejected = ResolvePending(change_id, source.id, source.name, PendingState.REJECTED, now)
            details = (pending.summary, f"{AFTER_REJECT}{source.name}") if _is_found(pending) else (pending.summary,)
            return Plan(f"reject change {change_id}", source.name, Outcome.REJECT, (rejected,), notes=details)
        trigger = EvolutionTrigger(pending.trigger)
        proposal = Proposal(
            pending.schema,
            trigger,
            confirmed=True,
            schema_id=pending.schema_id,
            registry_version=pending.registry_version,
        )
        plan = self._evolution(source, proposal, f"confirm change {change_id}")
        if plan.outcome is not Outcome.APPLY:
            return plan
        self._refuse_rounding(source, change_id, plan.changes)
        confirmed = ResolvePending(change_id, source.id, source.name, PendingState.CONFIRMED, now)
        notes = (*plan.notes, AFTER_CONFIRM) if _is_found(pending) else plan.notes
        return replace(plan, updates=(confirmed, *plan.updates), notes=notes)

    def _refuse_rounding(self, source: SourceRecord, change_id: int, changes: Sequence[SchemaChange]) -> None:
        """Raise when existing rows would lose digits: a confirmation cannot override that."""
        for path in rounded_paths(changes):
            value = None if self._value_beyond is None else self._value_beyond(source, path, LARGEST)
            if value is not None:
                raise ValuesNotExact(change_id=change_id, source=source.name, column=".".join(path), value=value)

    def _create(
        self, statement: ddl.CreateSource | ddl.CreateView | ddl.CreateSink, kind: ddl.ObjectKind
    ) -> Plan | None:
        """The plan when the name is taken: nothing to do under IF NOT EXISTS, else DuplicateObject."""
        namesakes: tuple[tuple[ddl.ObjectKind, SourceRecord | ViewRecord | SinkRecord | None], ...] = (
            (ddl.ObjectKind.SOURCE, self._catalog.source(statement.name)),
            (ddl.ObjectKind.VIEW, self._catalog.view(statement.name)),
            (ddl.ObjectKind.SINK, self._catalog.sink(statement.name)),
        )
        for record_kind, record in namesakes:
            if record is not None:
                if record_kind is kind and statement.if_not_exists:
                    return Plan(f"create {kind.value}", record.name, Outcome.NOTHING, notes=("it already exists",))
                raise DuplicateObject(kind=record_kind.value, name=record.name)
        return None

    def _create_view(self, statement: ddl.CreateView) -> Plan:
        old = self._catalog.view(statement.name) if statement.or_replace else None
        if old is None and (present := self._create(statement, ddl.ObjectKind.VIEW)):
            return present
        sources, views = self._catalog.sources(), self._catalog.views()
        tree = parse_query(statement.query)
        refuse_functions(tree, allowed_functions(self._catalog.settings()))
        refuse_unsupported(tree)
        for schema, relation in relations_of(tree):
            self.readable(f"{schema}.{relation}" if schema else relation)
        definitions.refuse_cycle(statement.name, statement.query, views)
        has_refused = old is not None and self._catalog.refused(old.id) > 0
        plan = definitions.plan_create_view(statement, sources, views, old, self._clock(), has_refused)
        if old is not None:
            puts = [update for update in plan.updates if isinstance(update, PutView)]
            refuse_lost_sinks(puts, sources, views, self._catalog.sinks())
        if self._judge_view is not None:
            self._judge_view(statement.name, statement.query, sources, views)
        return plan

    def _create_sink(self, statement: ddl.CreateSink) -> Plan:
        if present := self._create(statement, ddl.ObjectKind.SINK):
            return present
        self.readable(statement.relation)
        known = (self._catalog.sources(), self._catalog.views(), self._catalog.sinks())
        return plan_create_sink(statement, *known, self._clock())

    def readable(self, relation: str) -> None:
        if self._catalog.source(relation) is None and self._catalog.view(relation) is None:
            names = [*(s.name for s in self._catalog.sources()), *(v.name for v in self._catalog.views())]
            self._unknown("source or materialized view", relation, names)

    def _drop(self, statement: ddl.Drop) -> Plan:
        look_up: dict[ddl.ObjectKind, Callable[[str], SourceRecord | ViewRecord | SinkRecord]] = {
            ddl.ObjectKind.SOURCE: self.source,
            ddl.ObjectKind.VIEW: self.view,
            ddl.ObjectKind.SINK: self.sink,
        }
        try:
            target = look_up[statement.kind](statement.name)
        except UnknownObject:
            if not statement.if_exists:
                raise
            return Plan(f"drop {statement.kind.value}", statement.name, Outcome.NOTHING, notes=("there is none",))
        return definitions.plan_drop(statement, target, self._catalog.views(), self._catalog.sinks(), self._clock())

    def _unknown(self, kind: str, name: str, names: list[str]) -> Never:
        close = get_close_matches(name, names, n=1)
        raise UnknownObject(kind=kind, name=name, suggestion=f" (did you mean {close[0]}?)" if close else "")


def _resume(view: ViewRecord) -> Plan:
    if view.state != ViewStatus.FAILED:
        return Plan("resume view", view.name, Outcome.NOTHING, notes=(f"the view is {view.state}, not failed",))
    # The view catches up from where it stopped before it is live again.
    return Plan("resume view", view.name, Outcome.APPLY, (SetViewState(view.id, ViewStatus.CREATING),))


def _found(found: FoundSchema, trigger: EvolutionTrigger) -> Proposal:
    return Proposal(found.schema, trigger, schema_id=found.schema_id, registry_version=found.registry_version)


def _refuse_unless_text(name: object, kind: str) -> None:
    if not isinstance(name, str):
        raise InvalidName(name=repr(name), kind=kind, problem=f"it is of type {type(name).__name__}, not text")
