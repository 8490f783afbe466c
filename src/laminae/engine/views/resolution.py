"""Resolves a view's query while the relations below it evolve: columns are found by id, named as at its definition.

A view stores the column ids and names of each relation that it reads, as of its definition. So a renamed column is
still found, and a new column with the old name is not confused with it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from laminae.catalog.model import EXACT_READING
from laminae.catalog.updates import PutView
from laminae.engine.changelogs import row_key
from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.views.order import LIVE, above
from laminae.errors import LaminaeError, QueryFailed
from laminae.schema.column import ID, columns_of
from laminae.schema.types import sql_type
from laminae.views.accumulation import parts_of
from laminae.views.dependencies import parse_query, relations_of
from laminae.views.emit import Kind, strategy_of
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import GroupBy, Linear, quoted, reads_in
from laminae.views.planner import RelationColumn, plan_view
from laminae.views.sql.sql_text import comparable, parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord, Written
    from laminae.schema.column import Columns
    from laminae.views.operators import Operator, Stateful, ViewPlan

    _Record = TypeVar("_Record", SourceRecord, ViewRecord)

# Parsing and planning a query takes 10 ms, and every epoch needs the plans of its views.
MOST_TEXTS = 256


def view_plan(
    name: str,
    query: str,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    written: Written | None = None,
    reading: int | None = None,
) -> ViewPlan:
    """The operators of a view over the current sources and other views.

    `written` are the stored column names, () for a query that is being defined now. None takes those of the view in
    `views` with this name and query.
    """
    own = _named(name.casefold(), views)
    own = own if own is not None and own.query == query else None
    if written is None:
        written = () if own is None else own.written
    if reading is None:
        reading = EXACT_READING if own is None else own.reading
    relations: dict[str, Sequence[str | RelationColumn]] = {}
    keys: dict[str, tuple[str, ...] | None] = {}
    names_when_defined = {relation.casefold(): dict(columns) for relation, columns in written}
    for relation in _names(query, reading):
        source = _named(relation, sources)
        if source is not None:
            relations[source.name] = _source_columns(source.schema, names_when_defined.get(relation))
            keys[source.name] = row_key(source)
        elif (below := _named(relation, _others(name, views))) is not None:
            inner = view_plan(below.name, below.query, sources, _others(name, views), below.written, below.reading)
            relations[below.name] = _view_columns(inner, names_when_defined.get(relation))
            keys[below.name] = inner.key
    columns = tuple((n, tuple(relation_columns)) for n, relation_columns in relations.items())
    return _planned(query, columns, tuple(keys.items()), reading)


def written_now(
    name: str,
    query: str,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    reading: int = EXACT_READING,
) -> Written:
    """The column names that a view defined now has to store: (relation, (column id, name)), nested columns included."""
    names_by_relation: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for relation in _names(query, reading):
        source = _named(relation, sources)
        if source is not None:
            names_by_relation.append((source.name, tuple(_ids(columns_of(source.schema)))))
        elif (below := _named(relation, _others(name, views))) is not None:
            inner = view_plan(below.name, below.query, sources, _others(name, views), below.written, below.reading)
            names_by_relation.append((below.name, tuple(zip(inner.ids, inner.columns, strict=True))))
    return tuple(names_by_relation)


def replacements(
    put: PutView,
    old: ViewRecord,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    has_refused: bool = False,
) -> tuple[PutView, ...]:
    """The view that replaces `old`, and a new definition of every view above it: their state depends on its rows.

    `has_refused`: an expression of the old view has failed on rows, which are missing in its state.
    """
    before = view_plan(old.name, old.query, sources, views, old.written, old.reading)
    after = view_plan(put.name, put.query, sources, views, put.written, put.reading)
    is_alike = (put.options, put.emit) == (old.options, old.emit) and strategy_of(put.emit).kind is Kind.CHANGES
    # When a windowed view has emitted rows cannot be derived from its state alone.
    is_kept = old.state == LIVE and not has_refused and is_alike and before.window is None and after.window is None
    # Without a full backfill, a new aggregate would start in the middle of existing groups.
    is_filled = option(put.options, "backfill", VIEW_OPTIONS) == "true" or not added_parts(before, after)
    puts = [replace(put, keeps_state=is_kept and is_filled and keeps_state(before, after))]
    present = [
        replace(old, query=put.query, written=put.written, reading=put.reading) if view.id == old.id else view
        for view in views
    ]
    for view in above(old.name, views):
        fresh = dict(written_now(view.name, view.query, sources, present, view.reading))
        known = tuple((name, columns) for name, columns in view.written if name.casefold() != old.name.casefold())
        written = (*known, *((name, columns) for name, columns in fresh.items() if name not in dict(known)))
        try:
            view_plan(view.name, view.query, sources, present, written, view.reading)
        except LaminaeError as problem:
            error = QueryFailed(problem=f"materialized view {view.name}, which reads {old.name}, would fail: {problem}")
            raise error from problem
        puts.append(
            PutView(
                name=view.name,
                query=view.query,
                emit=view.emit,
                options=view.options,
                state=put.state,
                reads=view.reads,
                created_at=put.created_at,
                replaces=view.id,
                written=written,
                reading=view.reading,
            )
        )
        present = [replace(other, written=written) if other.id == view.id else other for other in present]
    return tuple(puts)


def keeps_state(old: ViewPlan, new: ViewPlan) -> bool:
    """Whether a view with the new plan can continue with the state of one with the old plan.

    The old plan must have every stateful operator of the new one, over the same columns: the same text can have another
    meaning when a column was renamed and another took its name. A new aggregate is backfilled separately if no other
    operator keeps state that depends on it.
    """
    old_operators = {operator_id(operator): operator for operator in stateful(old.root)}
    new_operators = {operator_id(operator): operator for operator in stateful(new.root)}
    if not new_operators or not new_operators.keys() <= old_operators.keys() or not _mean_the_same(old.root, new.root):
        return False
    pairs = [(old_operators[name], operator) for name, operator in new_operators.items()]
    if any(was.columns != now.columns for was, now in pairs if {type(was), type(now)} != {GroupBy}):
        return False
    return len(pairs) == 1 or not any(_added(*pair) for pair in pairs)


def added_parts(old: ViewPlan, new: ViewPlan) -> frozenset[tuple[str, str]]:
    """The aggregate state that the new plan needs in addition to that of the old plan, see `parts_of`."""
    old_operators = {operator_id(operator): operator for operator in stateful(old.root)}
    new_operators = {operator_id(operator): operator for operator in stateful(new.root)}
    return frozenset(
        part
        for name, operator in new_operators.items()
        if name in old_operators
        for part in _added(old_operators[name], operator)
    )


def _added(kept: Stateful, wanted: Stateful) -> frozenset[tuple[str, str]]:
    if not isinstance(kept, GroupBy) or not isinstance(wanted, GroupBy):
        return frozenset()
    before, now = _arguments(kept), _arguments(wanted)
    same = [call for call in kept.calls if call.argument is None or before[call.argument] == now.get(call.argument)]
    return parts_of(wanted.calls) - parts_of(same)


def _arguments(group: GroupBy) -> dict[str, str]:
    """The expression of each argument, for comparison: in the first `reading` version, m.A and m.a had the same id."""
    assert isinstance(group.input, Linear)  # the planner guarantees it
    return {expression.name: comparable(parse_expression(expression.sql)) for expression in group.input.expressions}


def _mean_the_same(old: Operator, new: Operator) -> bool:
    first, second = _meanings(old), _meanings(new)
    pairs = [(old_sql, second.get(relation, {})) for relation, old_sql in first.items()]
    return all(new_sql[name] == sql for old_sql, new_sql in pairs for name, sql in old_sql.items() if name in new_sql)


def _meanings(root: Operator) -> dict[str, dict[str, str]]:
    """For each relation, the expression behind each name used in the query."""
    meanings: dict[str, dict[str, str]] = {}
    for read in reads_in(root):
        selected = read.expressions or tuple(map(quoted, read.columns))
        names = [column.casefold() for column in read.columns]
        meanings.setdefault(read.relation.casefold(), {}).update(zip(names, selected, strict=True))
    return meanings


@lru_cache(maxsize=MOST_TEXTS)
def _planned(
    query: str,
    relations: tuple[tuple[str, tuple[str | RelationColumn, ...]], ...],
    keys: tuple[tuple[str, tuple[str, ...] | None], ...],
    reading: int,
) -> ViewPlan:
    return plan_view(query, dict(relations), dict(keys), reading)


@lru_cache(maxsize=MOST_TEXTS)
def _names(query: str, reading: int) -> tuple[str, ...]:
    return tuple(relation.casefold() for _, relation in relations_of(parse_query(query, reading)))


def _named(name: str, records: Sequence[_Record]) -> _Record | None:
    return next((record for record in records if record.name.casefold() == name), None)


def _others(name: str, views: Sequence[ViewRecord]) -> list[ViewRecord]:
    return [view for view in views if view.name.casefold() != name.casefold()]


def _ids(columns: Columns) -> Iterator[tuple[str, str]]:
    for node in columns:
        if node.id is not None:
            yield str(node.id), node.name
        yield from _ids(node.children)


def _source_columns(schema: pa.Schema, then: Mapping[str, str] | None) -> list[RelationColumn]:
    columns = []
    for node in columns_of(schema):
        written = node.name if then is None else then.get(str(node.id))
        kind = sql_type(node.field.type if then is None else _as_written(node.field, then).type)
        is_same = kind == sql_type(node.field.type)
        sql = quoted(node.name) if is_same else f"CAST({quoted(node.name)} AS {kind})"
        columns.append(RelationColumn(node.name, str(node.id), written, sql))
    return columns


def _view_columns(plan: ViewPlan, then: Mapping[str, str] | None) -> list[RelationColumn]:
    pairs = zip(plan.columns, plan.ids, strict=True)
    return [RelationColumn(name, id_, name if then is None else then.get(id_), quoted(name)) for name, id_ in pairs]


def _as_written(field: pa.Field, then: Mapping[str, str]) -> pa.Field:
    """The field with the names that nested columns had when the view was defined."""
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [_as_written(kind.field(place), then) for place in range(kind.num_fields)]
        named = [child.with_name(then.get(_id(child), child.name)) for child in inner]
        return field.with_type(pa.struct(named))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_as_written(kind.value_field, then)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_as_written(kind.key_field, then), _as_written(kind.item_field, then)))
    return field


def _id(field: pa.Field) -> str:
    return str((field.metadata or {}).get(ID, b""), "ascii")
