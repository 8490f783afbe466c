"""From a SELECT to the operator tree of a view. A pure function of the query text and the columns of each relation.

Spark evaluates every expression; the planner only splits expressions that contain an aggregate. A name in the text
means the column that had this name when the view was written, whatever it is called today. `*` means the current
columns of the relation under their current names, so a plan that is built again for each epoch follows its source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed, UnknownColumn
from laminae.schema.identifiers import unquoted
from laminae.trace.spec import HASH, WEIGHT
from laminae.views.dependencies import EXACT, parse_query
from laminae.views.from_scope import SelectItem, resolve, select_items, variables_around
from laminae.views.grouping import Grouping, has_aggregate, name_of
from laminae.views.identity import operator_id, stateful
from laminae.views.joins import PlannedRelation, from_scope, has_joins
from laminae.views.kernels.group_by.aggregates import ROWS
from laminae.views.operators import ADDED, Distinct, EventWindow, GroupBy, Join, Linear, Named, Read, UnionAll, ViewPlan
from laminae.views.operators import quoted as quoted
from laminae.views.sql.nesting import refuse_deep_nesting
from laminae.views.sql.sql_text import refuse_changed, sql_of
from laminae.views.unsupported import (
    NESTED_EXCEPT,
    STRUCT_STAR,
    WINDOW_OF_JOIN,
    refuse_unsupported,
    unsupported,
)
from laminae.views.windows import as_windows, is_window

RUN_COLUMNS = (HASH, WEIGHT, ROWS)

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from laminae.views.operators import Operator


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation: its current name, a stable id, and its name when the view was written.

    `written` is None for a column that was added later: no name in the text can refer to it, only a `*`. `sql` computes
    the column as it was when the view was written from the relation as it is now.
    """

    name: str
    id: str
    written: str | None
    sql: str

    @property
    def inner(self) -> str:
        """The name that the operators use, which is stable for the lifetime of the view."""
        return f"{ADDED}{self.id}" if self.written is None else self.written


def unchanged(name: str) -> RelationColumn:
    return RelationColumn(name, name, name, quoted(name))


@dataclass(frozen=True, slots=True)
class _Planned:
    """A query planned so far, with what is known about its rows.

    `shown` maps the operators' column names to the current names, for columns that come from a `*`; `added` are the
    ones that did not exist when the view was written.
    """

    root: Operator
    key: tuple[str, ...] | None = None
    window: EventWindow | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Scope:
    """Resolves names in FROM: common table expressions first, then the relations of the home."""

    relations: Mapping[str, Sequence[str | RelationColumn]]
    keys: Mapping[str, tuple[str, ...] | None]
    known: Mapping[str, _Planned] = field(default_factory=dict)
    reading: int = EXACT

    def find(self, name: str) -> _Planned:
        if (common := self.known.get(name.casefold())) is not None:
            return common
        for relation, columns in self.relations.items():
            if relation.casefold() == name.casefold():
                return _read(relation, columns, self.keys.get(relation))
        raise QueryFailed(problem=f"there is no source or materialized view {name}")

    def with_common(self, query: exp.Query) -> _Scope:
        scope = self
        for common in query.ctes:
            planned = _named_columns(_plan(common.this, scope), common.args.get("alias"))
            scope = replace(scope, known={**scope.known, common.alias.casefold(): planned})
        return scope


def plan_view(
    query: str,
    relations: Mapping[str, Sequence[str | RelationColumn]],
    keys: Mapping[str, tuple[str, ...] | None] | None = None,
    reading: int = EXACT,
) -> ViewPlan:
    """The plan of a view over relations with these columns and, where they have one, these keys (by current names)."""
    with refuse_deep_nesting():
        tree = parse_query(query, reading)
        refuse_unsupported(tree, reading)
        if reading == EXACT:
            refuse_changed(query, tree)
        return _plan_tree(tree, _Scope(relations, keys or {}, reading=reading))


def _plan_tree(tree: exp.Query, scope: _Scope) -> ViewPlan:
    planned = _plan(as_windows(tree), scope)
    ids = planned.root.columns
    _refuse_twice(ids)
    shown = tuple(planned.shown.get(name, name) for name in ids)
    _refuse_twice(shown)
    key = None if planned.key is None else tuple(planned.shown.get(name, name) for name in planned.key)
    _refuse_same_state(planned.root)
    _refuse_names_of_runs(planned.root)
    return ViewPlan(_shown(planned.root, shown), key, planned.window, ids)


def _refuse_twice(columns: Sequence[str]) -> None:
    names = [name.casefold() for name in columns]
    for name in columns:
        if names.count(name.casefold()) > 1:
            raise QueryFailed(problem=f"two columns of the view are named {name}: rename one with AS")


def _refuse_same_state(root: Operator) -> None:
    """State is identified by the grouped input and the keys, not the aggregates: those can be added and removed."""
    known: set[str] = set()
    for operator in stateful(root):
        if operator_id(operator) in known:
            if isinstance(operator, Join):
                problem = "two parts of the view join the same rows on the same keys"
            else:
                keys = operator.keys if isinstance(operator, GroupBy) else operator.columns
                problem = f"two parts of the view group the same rows by the same keys ({', '.join(keys)})"
            raise QueryFailed(problem=f"{problem}: compute both in one, or create a view for each")
        known.add(operator_id(operator))


def _refuse_names_of_runs(root: Operator) -> None:
    """The state of DISTINCT stores the view's columns under their names, next to the columns that every run has."""
    for operator in stateful(root):
        columns = operator.columns if isinstance(operator, Distinct) else ()
        if name := next((name for name in columns if name.casefold() in RUN_COLUMNS), None):
            raise QueryFailed(
                problem=f"DISTINCT and UNION have a column {name} of their own: name it otherwise with AS"
            )


def _shown(root: Operator, names: tuple[str, ...]) -> Operator:
    """The columns under their current names. No stateful operator may consume the result."""
    if isinstance(root, Linear):
        pairs = zip(root.expressions, names, strict=True)
        return replace(root, expressions=tuple(replace(expression, name=name) for expression, name in pairs))
    return _renamed(root, names)


def _read(relation: str, columns: Sequence[str | RelationColumn], key: tuple[str, ...] | None) -> _Planned:
    relation_columns = [unchanged(column) if isinstance(column, str) else column for column in columns]
    inner = {column.name.casefold(): column.inner for column in relation_columns}
    names = tuple(column.inner for column in relation_columns)
    is_plain = all(column.sql == quoted(column.inner) for column in relation_columns)
    read = Read(relation, names, () if is_plain else tuple(column.sql for column in relation_columns))
    held = None if key is None else tuple(inner[part.casefold()] for part in key)
    shown = {column.inner: column.name for column in relation_columns if column.inner != column.name}
    added = frozenset(column.inner for column in relation_columns if column.written is None)
    return _Planned(read, held, shown=shown, added=added)


def _plan(query: exp.Expr, scope: _Scope) -> _Planned:
    match query:
        case exp.Subquery():
            return _named_columns(_plan(query.this, scope.with_common(query)), query.args.get("alias"))
        case exp.Union():
            return _union(query, scope.with_common(query))
        case exp.Select():
            return _select(query, scope.with_common(query))
    raise QueryFailed(problem=f"{sql_of(query)} is not a SELECT")


def _union(query: exp.Union, scope: _Scope) -> _Planned:
    left, right = (_plan(side, scope) for side in (query.this, query.expression))
    first, second = left.root.columns, right.root.columns
    if len(first) != len(second):
        raise QueryFailed(problem=f"UNION of {len(first)} and {len(second)} columns")
    root: Operator = UnionAll((*_flat(left.root), _renamed(right.root, first, right.added)))
    if query.args.get("distinct"):
        return _Planned(Distinct(root), root.columns, shown=left.shown, added=left.added)
    return _Planned(root, shown=left.shown, added=left.added)


def _flat(side: Operator) -> tuple[Operator, ...]:
    return side.inputs if isinstance(side, UnionAll) else (side,)


def _select(query: exp.Select, scope: _Scope) -> _Planned:
    if has_joins(query):
        source, query, listed = _over_joins(query, scope)
    else:
        source = _source(query, scope)
        alias = _alias(query)
        query = query.copy()
        for part in ("with_", "with", "from_", "from"):
            query.set(part, None)
        for node in list(query.find_all(exp.Column)):
            _unqualify(node, alias, [name for name in source.root.columns if name not in source.added])
        listed = _items(query, source, alias)
    return _projected(query, source, listed, scope.reading)


def _over_joins(query: exp.Select, scope: _Scope) -> tuple[_Planned, exp.Select, list[SelectItem]]:
    """The joined relations, and the SELECT and its list with every column by its inner name."""

    def relation(node: exp.Expr) -> PlannedRelation:
        planned = _relation(node, scope)
        return PlannedRelation(node.alias_or_name, planned.root, planned.key, dict(planned.shown), planned.added)

    joined = from_scope(query, relation)
    listed = select_items(query, joined)
    query = query.copy()
    for part in ("with_", "with", "from_", "from", "joins"):
        query.set(part, None)
    aliases = [item.alias for item in query.expressions if item.alias]
    query.set("expressions", [])
    resolve(query, joined, aliases)
    group = query.args.get("group")
    if group is not None and any(map(is_window, group.expressions)):
        raise unsupported(group, WINDOW_OF_JOIN)
    return _Planned(joined.root, joined.key), query, listed


def _projected(query: exp.Select, source: _Planned, listed: Sequence[SelectItem], reading: int) -> _Planned:
    """WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT over the rows of FROM."""
    items = [item.node for item in listed]
    shown = {name_of(item.node): item.shown for item in listed if item.shown is not None}
    added = frozenset(name_of(item.node) for item in listed if item.is_added)
    where = query.args.get("where")
    condition = None if where is None else sql_of(where.this)
    having = query.args.get("having")
    if query.args.get("group") is not None or having is not None or any(has_aggregate(item) for item in items):
        grouping = Grouping.of(query, items, source.root.columns, reading)
        planned = _Planned(*grouping.planned(source.root, condition), shown=shown, added=added)
    else:
        expressions = tuple(Named(name_of(item.node), _sql(item.node), item.is_added) for item in listed)
        key = _kept_key(source.key, expressions)
        planned = _Planned(Linear(source.root, expressions, condition), key, shown=shown, added=added)
    if query.args.get("distinct"):
        return _Planned(Distinct(planned.root), planned.root.columns, planned.window, shown, added)
    return planned


def _source(query: exp.Select, scope: _Scope) -> _Planned:
    origin = query.args.get("from_") or query.args.get("from")
    if origin is None:
        raise QueryFailed(problem="a materialized view reads a source or another view: FROM is missing")
    return _relation(origin.this, scope)


def _relation(table: exp.Expr, scope: _Scope) -> _Planned:
    if isinstance(table, exp.Subquery):
        return _plan(table, scope)
    if not isinstance(table, exp.Table) or not table.name:
        raise QueryFailed(problem=f"{sql_of(table)} is neither a source nor a materialized view")
    return _named_columns(scope.find(table.name), table.args.get("alias"))


def _alias(query: exp.Select) -> str:
    origin = query.args.get("from_") or query.args.get("from")
    return str(origin.this.alias_or_name) if origin is not None else ""


def _named_columns(planned: _Planned, alias: exp.Expr | None) -> _Planned:
    """Apply the column aliases of `AS t (a, b)`."""
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return planned
    if len(names) != len(planned.root.columns):
        raise QueryFailed(problem=f"{len(names)} names for {len(planned.root.columns)} columns")
    return _Planned(_renamed(planned.root, tuple(names)))


def _renamed(operator: Operator, names: tuple[str, ...], added: Container[str] = ()) -> Operator:
    if operator.columns == names:
        return operator
    pairs = zip(names, operator.columns, strict=True)
    return Linear(operator, tuple(Named(new, quoted(old), old in added) for new, old in pairs))


def _unqualify(node: exp.Column, alias: str, columns: Sequence[str]) -> None:
    """Remove the relation's name from a column reference, and check that the column exists."""
    parts = node.parts
    variables = variables_around(node)
    if parts[0].name.casefold() in variables:
        return
    if len(parts) > 1 and parts[0].name.casefold() == alias.casefold() and alias:
        node.set(("this", "table", "db", "catalog")[len(parts) - 1], None)
        parts = parts[1:]
    if isinstance(parts[0], exp.Star):
        return
    first = parts[0].name
    if first.casefold() in variables:
        problem = f"{alias}.{first} is used where {first} is a lambda variable: rename the variable"
        raise QueryFailed(problem=problem)
    known = [*columns, *_aliases_around(node), "window"]
    if first.casefold() not in {name.casefold() for name in known}:
        raise _unknown(first, alias, columns)


def _unknown(name: str, relation: str, columns: Sequence[str]) -> UnknownColumn:
    close = get_close_matches(name, columns, n=1)
    suggestion = f" (did you mean {close[0]}?)" if close else ""
    return UnknownColumn(source=relation or "the relation", path=name, suggestion=suggestion)


def _aliases_around(node: exp.Expr) -> list[str]:
    """The aliases of the SELECT list that encloses a node."""
    select = node.find_ancestor(exp.Select)
    return [] if select is None else [item.alias for item in select.expressions if item.alias]


def _items(query: exp.Select, source: _Planned, relation: str) -> list[SelectItem]:
    """The SELECT list with every `*` expanded."""
    items: list[SelectItem] = []
    for item in query.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            if isinstance(item, exp.Column) and len(item.parts) > 1:
                raise unsupported(item, STRUCT_STAR)
            left_out = _left_out(star, source, relation)
            starred = [_starred(name, source) for name in source.root.columns if name.casefold() not in left_out]
            if not starred:
                raise QueryFailed(problem=f"{sql_of(star)} excludes every column of {relation or 'the relation'}")
            items += starred
        else:
            items.append(SelectItem(item))
    return items


def _left_out(star: exp.Star, source: _Planned, relation: str) -> set[str]:
    """The columns in EXCEPT, in lower case. Only columns of the relation are accepted."""
    columns = [name for name in source.root.columns if name not in source.added]
    known = {name.casefold() for name in columns}
    names: set[str] = set()
    for node in star.args.get("except_") or star.args.get("except") or ():
        if not isinstance(node, exp.Identifier) and (not isinstance(node, exp.Column) or len(node.parts) > 1):
            raise unsupported(node, NESTED_EXCEPT)
        if node.name.casefold() not in known:
            raise _unknown(node.name, relation, columns)
        names.add(node.name.casefold())
    return names


def _starred(name: str, source: _Planned) -> SelectItem:
    node = exp.column(exp.to_identifier(name, quoted=True))
    return SelectItem(node, source.shown.get(name), name in source.added)


def _kept_key(key: tuple[str, ...] | None, expressions: Sequence[Named]) -> tuple[str, ...] | None:
    """The key under its new names, if the projection keeps every key column unchanged."""
    if key is None:
        return None
    plain = ((unquoted(expression.sql), expression.name) for expression in expressions)
    names = {column.casefold(): name for column, name in plain if column is not None}
    new_key = [names.get(part.casefold()) for part in key]
    return None if None in new_key else tuple(name for name in new_key if name is not None)


def _sql(item: exp.Expr) -> str:
    return sql_of(item.this if isinstance(item, exp.Alias) else item)
