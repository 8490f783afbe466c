"""Plans for sinks: what one writes of its relation, where, and what its relation cannot serve is refused at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from laminae.catalog import updates
from laminae.catalog.location import find_home
from laminae.engine.changelogs import RETRACT, TABLES, changelog_of, row_key
from laminae.engine.options import SINK_OPTIONS, checked, option
from laminae.engine.plan import Outcome, Plan
from laminae.engine.proposal import check_name
from laminae.engine.view_columns import view_plan
from laminae.errors import InvalidOption
from laminae.registry import RegistrySettings
from laminae.views.append_only import retraction
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from laminae.catalog.model import Options, SinkRecord, SourceRecord, ViewRecord
    from laminae.ddl import CreateSink

Relation = TypeVar("Relation", "SourceRecord", "ViewRecord")

APPEND, CHANGELOG, UPSERT = "append", "changelog", "upsert"
JSON, AVRO, DEBEZIUM_JSON = "json", "avro", "debezium-json"
FORMATS = {"kafka": (JSON, DEBEZIUM_JSON, AVRO)}
"""What a connector can write, the first unless another is asked for; others say so when they deliver."""
REQUIRED: dict[tuple[str, str | None], tuple[str, ...]] = {
    ("postgres", None): ("url", "table"),
    ("kafka", None): ("topic", "kafka.bootstrap.servers"),
    ("kafka", AVRO): ("registry",),
}
"""Options without which a connector, with a format where it matters, cannot write."""
UNIQUE = ("postgres", "iceberg", "delta")
"""Connectors whose table holds one row for each key, and keeps that key."""
ROWS_ALONE = frozenset({("postgres", None), ("kafka", JSON), ("kafka", AVRO)})
"""Connectors, with a format where it matters, that hold rows by their key or one after the other, never changes."""


def plan_create_sink(
    statement: CreateSink,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    sinks: Sequence[SinkRecord],
    now: datetime,
) -> Plan:
    check_name(statement.name, "sink")
    options = checked(((o.name, o.value) for o in statement.options), SINK_OPTIONS, statement.name)
    if "connector" not in dict(options):
        expectation = SINK_OPTIONS["connector"].expectation
        raise InvalidOption(
            option="connector", owner=statement.name, problem="it is missing", advice=f"Give {expectation}."
        )
    _check_connector(statement.name, options)
    _refuse_shared_directory(statement.name, options, sinks)
    mode = sink_mode(statement.name, statement.relation, options, sources, views)
    if mode != APPEND:
        options = tuple(sorted({**dict(options), "mode": mode}.items()))
    put = updates.PutSink(statement.name, statement.relation, options, "creating", now)
    notes = (f"delivers {statement.relation}", f"mode {mode}")
    return Plan("create sink", statement.name, Outcome.APPLY, (put,), notes=notes, rests_on_others=True)


def refuse_lost_sinks(
    puts: Sequence[updates.PutView],
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    sinks: Sequence[SinkRecord],
) -> None:
    """InvalidOption when a sink of a view that is replaced could not go on with its successor.

    Columns and types may be others: a sink takes the old rows back as they were and goes on with the new ones.
    """
    by_name = {put.name.casefold(): put for put in puts}
    present = [_successor(view, by_name.get(view.name.casefold())) for view in views]
    for sink in sinks:
        if sink.relation.casefold() not in by_name:
            continue
        # One that adds rows has no mode on record.
        mode = option(sink.options, "mode", SINK_OPTIONS) or APPEND
        advice = "Drop the sink first and create it again in a new place, or make a view of another name."
        if mode == APPEND and sink.progress:
            problem = f"it cannot take back the rows that view {sink.relation} has given it"
            raise _refusal(sink.name, APPEND, problem, advice)
        sink_mode(sink.name, sink.relation, (*sink.options, ("mode", mode)), sources, present)
        if mode == UPSERT and sink.progress and option(sink.options, "connector", SINK_OPTIONS) in UNIQUE:
            keys = [_key(sink.relation, sources, each) for each in (views, present)]
            if keys[0] != keys[1]:
                raise _refusal(sink.name, UPSERT, f"its table knows rows by {', '.join(keys[0])}", advice)


def _key(name: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> tuple[str, ...]:
    view = _named(name, views)
    return () if view is None else view_plan(view.name, view.query, sources, views).key or ()


def _successor(view: ViewRecord, put: updates.PutView | None) -> ViewRecord:
    return view if put is None else replace(view, query=put.query, emit=put.emit, written=put.written)


def sink_mode(
    name: str, relation: str, options: Options, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> str:
    """The mode given, else append for a source of rows, changelog for others and for views.

    Where there is no place for changes, rows are upserted if a key identifies them, and added otherwise.
    InvalidOption where a mode cannot be served.
    """
    view, source = _named(relation, views), _named(relation, sources)
    given, takes_changes = option(options, "mode", SINK_OPTIONS), _takes_changes(options)
    if not takes_changes:
        if given == CHANGELOG:
            advice = f"Use mode = '{UPSERT}', or '{APPEND}' where rows are only added."
            raise _refusal(name, CHANGELOG, "such a sink holds rows, not their changes", advice)
        given = given or (UPSERT if _has_key(view, source, sources, views) else APPEND)
    instead = f"Use mode = '{CHANGELOG}', or g" if takes_changes else "G"
    by_key = f"{instead}roup the rows in a view by what identifies one."
    if given == UPSERT and not _has_key(view, source, sources, views):
        if view is None and not _is_changed(source):
            advice = f"Write them with mode = '{APPEND}', or make a view that groups them by what identifies a row."
            raise _refusal(name, UPSERT, f"rows of source {relation} are only added", advice)
        kind = "view" if view is not None else "source"
        raise _refusal(name, UPSERT, f"no columns of {kind} {relation} identify its rows", by_key)
    if given == APPEND and source is not None and _is_changed(source):
        problem = f"source {source.name} takes rows back (changelog = '{changelog_of(source.options)}')"
        raise _refusal(name, APPEND, problem, by_key)
    if given == APPEND and view is not None and (reason := view_retraction(view, sources, views)) is not None:
        advice = f"{by_key[:-1]}, or EMIT ON WINDOW CLOSE in a view over windows."
        raise _refusal(name, APPEND, f"view {view.name} takes rows back ({reason})", advice)
    return given or (APPEND if view is None and not _is_changed(source) else CHANGELOG)


def format_of(options: Options) -> str | None:
    """The format given, else the first of the connector's, if it has several."""
    connector = option(options, "connector", SINK_OPTIONS) or ""
    return option(options, "format", SINK_OPTIONS) or next(iter(FORMATS.get(connector, ())), None)


def _check_connector(name: str, options: Options) -> None:
    connector, kind = dict(options)["connector"], format_of(options)
    if kind is not None and kind not in FORMATS.get(connector, (kind,)):
        advice = f"Give one of {', '.join(FORMATS[connector])}."
        raise InvalidOption(option="format", owner=name, problem=f"{connector} has no {kind}", advice=advice)
    for case in dict.fromkeys([(connector, None), (connector, kind)]):
        for required in REQUIRED.get(case, ()):
            if required not in dict(options):
                advice = f"Give it: {SINK_OPTIONS[required].meaning}."
                raise InvalidOption(option=required, owner=name, problem="it is missing", advice=advice)
    if kind == AVRO and connector == "kafka":
        RegistrySettings.of_options(dict(options), name)


def _takes_changes(options: Options) -> bool:
    connector = option(options, "connector", SINK_OPTIONS)
    return ROWS_ALONE.isdisjoint({(connector, None), (connector, format_of(options))})


def _is_changed(source: SourceRecord | None) -> bool:
    """Whether records of a source change rows that are there: a sink is given the changes of its table."""
    return source is not None and changelog_of(source.options) in (*TABLES, RETRACT)


def _has_key(
    view: ViewRecord | None,
    source: SourceRecord | None,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
) -> bool:
    if view is not None:
        return view_plan(view.name, view.query, sources, views).key is not None
    return source is not None and row_key(source) is not None


def view_retraction(view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> str | None:
    """What makes a view take rows back, through the views below it if need be; None when nothing does."""
    root = view_plan(view.name, view.query, sources, views).root
    inputs = {read.relation.casefold(): _retracts(read.relation, sources, views) for read in reads_in(root)}
    return retraction(root, view.emit, inputs)


def _retracts(relation: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> bool:
    below = _named(relation, views)
    if below is not None:
        return view_retraction(below, sources, views) is not None
    source = _named(relation, sources)
    return source is None or changelog_of(source.options) != APPEND


def _refuse_shared_directory(name: str, options: Options, sinks: Sequence[SinkRecord]) -> None:
    """Files are named after epochs: two sinks in one directory would overwrite each other."""
    for sink in sinks:
        if _directory(sink.options) == _directory(options) is not None:
            advice = "Give each sink a directory of its own: its files are named after epochs."
            raise InvalidOption(option="path", owner=name, problem=f"sink {sink.name} writes there", advice=advice)
    directory = None if "path" not in dict(options) else find_home(dict(options)["path"]).directory
    if dict(options)["connector"] == "files" and directory is not None and any(directory.glob("epoch-*")):
        advice = "Give an empty directory, or remove what another sink has left there."
        raise InvalidOption(option="path", owner=name, problem="there are files of a sink already", advice=advice)


def _directory(options: Options) -> str | None:
    """Where a files sink writes, however its path is spelled."""
    given = dict(options)
    return find_home(given["path"]).identity if given.get("connector") == "files" and "path" in given else None


def _named(name: str, relations: Sequence[Relation]) -> Relation | None:
    return next((each for each in relations if each.name.casefold() == name.casefold()), None)


def _refusal(sink: str, mode: str, problem: str, advice: str) -> InvalidOption:
    return InvalidOption(option="mode", owner=sink, problem=f"it is {mode}, and {problem}", advice=advice)
