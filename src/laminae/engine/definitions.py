"""Plans for whole objects: CREATE, DROP and SET of sources, views and settings; those for sinks are beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog import updates
from laminae.catalog.model import WatermarkRecord
from laminae.ddl import DropBehaviour, ObjectKind
from laminae.ddl.printer import emit_sql
from laminae.engine.changelogs import check_changelog
from laminae.engine.edits import column_id_at, field_at
from laminae.engine.epochs import DEAD_LETTER
from laminae.engine.event_columns import as_declared
from laminae.engine.evolution import history_of
from laminae.engine.options import (
    SETTINGS,
    SOURCE_OPTIONS,
    VIEW_OPTIONS,
    checked,
    compatibility_of,
    option,
)
from laminae.engine.plan import Outcome, Plan
from laminae.engine.proposal import check_name, declared_field
from laminae.engine.view_columns import added_parts, replacements, written_now
from laminae.engine.view_columns import view_plan as view_plan
from laminae.engine.writers import first_writer
from laminae.errors import DependentsExist, DuplicateColumn, InvalidOption, InvalidSchema, QueryFailed
from laminae.schema.column import columns_of, dotted
from laminae.schema.diff import diff_schemas
from laminae.schema.identity import assign_ids
from laminae.views.dependencies import parse_query, reads_of, relations_of
from laminae.views.drawing import drawn
from laminae.views.emission import refuse_misplaced, strategy_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from laminae.catalog.model import Options, SinkRecord, SourceRecord, ViewRecord
    from laminae.ddl import CreateSource, CreateView, Drop, SetOptions, SetSetting, Watermark
    from laminae.engine.subjects import Subject

FIRST_VERSION = 1
# What these say decides how bytes become a row, and is not kept for each place in the log.
FIXED_ONCE_READ = (
    "accept_old_names",
    "changelog",
    "csv_delimiter",
    "debezium.decimal",
    "debezium.time",
    "deleted_by",
    "format",
    "max_future",
    "on_rejected",
    "op_field",
    "rows_per_second",
    "sequence_by",
    "version_field",
    "version_header",
    "weight_field",
)


def plan_create_source(statement: CreateSource, now: datetime, subject: Subject | None = None) -> Plan:
    """`subject` is what the source's registry says, for columns that are not declared and for its mode."""
    name = statement.name
    check_name(name, "source")
    options = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, name)
    taken: dict[str, str] = {}
    for definition in statement.columns:
        if taken.setdefault(definition.name.casefold(), definition.name) is not definition.name:
            raise DuplicateColumn(source=name, path=definition.name)
    declared = pa.schema([declared_field(definition) for definition in statement.columns])
    writer = None if subject is None else subject.newest
    if writer is not None:
        declared = as_declared(options, writer.columns)
    if subject is not None and subject.level is not None:
        options = tuple(sorted({**dict(options), "compatibility": str(subject.level)}.items()))
    columns_of(declared)
    schema, next_id = assign_ids(declared, 1)
    mode = compatibility_of(options)
    changes = diff_schemas(pa.schema([]), schema)
    primary_key = _primary_key(statement.primary_key, schema, name)
    check_changelog(name, schema, options, primary_key)
    watermark = _watermark(statement.watermark, schema, name)
    _check_max_future(name, options, watermark)
    create = updates.CreateSource(
        name=name,
        schema=schema,
        next_column_id=next_id,
        options=options,
        primary_key=primary_key,
        watermark=watermark,
        history=history_of(changes),
        compatibility=mode,
        applied_at=now,
        writer=None if writer is None else first_writer(writer, schema),
    )
    return Plan("create source", name, Outcome.APPLY, (create,), changes, version=FIRST_VERSION)


def plan_create_view(
    statement: CreateView,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    old: ViewRecord | None,
    now: datetime,
    has_refused: bool = False,
) -> Plan:
    name = statement.name
    check_name(name, "materialized view")
    planned = view_plan(name, statement.query, sources, views, ())
    tree = drawn(planned.root)
    emit = emit_sql(statement.emit) if statement.emit is not None else None
    refuse_misplaced(name, strategy_of(emit), planned)
    put = updates.PutView(
        name=name,
        query=statement.query,
        emit=emit,
        options=checked(((o.name, o.value) for o in statement.options), VIEW_OPTIONS, name),
        state="creating",
        reads=reads_of(statement.query, {source.name: source.schema for source in sources}),
        created_at=now,
        replaces=old.id if old is not None else None,
        written=written_now(name, statement.query, sources, views),
    )
    notes = tuple(f"{operator}: {told}" for operator, told in tree)
    if old is None:
        return Plan("create materialized view", name, Outcome.APPLY, (put,), notes=notes, rests_on_others=True)
    puts = replacements(put, old, sources, views, has_refused)
    told = ["is filled from the beginning"]
    if puts[0].keeps_state:
        before = view_plan(old.name, old.query, sources, views, old.written)
        is_more = bool(added_parts(before, planned))
        told = [f"goes on with the state it has{', and fills the aggregates that are new' if is_more else ''}"]
    told += [f"materialized view {each.name} is filled again" for each in puts[1:]]
    return Plan("replace materialized view", name, Outcome.APPLY, puts, notes=(*notes, *told), rests_on_others=True)


def refuse_cycle(name: str, query: str, views: Sequence[ViewRecord]) -> None:
    """A view that is replaced must not read itself, also not through views that read it."""
    above = {name.casefold(), *(user.name.casefold() for _, user in _users(name, views, ()))}
    for _, relation in relations_of(parse_query(query)):
        if relation.casefold() in above:
            raise QueryFailed(problem=f"view {name} would read itself through {relation}")


def plan_set_options(statement: SetOptions, source: SourceRecord, is_read: bool) -> Plan:
    """`is_read`: an epoch has read the source, and a SELECT must read the same records in the same way."""
    given = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, source.name)
    current = dict(source.options)
    if any(name == "connector" and value != current.get("connector", "push") for name, value in given):
        advice = "Drop the source and create it again with the other connector."
        raise InvalidOption(
            option="connector", owner=source.name, problem="a source keeps its connector", advice=advice
        )
    for name, value in given:
        if is_read and _decides(name, (value, option(source.options, name))):
            advice = "Create another source with it; records that were read must be read alike again."
            raise InvalidOption(
                option=name, owner=source.name, problem="records have been read without it already", advice=advice
            )
    merged = tuple(sorted({**current, **dict(given)}.items()))
    if not is_read:
        check_changelog(source.name, source.schema, merged, source.primary_key)
        _check_max_future(source.name, merged, source.watermark)
    if merged == source.options:
        return Plan("set options of source", source.name, Outcome.NOTHING, notes=("the options are already so",))
    unread = any(_decides(name, (value, option(source.options, name))) for name, value in given)
    update = updates.SetSourceOptions(source.id, source.name, source.definition_seq, merged, unread)
    notes = tuple(f"{name} = {value!r}" for name, value in given)
    return Plan("set options of source", source.name, Outcome.APPLY, (update,), notes=notes)


def _decides(name: str, values: tuple[str | None, str | None]) -> bool:
    """Whether the one value of an option instead of the other makes other rows of the same bytes."""
    if name == "on_rejected" and DEAD_LETTER not in values:
        return False
    return name in FIXED_ONCE_READ and values[0] != values[1]


def plan_setting(statement: SetSetting) -> Plan:
    ((name, value),) = checked([(statement.name, statement.value)], SETTINGS, "the session")
    return Plan("set", name, Outcome.APPLY, (updates.PutSetting(name, value),), notes=(f"{name} = {value!r}",))


def plan_drop(
    statement: Drop,
    target: SourceRecord | ViewRecord | SinkRecord,
    views: Sequence[ViewRecord],
    sinks: Sequence[SinkRecord],
    now: datetime,
) -> Plan:
    """Drop an object; its dependents are named and keep it, or go with it under CASCADE, dependents first."""
    users = _users(target.name, views, sinks)
    action = f"drop {statement.kind.value}"
    if users and statement.behaviour is not DropBehaviour.CASCADE:
        named = ", ".join(f"{kind.value} {user.name}" for kind, user in users)
        refusal = DependentsExist(
            name=f"{statement.kind.value.capitalize()} {target.name}", dependents=named, cascade=", or add CASCADE"
        )
        return Plan(action, target.name, Outcome.REFUSE, refusal=refusal)
    doomed = [*users[::-1], (statement.kind, target)]
    drops = tuple(updates.DropObject(KINDS[kind], user.id, user.name, now) for kind, user in doomed)
    notes = tuple(f"drops {kind.value} {user.name}" for kind, user in doomed)
    return Plan(action, target.name, Outcome.APPLY, drops, notes=notes, rests_on_others=True)


KINDS = {ObjectKind.SOURCE: "source", ObjectKind.VIEW: "view", ObjectKind.SINK: "sink"}


def _users(
    name: str, views: Sequence[ViewRecord], sinks: Sequence[SinkRecord]
) -> list[tuple[ObjectKind, ViewRecord | SinkRecord]]:
    """Everything that reads `name`, directly or through views, nearest first."""
    found: list[tuple[ObjectKind, ViewRecord | SinkRecord]] = []
    waiting, seen = [name], {name.casefold()}
    while waiting:
        read = waiting.pop(0).casefold()
        found += [(ObjectKind.SINK, sink) for sink in sinks if sink.relation.casefold() == read]
        for view in views:
            if view.name.casefold() not in seen and any(relation.casefold() == read for relation, _ in view.reads):
                seen.add(view.name.casefold())
                found.append((ObjectKind.VIEW, view))
                waiting.append(view.name)
    return found


def _primary_key(names: tuple[str, ...], schema: pa.Schema, source: str) -> tuple[int, ...]:
    if len(set(names)) != len(names):
        raise InvalidSchema(path="PRIMARY KEY", problem="it names a column twice")
    for name in names:
        if pa.types.is_nested(field_at(schema, (name,), source).type):
            raise InvalidSchema(path=name, problem="a nested column cannot be part of the PRIMARY KEY")
    return tuple(column_id_at(schema, (name,), source) for name in names)


def _watermark(declared: Watermark | None, schema: pa.Schema, source: str) -> WatermarkRecord | None:
    if declared is None:
        return None
    if not pa.types.is_timestamp(field_at(schema, declared.path, source).type):
        raise InvalidSchema(path=dotted(declared.path), problem="a WATERMARK needs a TIMESTAMP column")
    return WatermarkRecord(column_id_at(schema, declared.path, source), declared.delay.microseconds)


def _check_max_future(source: str, options: Options, watermark: WatermarkRecord | None) -> None:
    """It is measured on the event time, which a WATERMARK names."""
    if option(options, "max_future") is not None and watermark is None:
        advice = "Say WATERMARK FOR ts AS ts - INTERVAL '5' SECOND among the columns, or leave it out."
        raise InvalidOption(option="max_future", owner=source, problem="the source has no WATERMARK", advice=advice)
