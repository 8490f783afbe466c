"""Catalog content as Arrow tables: `laminar_catalog.*`, DESCRIBE and SHOW. The schemas below define their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.model import PendingState
from laminae.engine.definitions.schema_edits import path_of
from laminae.engine.options import SETTINGS, option
from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import in_order, inputs_of
from laminae.engine.views.resolution import view_plan
from laminae.errors import LaminaeError
from laminae.schema.column import columns_of, dotted
from laminae.schema.types import sql_type
from laminae.secrets import shown_value
from laminae.views.identity import stateful

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from laminae.catalog.model import SinkRecord, SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.schema.column import Columns

_STAMP = pa.timestamp("us", "UTC")
_TEXT, _LONG, _FLAG = pa.string(), pa.int64(), pa.bool_()

SCHEMA_HISTORY = pa.schema(
    [
        ("source_name", _TEXT), ("version", _LONG), ("change_type", _TEXT), ("column_name", _TEXT),
        ("old_type", _TEXT), ("new_type", _TEXT), ("old_name", _TEXT), ("default", _TEXT), ("trigger", _TEXT),
        ("schema_id", _LONG), ("registry_version", _LONG), ("compatibility", _TEXT), ("forced", _FLAG),
        ("applied_at", _STAMP),
    ]
)  # fmt: skip
PENDING_CHANGES = pa.schema(
    [
        ("id", _LONG), ("source_name", _TEXT), ("base_version", _LONG), ("changes", _TEXT), ("reasons", _TEXT),
        ("trigger", _TEXT), ("schema_id", _LONG), ("registry_version", _LONG), ("state", _TEXT),
        ("created_at", _STAMP), ("resolved_at", _STAMP),
    ]
)  # fmt: skip
SOURCES = pa.schema(
    [
        ("name", _TEXT), ("connector", _TEXT), ("format", _TEXT), ("version", _LONG), ("columns", _LONG),
        ("compatibility", _TEXT), ("primary_key", _TEXT), ("watermark", _TEXT), ("created_at", _STAMP),
    ]
)  # fmt: skip
VIEWS = pa.schema(
    [
        ("name", _TEXT), ("state", _TEXT), ("emit", _TEXT), ("query", _TEXT), ("reads", _TEXT), ("problem", _TEXT),
        ("created_at", _STAMP),
    ]
)  # fmt: skip
SINKS = pa.schema(
    [
        ("name", _TEXT), ("relation", _TEXT), ("connector", _TEXT), ("format", _TEXT), ("state", _TEXT),
        ("progress", _LONG), ("problem", _TEXT), ("created_at", _STAMP),
    ]
)  # fmt: skip
ANOMALIES = pa.schema(
    [("relation", _TEXT), ("epoch", _LONG), ("negative_keys", _LONG), ("dropped_events", _LONG), ("note", _TEXT)]
)
NOT_COUNTED = "not counted: without state, deletes of rows that never arrived pass through"
SPARK_SETTING = "Spark setting fixed by the first run; every session runs this home with it"
SETTINGS_TABLE = pa.schema([("name", _TEXT), ("value", _TEXT), ("default", _TEXT), ("meaning", _TEXT)])
EPOCHS = pa.schema(
    [
        ("epoch", _LONG), ("source_name", _TEXT), ("batch_id", _LONG), ("version", _LONG), ("rows", _LONG),
        ("dead_letters", _LONG), ("start_offsets", _TEXT), ("end_offsets", _TEXT), ("committed_at", _STAMP),
    ]
)  # fmt: skip
SAVEPOINTS = pa.schema([("name", _TEXT), ("epoch", _LONG), ("created_at", _STAMP)])
DESCRIPTION = pa.schema([("name", _TEXT), ("type", _TEXT), ("nullable", _FLAG), ("default", _TEXT), ("detail", _TEXT)])


def table_of(schema: pa.Schema, rows: Iterable[Sequence[object]]) -> pa.Table:
    """Rows in the order of the schema's columns, as an Arrow table."""
    listed = list(rows)
    columns = list(zip(*listed, strict=True)) if listed else [()] * len(schema)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def schema_history(catalog: Catalog) -> pa.Table:
    return table_of(SCHEMA_HISTORY, catalog.history())


def pending_changes(catalog: Catalog) -> pa.Table:
    """Changes that wait for confirmation; resolved ones are not listed."""
    return table_of(
        PENDING_CHANGES,
        (
            (
                p.id, p.source_name, p.base_version, p.summary, p.reasons, p.trigger, p.schema_id,
                p.registry_version, p.state.value, p.created_at, p.resolved_at,
            )
            for p in catalog.pending()
            if p.state is PendingState.PENDING
        ),
    )  # fmt: skip


def sources(catalog: Catalog) -> pa.Table:
    return table_of(SOURCES, map(_source_row, catalog.sources()))


def views(catalog: Catalog) -> pa.Table:
    return table_of(VIEWS, map(_view_row, catalog.views()))


def sinks(catalog: Catalog) -> pa.Table:
    return table_of(SINKS, map(_sink_row, catalog.sinks()))


def epochs(catalog: Catalog) -> pa.Table:
    """Every committed epoch of the live sources, in the order of their numbers."""
    rows = (
        (e.epoch, s.name, e.batch_id, e.version, e.rows, e.dead_letters, e.start_offsets, e.end_offsets, e.committed_at)
        for s in catalog.sources()
        for e in catalog.epochs(s.id)
    )
    return table_of(EPOCHS, sorted(rows))


def settings(catalog: Catalog) -> pa.Table:
    """Every setting with its effective value."""
    values = catalog.settings()
    rows = [(name, values.get(name, row.default), row.default, row.meaning) for name, row in SETTINGS.items()]
    in_force = ((name, value, None, SPARK_SETTING) for name, value in values.items() if name.startswith("spark."))
    return table_of(SETTINGS_TABLE, [*rows, *in_force])


def savepoints(catalog: Catalog) -> pa.Table:
    return table_of(
        SAVEPOINTS, ((savepoint.name, savepoint.epoch, savepoint.created_at) for savepoint in catalog.savepoints())
    )


def anomalies(catalog: Catalog) -> pa.Table:
    """Epochs in which keys reached a negative multiplicity (or left it: a negative count) or old events were dropped.

    A row without an epoch is a relation that cannot be checked: it forwards retractions and keeps no state.
    """
    sources_and_views = {source.name: source.id for source in catalog.sources()}
    sources_and_views |= {view.name: view.id for view in catalog.views()}
    counted = [
        (name, advance.epoch, advance.anomalies, advance.dropped, None)
        for name, owner in sorted(sources_and_views.items())
        for advance in catalog.advances(owner)
        if advance.anomalies or advance.dropped
    ]
    unchecked = [(name, None, None, None, NOT_COUNTED) for name in unchecked_relations(catalog)]
    return table_of(ANOMALIES, sorted([*counted, *unchecked], key=lambda row: (row[0], row[1] or 0)))


def unchecked_relations(catalog: Catalog) -> list[str]:
    """Retract sources, and stateless views over them: they forward even a delete of a row that never existed."""
    sources, views = catalog.sources(), catalog.views()
    unchecked = {source.name.casefold(): source.name for source in sources if spec_of(source).is_retract}
    for view in in_order(views):
        if inputs_of(view).isdisjoint(unchecked):
            continue
        try:
            plan = view_plan(view.name, view.query, sources, views, view.written, view.reading)
        except LaminaeError:
            # A view that can no longer be planned has failed and emits nothing.
            continue
        if not stateful(plan.root):
            unchecked[view.name.casefold()] = view.name
    return sorted(unchecked.values())


RELATIONS: dict[str, Callable[[Catalog], pa.Table]] = {
    "anomalies": anomalies,
    "schema_history": schema_history,
    "pending_changes": pending_changes,
    "sources": sources,
    "views": views,
    "sinks": sinks,
    "epochs": epochs,
    "savepoints": savepoints,
    "settings": settings,
}


def describe_source(source: SourceRecord) -> pa.Table:
    """Columns first, nested ones indented by path, then the facts about the source as rows marked with `#`."""
    return table_of(DESCRIPTION, [*_columns(columns_of(source.schema), ()), *_facts(source)])


def _columns(columns: Columns, parent: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    for node in columns:
        path = (*parent, node.name)
        detail = "" if node.id is None else f"id {node.id}"
        if node.initial_default != node.default:
            detail += f"; records before it have {node.initial_default or 'NULL'}"
        yield dotted(path), sql_type(node.type), node.nullable, node.default, detail
        yield from _columns(node.children, path)


def _facts(source: SourceRecord) -> Iterator[tuple[object, ...]]:
    facts = {
        "# version": str(source.version),
        "# compatibility": f"{spec_of(source).compatibility} ({spec_of(source).rules} rules)",
        "# primary key": _key(source) or "",
        "# watermark": _watermark(source) or "",
        "# policy": ", ".join(f"{name} = {option(source.options, name)}" for name in POLICIES),
        "# options": ", ".join(f"{name} = {shown_value(name, value)}" for name, value in source.options),
        "# last verdict": source.last_verdict or "",
    }
    for name, detail in facts.items():
        if detail:
            yield name, None, None, None, detail


POLICIES = ("evolve", "on_rejected", "on_error")


def _key(source: SourceRecord) -> str | None:
    paths = (path_of(source.schema, column_id) for column_id in source.primary_key)
    return ", ".join(dotted(path) for path in paths if path) or None


def _watermark(source: SourceRecord) -> str | None:
    if source.watermark is None:
        return None
    path = path_of(source.schema, source.watermark.column_id)
    return f"{dotted(path or ())} - {source.watermark.delay_us / 1e6:g} s"


def _source_row(source: SourceRecord) -> tuple[object, ...]:
    return (
        source.name,
        spec_of(source).connector.name,
        dict(source.options).get("format"),
        source.version,
        len(source.schema),
        str(spec_of(source).compatibility),
        _key(source),
        _watermark(source),
        source.created_at,
    )


def _view_row(view: ViewRecord) -> tuple[object, ...]:
    reads = ", ".join(relation for relation, _ in view.reads)
    return view.name, view.state, view.emit, view.query, reads, view.problem, view.created_at


def _sink_row(sink: SinkRecord) -> tuple[object, ...]:
    options = dict(sink.options)
    return (
        sink.name,
        sink.relation,
        options.get("connector"),
        options.get("format"),
        sink.state,
        sink.progress,
        sink.problem,
        sink.created_at,
    )
