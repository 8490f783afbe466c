"""What a view's text means while the relations below it evolve: columns known by ids, called as when it was written.

A view remembers, for each relation that it reads, the ids and names of its columns then. So a renamed column is found
again, and a new one that takes the old name is not mistaken for it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from laminae.catalog.updates import PutView
from laminae.engine.changelogs import row_key
from laminae.engine.options import VIEW_OPTIONS, option
from laminae.engine.view_order import LIVE, above
from laminae.errors import LaminaeError, QueryFailed
from laminae.schema.column import ID, columns_of
from laminae.schema.types import sql_type
from laminae.views.accumulation import parts_of
from laminae.views.dependencies import parse_query, relations_of
from laminae.views.emission import Kind, strategy_of
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import Distinct, quoted, reads_in
from laminae.views.planner import RelationColumn, plan_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord, Written
    from laminae.schema.column import Columns
    from laminae.views.operators import GroupBy, Operator, ViewPlan

    _Record = TypeVar("_Record", SourceRecord, ViewRecord)

# To parse and plan a text takes 10 ms, and every epoch asks for the plans of its views.
MOST_TEXTS = 256


def view_plan(
    name: str,
    query: str,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    written: Written | None = None,
) -> ViewPlan:
    """The operators of a view over the sources and the other views as they are now.

    `written` is what the view remembers, () for a text that is written now. None: what the view of this name and text
    among `views` does.
    """
    if written is None:
        own = _named(name.casefold(), views)
        written = own.written if own is not None and own.query == query else ()
    relations: dict[str, Sequence[str | RelationColumn]] = {}
    keys: dict[str, tuple[str, ...] | None] = {}
    then = {relation.casefold(): dict(columns) for relation, columns in written}
    for relation in _names(query):
        source = _named(relation, sources)
        if source is not None:
            relations[source.name] = _source_columns(source.schema, then.get(relation))
            keys[source.name] = row_key(source)
        elif (below := _named(relation, _others(name, views))) is not None:
            inner = view_plan(below.name, below.query, sources, _others(name, views), below.written)
            relations[below.name] = _view_columns(inner, then.get(relation))
            keys[below.name] = inner.key
    return _planned(query, tuple((n, tuple(found)) for n, found in relations.items()), tuple(keys.items()))


def written_now(name: str, query: str, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> Written:
    """What a view that is written now has to remember: (relation, (column id, name)), nested columns too."""
    found: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for relation in _names(query):
        source = _named(relation, sources)
        if source is not None:
            found.append((source.name, tuple(_ids(columns_of(source.schema)))))
        elif (below := _named(relation, _others(name, views))) is not None:
            inner = view_plan(below.name, below.query, sources, _others(name, views), below.written)
            found.append((below.name, tuple(zip(inner.ids, inner.columns, strict=True))))
    return tuple(found)


def replacements(
    put: PutView,
    old: ViewRecord,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    has_refused: bool = False,
) -> tuple[PutView, ...]:
    """The view that takes the place of `old`, and anew every view above it: what these keep was made of its rows.

    `has_refused`: an expression of the old one has failed on rows, which its state lacks.
    """
    before = view_plan(old.name, old.query, sources, views, old.written)
    after = view_plan(put.name, put.query, sources, views, put.written)
    is_alike = (put.options, put.emit) == (old.options, old.emit) and strategy_of(put.emit).kind is Kind.CHANGES
    # A window has emitted rows at times that its state alone does not tell.
    is_kept = old.state == LIVE and not has_refused and is_alike and before.window is None and after.window is None
    # Without a backfill, what is new would begin in the middle of groups that are there.
    is_filled = option(put.options, "backfill", VIEW_OPTIONS) != "false" or not added_parts(before, after)
    found = [replace(put, keeps_state=is_kept and is_filled and keeps_state(before, after))]
    present = [replace(old, query=put.query, written=put.written) if view.id == old.id else view for view in views]
    for view in above(old.name, views):
        fresh = dict(written_now(view.name, view.query, sources, present))
        known = tuple((name, columns) for name, columns in view.written if name.casefold() != old.name.casefold())
        written = (*known, *((name, each) for name, each in fresh.items() if name not in dict(known)))
        try:
            view_plan(view.name, view.query, sources, present, written)
        except LaminaeError as problem:
            told = QueryFailed(problem=f"materialized view {view.name}, which reads {old.name}, would fail: {problem}")
            raise told from problem
        found.append(
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
            )
        )
        present = [replace(each, written=written) if each.id == view.id else each for each in present]
    return tuple(found)


def keeps_state(old: ViewPlan, new: ViewPlan) -> bool:
    """Whether a view with the new plan can go on with the state of one with the old.

    Every operator of the new one must be there, over the same columns: a text that is the same does not mean the same
    when a column was renamed and another has its name. An aggregate that is not there is filled by itself where nothing
    else keeps state of what it comes to.
    """
    kept = {operator_id(each): each for each in stateful(old.root)}
    wanted = {operator_id(each): each for each in stateful(new.root)}
    if not wanted or not wanted.keys() <= kept.keys() or not _mean_the_same(old.root, new.root):
        return False
    pairs = [(kept[name], each) for name, each in wanted.items()]
    if any(was.columns != now.columns for was, now in pairs if Distinct in (type(was), type(now))):
        return False
    return len(pairs) == 1 or not any(_added(*pair) for pair in pairs)


def added_parts(old: ViewPlan, new: ViewPlan) -> frozenset[tuple[str, str]]:
    """What a view with the new plan keeps for its aggregates beyond one with the old, see `parts_of`."""
    kept = {operator_id(each): each for each in stateful(old.root)}
    wanted = {operator_id(each): each for each in stateful(new.root)}
    return frozenset(part for name, each in wanted.items() if name in kept for part in _added(kept[name], each))


def _added(kept: GroupBy | Distinct, wanted: GroupBy | Distinct) -> frozenset[tuple[str, str]]:
    if isinstance(kept, Distinct) or isinstance(wanted, Distinct):
        return frozenset()
    return parts_of(wanted.calls) - parts_of(kept.calls)


def _mean_the_same(old: Operator, new: Operator) -> bool:
    first, second = _meanings(old), _meanings(new)
    pairs = [(found, second.get(relation, {})) for relation, found in first.items()]
    return all(there[name] == sql for found, there in pairs for name, sql in found.items() if name in there)


def _meanings(root: Operator) -> dict[str, dict[str, str]]:
    """For each relation, what each name of the text is computed from."""
    found: dict[str, dict[str, str]] = {}
    for read in reads_in(root):
        selected = read.expressions or tuple(map(quoted, read.columns))
        names = [column.casefold() for column in read.columns]
        found.setdefault(read.relation.casefold(), {}).update(zip(names, selected, strict=True))
    return found


@lru_cache(maxsize=MOST_TEXTS)
def _planned(
    query: str,
    relations: tuple[tuple[str, tuple[str | RelationColumn, ...]], ...],
    keys: tuple[tuple[str, tuple[str, ...] | None], ...],
) -> ViewPlan:
    return plan_view(query, dict(relations), dict(keys))


@lru_cache(maxsize=MOST_TEXTS)
def _names(query: str) -> tuple[str, ...]:
    return tuple(relation.casefold() for _, relation in relations_of(parse_query(query)))


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
    found = []
    for node in columns_of(schema):
        written = node.name if then is None else then.get(str(node.id))
        kind = sql_type(node.field.type if then is None else _as_written(node.field, then).type)
        is_same = kind == sql_type(node.field.type)
        sql = quoted(node.name) if is_same else f"CAST({quoted(node.name)} AS {kind})"
        found.append(RelationColumn(node.name, str(node.id), written, sql))
    return found


def _view_columns(plan: ViewPlan, then: Mapping[str, str] | None) -> list[RelationColumn]:
    pairs = zip(plan.columns, plan.ids, strict=True)
    return [RelationColumn(name, id_, name if then is None else then.get(id_), quoted(name)) for name, id_ in pairs]


def _as_written(field: pa.Field, then: Mapping[str, str]) -> pa.Field:
    """The field with the names that nested columns had."""
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [_as_written(kind.field(place), then) for place in range(kind.num_fields)]
        named = [each.with_name(then.get(_id(each), each.name)) for each in inner]
        return field.with_type(pa.struct(named))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_as_written(kind.value_field, then)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_as_written(kind.key_field, then), _as_written(kind.item_field, then)))
    return field


def _id(field: pa.Field) -> str:
    return str((field.metadata or {}).get(ID, b""), "ascii")
