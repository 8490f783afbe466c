"""Plans for sinks: mode, format and target. A sink that its relation cannot feed is refused when it is created."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from laminae.catalog import updates
from laminae.catalog.location import find_home
from laminae.catalog.model import SinkStatus
from laminae.engine.changelogs import row_key
from laminae.engine.definitions.alter import check_name
from laminae.engine.definitions.sink_names import name_problems, refuse_names
from laminae.engine.options import SINK_OPTIONS, checked, option
from laminae.engine.plan import Outcome, Plan
from laminae.engine.source_spec import spec_of
from laminae.engine.views.resolution import view_plan
from laminae.errors import InvalidOption, LaminaeError, SinkColumnRefused
from laminae.registry import RegistrySettings
from laminae.views.append_only import retraction
from laminae.views.operators import reads_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pyarrow as pa

    from laminae.catalog.model import Options, SinkRecord, SourceRecord, ViewRecord
    from laminae.sql import CreateSink

Relation = TypeVar("Relation", "SourceRecord", "ViewRecord")

APPEND, CHANGELOG, UPSERT = "append", "changelog", "upsert"
JSON, AVRO, DEBEZIUM_JSON = "json", "avro", "debezium-json"
FORMATS = {"kafka": (JSON, DEBEZIUM_JSON, AVRO)}
"""Formats that a connector can write; the first is the default. Other connectors check the format on delivery."""
REQUIRED: dict[tuple[str, str | None], tuple[str, ...]] = {
    ("postgres", None): ("url", "table"),
    ("kafka", None): ("topic", "kafka.bootstrap.servers"),
    ("kafka", AVRO): ("registry",),
}
"""Options that a connector requires, with a format where it matters."""
UNIQUE = ("postgres", "iceberg", "delta")
"""Connectors whose table holds one row per key and whose key cannot change."""
ROWS_ALONE = frozenset({("postgres", None), ("kafka", JSON), ("kafka", AVRO)})
"""Connectors (with a format where it matters) that hold rows, upserted by key or appended, but never changes."""


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
    names, key = _columns(statement.relation, sources, views)
    refuse_names(statement.name, dict(options)["connector"], format_of(options), names, key if mode == UPSERT else ())
    put = updates.PutSink(statement.name, statement.relation, options, SinkStatus.CREATING, now)
    notes = (f"delivers {statement.relation}", f"mode {mode}")
    return Plan("create sink", statement.name, Outcome.APPLY, (put,), notes=notes, rests_on_others=True)


def refuse_unwritable_names(
    before: tuple[Sequence[SourceRecord], Sequence[ViewRecord]],
    after: tuple[Sequence[SourceRecord], Sequence[ViewRecord]],
    sinks: Sequence[SinkRecord],
) -> None:
    """Raise SinkColumnRefused when a statement gives a column a name that a sink of its relation cannot write.

    Names that were unwritable before the statement are ignored: data introduced them, and the sink itself reports them.
    """
    for sink in sinks:
        options, key_counts = dict(sink.options), option(sink.options, "mode", SINK_OPTIONS) == UPSERT
        problems_by_schema = []
        for sources, views in (before, after):
            try:
                names, key = _columns(sink.relation, sources, views)
            except LaminaeError:
                # A view that cannot be planned does not run: it gives the sink no columns, and reports its own errors.
                names, key = (), ()
            problems = name_problems(options["connector"], format_of(sink.options), names, key if key_counts else ())
            problems_by_schema.append(dict(problems))
        for column, problem in problems_by_schema[1].items():
            if column not in problems_by_schema[0]:
                raise SinkColumnRefused(sink=sink.name, column=column, problem=problem)


def _columns(
    relation: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> tuple[tuple[str, ...] | pa.Schema, tuple[str, ...]]:
    """The columns of a relation (of a view only their names), and those that identify a row."""
    view, source = _named(relation, views), _named(relation, sources)
    if view is not None:
        plan = view_plan(view.name, view.query, sources, views)
        return tuple(plan.columns), plan.key or ()
    return ((), ()) if source is None else (source.schema, row_key(source) or ())


def refuse_lost_sinks(
    puts: Sequence[updates.PutView],
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    sinks: Sequence[SinkRecord],
) -> None:
    """Raise InvalidOption when a sink of a replaced view could not continue with its successor.

    Columns and types may change: a sink retracts the old rows as they were written and continues with the new ones.
    """
    by_name = {put.name.casefold(): put for put in puts}
    present = [_successor(view, by_name.get(view.name.casefold())) for view in views]
    refuse_unwritable_names((sources, views), (sources, present), sinks)
    for sink in sinks:
        if sink.relation.casefold() not in by_name:
            continue
        # An append sink may have no `mode` option in the catalog.
        mode = option(sink.options, "mode", SINK_OPTIONS) or APPEND
        advice = "Drop the sink first and create it again with another target, or create a view of another name."
        if mode == APPEND and sink.progress:
            problem = f"it cannot retract the rows that view {sink.relation} has delivered to it"
            raise _refusal(sink.name, APPEND, problem, advice)
        sink_mode(sink.name, sink.relation, (*sink.options, ("mode", mode)), sources, present)
        if mode == UPSERT and sink.progress and option(sink.options, "connector", SINK_OPTIONS) in UNIQUE:
            keys = [_key(sink.relation, sources, definitions) for definitions in (views, present)]
            if keys[0] != keys[1]:
                raise _refusal(sink.name, UPSERT, f"its table is keyed by {', '.join(keys[0])}", advice)


def _key(name: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> tuple[str, ...]:
    view = _named(name, views)
    return () if view is None else view_plan(view.name, view.query, sources, views).key or ()


def _successor(view: ViewRecord, put: updates.PutView | None) -> ViewRecord:
    return view if put is None else replace(view, query=put.query, emit=put.emit, written=put.written)


def sink_mode(
    name: str, relation: str, options: Options, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> str:
    """The `mode` option; by default append for an append-only source, changelog for other sources and for views.

    A target that cannot hold changes gets upserts if the relation has a key, and appends otherwise. Raises
    InvalidOption for a mode that the relation or the target does not support.
    """
    view, source = _named(relation, views), _named(relation, sources)
    mode, takes_changes = option(options, "mode", SINK_OPTIONS), _takes_changes(options)
    if not takes_changes:
        if mode == CHANGELOG:
            advice = f"Use mode = '{UPSERT}', or '{APPEND}' where rows are only added."
            raise _refusal(name, CHANGELOG, "such a sink stores rows, not changes", advice)
        mode = mode or (UPSERT if _has_key(view, source, sources, views) else APPEND)
    instead = f"Use mode = '{CHANGELOG}', or g" if takes_changes else "G"
    by_key = f"{instead}roup the rows in a view by the columns that identify a row."
    if mode == UPSERT and not _has_key(view, source, sources, views):
        if view is None and not _is_changed(source):
            advice = f"Use mode = '{APPEND}', or create a view that groups by the columns that identify a row."
            raise _refusal(name, UPSERT, f"source {relation} is append-only", advice)
        kind = "view" if view is not None else "source"
        raise _refusal(name, UPSERT, f"no columns of {kind} {relation} identify its rows", by_key)
    if mode == APPEND and source is not None and _is_changed(source):
        problem = f"source {source.name} retracts rows (changelog = '{spec_of(source).changelog}')"
        raise _refusal(name, APPEND, problem, by_key)
    if mode == APPEND and view is not None and (reason := view_retraction(view, sources, views)) is not None:
        advice = f"{by_key[:-1]}, or EMIT ON WINDOW CLOSE in a view over windows."
        raise _refusal(name, APPEND, f"view {view.name} retracts rows ({reason})", advice)
    return mode or (APPEND if view is None and not _is_changed(source) else CHANGELOG)


def format_of(options: Options) -> str | None:
    """The `format` option, else the first of the connector's formats, if it has any."""
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
    """Whether records of a source change existing rows: its sinks are then fed from the changelog of its table."""
    return source is not None and spec_of(source).changelog.retracts


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
    """Why a view retracts rows, considering the views below it; None if it never does."""
    plan = view_plan(view.name, view.query, sources, views)
    inputs = {read.relation.casefold(): _retracts(read.relation, sources, views) for read in reads_in(plan.root)}
    return retraction(plan.root, view.emit, plan.window is not None, inputs)


def _retracts(relation: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> bool:
    below = _named(relation, views)
    if below is not None:
        return view_retraction(below, sources, views) is not None
    source = _named(relation, sources)
    return source is None or spec_of(source).changelog.retracts


def _refuse_shared_directory(name: str, options: Options, sinks: Sequence[SinkRecord]) -> None:
    """Files are named after epochs: two sinks in one directory would overwrite each other."""
    for sink in sinks:
        if _directory(sink.options) == _directory(options) is not None:
            advice = "Use a separate directory for each sink: files are named after epochs."
            raise InvalidOption(option="path", owner=name, problem=f"sink {sink.name} writes there", advice=advice)
    directory = None if "path" not in dict(options) else find_home(dict(options)["path"]).directory
    if dict(options)["connector"] == "files" and directory is not None and any(directory.glob("epoch-*")):
        advice = "Use an empty directory, or remove the files of the other sink."
        raise InvalidOption(option="path", owner=name, problem="it already contains files of a sink", advice=advice)


def _directory(options: Options) -> str | None:
    """The identity of the directory a files sink writes to, independent of how its path is spelled."""
    values = dict(options)
    return find_home(values["path"]).identity if values.get("connector") == "files" and "path" in values else None


def _named(name: str, relations: Sequence[Relation]) -> Relation | None:
    return next((relation for relation in relations if relation.name.casefold() == name.casefold()), None)


def _refusal(sink: str, mode: str, problem: str, advice: str) -> InvalidOption:
    return InvalidOption(option="mode", owner=sink, problem=f"it is {mode}, and {problem}", advice=advice)
