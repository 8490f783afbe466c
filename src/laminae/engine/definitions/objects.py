"""Plans of CREATE, DROP and SET for sources, views and settings. Plans for sinks are in `sinks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog import updates
from laminae.catalog.model import EXACT_READING, ViewStatus, WatermarkRecord
from laminae.engine.changelogs import check_changelog
from laminae.engine.definitions.alter import check_name, declared_field
from laminae.engine.definitions.schema_edits import column_id_at, field_at
from laminae.engine.evolution.evolution_plan import history_of
from laminae.engine.options import (
    SETTINGS,
    SOURCE_OPTIONS,
    VIEW_OPTIONS,
    checked,
    option,
)
from laminae.engine.plan import Outcome, Plan
from laminae.engine.source_spec import OnRejected, parse_options
from laminae.engine.views.resolution import added_parts, replacements, written_now
from laminae.engine.views.resolution import view_plan as view_plan
from laminae.engine.writer_schemas.binding import first_writer
from laminae.engine.writer_schemas.columns import as_declared
from laminae.errors import DependentsExist, DuplicateColumn, InvalidOption, InvalidSchema, QueryFailed
from laminae.schema.column import columns_of, dotted
from laminae.schema.diff import diff_schemas
from laminae.schema.identifiers import collation_key
from laminae.schema.identity import assign_ids
from laminae.sql import DropBehaviour, ObjectKind
from laminae.sql.printer import emit_sql
from laminae.views.dependencies import parse_query, reads_of, relations_of
from laminae.views.emit import refuse_misplaced, strategy_of
from laminae.views.explain import describe_view, drawn
from laminae.views.functions import ALLOWED, allowed_functions
from laminae.views.sql.function_names import OUTSIDE
from laminae.views.unsupported import refuse_reserved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from laminae.catalog.model import Options, SinkRecord, SourceRecord, ViewRecord
    from laminae.engine.writer_schemas.registry import Subject
    from laminae.sql import CreateSource, CreateView, Drop, SetOptions, SetSetting, Watermark

FIRST_VERSION = 1
# These options decide how bytes become a row and are not versioned by offset, so they cannot change once data was read.
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
    "timestamp_unit",
    "version_field",
    "version_header",
    "weight_field",
)


def plan_create_source(statement: CreateSource, now: datetime, subject: Subject | None = None) -> Plan:
    """`subject` comes from the schema registry: it supplies undeclared columns, and the compatibility mode."""
    name = statement.name
    check_name(name, "source")
    options = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, name)
    taken: dict[str, str] = {}
    for definition in statement.columns:
        if taken.setdefault(collation_key(definition.name), definition.name) is not definition.name:
            raise DuplicateColumn(source=name, path=definition.name)
    declared = pa.schema([declared_field(definition) for definition in statement.columns])
    writer = None if subject is None else subject.newest
    if writer is not None:
        declared = as_declared(parse_options(options), writer.columns)
    if subject is not None and subject.level is not None:
        options = tuple(sorted({**dict(options), "compatibility": str(subject.level)}.items()))
    _check_format(name, options)
    columns_of(declared)
    schema, next_id = assign_ids(declared, 1)
    mode = parse_options(options).compatibility
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


def _check_format(name: str, options: Options) -> None:
    """Refuse a format that the connector would ignore. Connectors that read what others write check it when opened."""
    spec = parse_options(options)
    if spec.connector.writes_json and spec.format_name not in (None, *spec.connector.formats):
        raise InvalidOption(
            option="format",
            owner=name,
            problem=f"connector {spec.connector.name} has no {spec.format_name} records",
            advice=f"Omit it, or use one of {', '.join(spec.connector.formats)}.",
        )


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
    planned = view_plan(name, statement.query, sources, views, (), EXACT_READING)
    refuse_reserved(planned.root)
    tree = drawn(planned.root)
    emit = emit_sql(statement.emit) if statement.emit is not None else None
    refuse_misplaced(name, strategy_of(emit), planned)
    put = updates.PutView(
        name=name,
        query=statement.query,
        emit=emit,
        options=checked(((o.name, o.value) for o in statement.options), VIEW_OPTIONS, name),
        state=ViewStatus.CREATING,
        reads=reads_of(statement.query, {source.name: source.schema for source in sources}),
        created_at=now,
        replaces=old.id if old is not None else None,
        written=written_now(name, statement.query, sources, views),
    )
    notes = tuple(f"{operator}: {description}" for operator, description in tree)
    summary = describe_view(planned, emit)
    if old is None:
        action = "create materialized view"
        return Plan(action, name, Outcome.APPLY, (put,), notes=notes, summary=summary, rests_on_others=True)
    puts = replacements(put, old, sources, views, has_refused)
    effects = ["is backfilled from the beginning"]
    if puts[0].keeps_state:
        before = view_plan(old.name, old.query, sources, views, old.written, old.reading)
        is_more = bool(added_parts(before, planned))
        effects = [f"continues with its state{', and backfills the new aggregates' if is_more else ''}"]
    effects += [f"materialized view {dependent.name} is backfilled again" for dependent in puts[1:]]
    action, summary = "replace materialized view", "; ".join((summary, *effects))
    return Plan(action, name, Outcome.APPLY, puts, notes=(*notes, *effects), summary=summary, rests_on_others=True)


def refuse_cycle(name: str, query: str, views: Sequence[ViewRecord]) -> None:
    """Raise when a replaced view would read itself, directly or through views that read it."""
    above = {name.casefold(), *(user.name.casefold() for _, user in _users(name, views, ()))}
    for _, relation in relations_of(parse_query(query)):
        if relation.casefold() in above:
            raise QueryFailed(problem=f"view {name} would read itself through {relation}")


def plan_set_options(statement: SetOptions, source: SourceRecord, is_read: bool) -> Plan:
    """`is_read`: an epoch has already read the source, so a SELECT must decode those records in the same way."""
    new_options = checked(((o.name, o.value) for o in statement.options), SOURCE_OPTIONS, source.name)
    current = dict(source.options)
    if any(name == "connector" and value != current.get("connector", "push") for name, value in new_options):
        advice = "Drop the source and create it again with the other connector."
        raise InvalidOption(
            option="connector", owner=source.name, problem="a source keeps its connector", advice=advice
        )
    for name, value in new_options:
        if is_read and _decides(name, (value, option(source.options, name))):
            advice = "Create another source with it: records must be read again in the same way."
            raise InvalidOption(
                option=name, owner=source.name, problem="records have already been read without it", advice=advice
            )
    merged = tuple(sorted({**current, **dict(new_options)}.items()))
    if not is_read:
        check_changelog(source.name, source.schema, merged, source.primary_key)
        _check_max_future(source.name, merged, source.watermark)
    if merged == source.options:
        return Plan("set options of source", source.name, Outcome.NOTHING, notes=("the options are unchanged",))
    unread = any(_decides(name, (value, option(source.options, name))) for name, value in new_options)
    update = updates.SetSourceOptions(source.id, source.name, source.definition_seq, merged, unread)
    notes = tuple(f"{name} = {value!r}" for name, value in new_options)
    return Plan("set options of source", source.name, Outcome.APPLY, (update,), notes=notes)


def _decides(name: str, values: tuple[str | None, str | None]) -> bool:
    """Whether changing an option from one value to the other would decode the same bytes into different rows."""
    if name == "on_rejected" and OnRejected.DEAD_LETTER not in values:
        return False
    return name in FIXED_ONCE_READ and values[0] != values[1]


def plan_setting(statement: SetSetting) -> Plan:
    ((name, value),) = checked([(statement.name, statement.value)], SETTINGS, "the session")
    if name == ALLOWED and (outside := sorted(allowed_functions({name: value}) & OUTSIDE.keys())):
        advice = "Name functions of your own."
        raise InvalidOption(
            option=name, owner="the session", problem=f"{', '.join(outside)} cannot be allowed", advice=advice
        )
    return Plan("set", name, Outcome.APPLY, (updates.PutSetting(name, value),), notes=(f"{name} = {value!r}",))


def plan_drop(
    statement: Drop,
    target: SourceRecord | ViewRecord | SinkRecord,
    views: Sequence[ViewRecord],
    sinks: Sequence[SinkRecord],
    now: datetime,
) -> Plan:
    """Drop an object. Dependents block the drop; with CASCADE they are dropped too, dependents first."""
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
    users: list[tuple[ObjectKind, ViewRecord | SinkRecord]] = []
    waiting, seen = [name], {name.casefold()}
    while waiting:
        read = waiting.pop(0).casefold()
        users += [(ObjectKind.SINK, sink) for sink in sinks if sink.relation.casefold() == read]
        for view in views:
            if view.name.casefold() not in seen and any(relation.casefold() == read for relation, _ in view.reads):
                seen.add(view.name.casefold())
                users.append((ObjectKind.VIEW, view))
                waiting.append(view.name)
    return users


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
    """`max_future` is measured on the event time, which needs a WATERMARK."""
    if parse_options(options).max_future is not None and watermark is None:
        advice = "Declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, or omit the option."
        raise InvalidOption(option="max_future", owner=source, problem="the source has no WATERMARK", advice=advice)
