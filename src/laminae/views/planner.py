"""From a SELECT to the operator tree of a view. Pure: it is told which columns each relation has, and asks nobody else.

Spark evaluates every expression; here they are only taken apart where an aggregate stands inside one. Names in the text
mean what they meant when the view was written, whatever the columns are called today. `*` is what the relation has
now, under the names it has now, so a plan that is made afresh for each epoch follows its source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed, UnknownColumn
from laminae.views.dependencies import parse_query
from laminae.views.grouping import Grouping, has_aggregate, name_of
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import ADDED, Distinct, EventWindow, GroupBy, Linear, Named, Read, UnionAll, ViewPlan
from laminae.views.operators import quoted as quoted
from laminae.views.refused import refuse_unsupported
from laminae.views.windows import as_windows

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from laminae.views.operators import Operator


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation: its name now, an id that stays, and what it was called when the view was written.

    `written` is None for a column that came later: no text can mean it, only a `*`. `sql` computes the column as it was
    written from the relation as it is.
    """

    name: str
    id: str
    written: str | None
    sql: str

    @property
    def inner(self) -> str:
        """What the operators call it: the same for the life of the view."""
        return f"{ADDED}{self.id}" if self.written is None else self.written


def unchanged(name: str) -> RelationColumn:
    return RelationColumn(name, name, name, quoted(name))


@dataclass(frozen=True, slots=True)
class _Planned:
    """A query planned so far, with what is known of its rows.

    `shown` are the names of its columns today, where a `*` has passed them on, by the names that the operators use;
    `added` are those of them that were not there when the view was written.
    """

    root: Operator
    key: tuple[str, ...] | None = None
    window: EventWindow | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Item:
    """One column of a SELECT list; `shown` is its name today if a `*` stands for it."""

    node: exp.Expr
    shown: str | None = None
    is_added: bool = False


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a name in FROM stands for: common table expressions first, then the relations of the home."""

    relations: Mapping[str, Sequence[str | RelationColumn]]
    keys: Mapping[str, tuple[str, ...] | None]
    known: Mapping[str, _Planned] = field(default_factory=dict)

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
) -> ViewPlan:
    """The plan of a view over relations with these columns, and these keys (by their names now) where they have one."""
    tree = as_windows(parse_query(query))
    refuse_unsupported(tree)
    planned = _plan(tree, _Scope(relations, keys or {}))
    ids = planned.root.columns
    _refuse_twice(ids)
    shown = tuple(planned.shown.get(name, name) for name in ids)
    _refuse_twice(shown)
    key = None if planned.key is None else tuple(planned.shown.get(name, name) for name in planned.key)
    _refuse_same_state(planned.root)
    return ViewPlan(_shown(planned.root, shown), key, planned.window, ids)


def _refuse_twice(columns: Sequence[str]) -> None:
    names = [name.casefold() for name in columns]
    for name in columns:
        if names.count(name.casefold()) > 1:
            raise QueryFailed(problem=f"two columns of the view are called {name}: give one another name with AS")


def _refuse_same_state(root: Operator) -> None:
    """State is known by what is grouped and by which keys, so that aggregates can come and go."""
    known: set[str] = set()
    for operator in stateful(root):
        if operator_id(operator) in known:
            keys = operator.keys if isinstance(operator, GroupBy) else operator.columns
            problem = f"two parts of the view group the same rows by the same keys ({', '.join(keys)})"
            raise QueryFailed(problem=f"{problem}: compute both in one GROUP BY, or make a view of each")
        known.add(operator_id(operator))


def _shown(root: Operator, names: tuple[str, ...]) -> Operator:
    """The columns under the names that people see. Nothing that keeps state stands behind it."""
    if isinstance(root, Linear):
        pairs = zip(root.expressions, names, strict=True)
        return replace(root, expressions=tuple(replace(each, name=name) for each, name in pairs))
    return _renamed(root, names)


def _read(relation: str, columns: Sequence[str | RelationColumn], key: tuple[str, ...] | None) -> _Planned:
    found = [unchanged(column) if isinstance(column, str) else column for column in columns]
    inner = {column.name.casefold(): column.inner for column in found}
    names = tuple(column.inner for column in found)
    is_plain = all(column.sql == quoted(column.inner) for column in found)
    read = Read(relation, names, () if is_plain else tuple(column.sql for column in found))
    held = None if key is None else tuple(inner[part.casefold()] for part in key)
    shown = {column.inner: column.name for column in found if column.inner != column.name}
    added = frozenset(column.inner for column in found if column.written is None)
    return _Planned(read, held, shown=shown, added=added)


def _plan(query: exp.Expr, scope: _Scope) -> _Planned:
    match query:
        case exp.Subquery():
            return _named_columns(_plan(query.this, scope.with_common(query)), query.args.get("alias"))
        case exp.Union():
            return _union(query, scope.with_common(query))
        case exp.Select():
            return _select(query, scope.with_common(query))
    raise QueryFailed(problem=f"{query.sql(dialect='spark')} is not a SELECT")


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
    source = _source(query, scope)
    alias = _alias(query)
    query = query.copy()
    for part in ("with_", "with"):
        query.set(part, None)
    for node in list(query.find_all(exp.Column)):
        _unqualify(node, alias, [name for name in source.root.columns if name not in source.added])
    listed = _items(query, source)
    items = [each.node for each in listed]
    shown = {name_of(each.node): each.shown for each in listed if each.shown is not None}
    added = frozenset(name_of(each.node) for each in listed if each.is_added)
    where = query.args.get("where")
    condition = None if where is None else where.this.sql(dialect="spark")
    having = query.args.get("having")
    if query.args.get("group") is not None or having is not None or any(has_aggregate(item) for item in items):
        grouping = Grouping.of(query, items)
        planned = _Planned(*grouping.planned(source.root, condition), shown=shown, added=added)
    else:
        expressions = tuple(Named(name_of(each.node), _sql(each.node), each.is_added) for each in listed)
        key = _kept_key(source.key, expressions)
        planned = _Planned(Linear(source.root, expressions, condition), key, shown=shown, added=added)
    if query.args.get("distinct"):
        return _Planned(Distinct(planned.root), planned.root.columns, planned.window, shown, added)
    return planned


def _source(query: exp.Select, scope: _Scope) -> _Planned:
    origin = query.args.get("from_") or query.args.get("from")
    if origin is None:
        raise QueryFailed(problem="a materialized view reads a source or another view: FROM is missing")
    table = origin.this
    if isinstance(table, exp.Subquery):
        return _plan(table, scope)
    if not isinstance(table, exp.Table) or not table.name:
        raise QueryFailed(problem=f"{table.sql(dialect='spark')} is neither a source nor a materialized view")
    return _named_columns(scope.find(table.name), table.args.get("alias"))


def _alias(query: exp.Select) -> str:
    origin = query.args.get("from_") or query.args.get("from")
    return str(origin.this.alias_or_name) if origin is not None else ""


def _named_columns(planned: _Planned, alias: exp.Expr | None) -> _Planned:
    """`AS t (a, b)` gives the columns new names."""
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
    """Take the relation's name off a column, and check that the column is there."""
    parts = node.parts
    if len(parts) > 1 and parts[0].name.casefold() == alias.casefold() and alias:
        parts = parts[1:]
        for name, part in zip(("this", "table", "db", "catalog"), [*reversed(parts), *[None] * 3], strict=False):
            node.set(name, part.copy() if part is not None else None)
    if isinstance(parts[0], exp.Star):
        return
    first = parts[0].name
    known = [*columns, *_aliases_in(node)]
    if first.casefold() not in {name.casefold() for name in known}:
        close = get_close_matches(first, columns, n=1)
        suggestion = f" (did you mean {close[0]}?)" if close else ""
        raise UnknownColumn(source=alias or "the relation", path=first, suggestion=suggestion)


def _aliases_in(node: exp.Column) -> list[str]:
    """Names that an expression around the column brings along: lambda variables and the aliases of the SELECT list."""
    found: list[str] = []
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Lambda):
            found += [variable.name for variable in above.expressions]
        if isinstance(above, exp.Select):
            found += [item.alias for item in above.expressions if item.alias]
            break
        above = above.parent
    return [*found, "window"]


def _items(query: exp.Select, source: _Planned) -> list[_Item]:
    """The SELECT list with `*` written out."""
    found: list[_Item] = []
    for item in query.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if isinstance(star, exp.Star):
            left_out = {name.name.casefold() for name in star.args.get("except_") or star.args.get("except") or ()}
            found += [_starred(name, source) for name in source.root.columns if name.casefold() not in left_out]
        else:
            found.append(_Item(item))
    return found


def _starred(name: str, source: _Planned) -> _Item:
    node = exp.column(exp.to_identifier(name, quoted=True))
    return _Item(node, source.shown.get(name), name in source.added)


def _kept_key(key: tuple[str, ...] | None, expressions: Sequence[Named]) -> tuple[str, ...] | None:
    """The key under its new names, if every part of it is still there as it was."""
    if key is None:
        return None
    names = {each.sql.strip("`").casefold(): each.name for each in expressions}
    found = [names.get(part.casefold()) for part in key]
    return None if None in found else tuple(name for name in found if name is not None)


def _sql(item: exp.Expr) -> str:
    return str((item.this if isinstance(item, exp.Alias) else item).sql(dialect="spark"))
