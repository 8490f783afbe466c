"""The relations of a FROM clause: which column a name in the query means, and the operators that join the relations.

Every column of a joined relation has an inner name that is unique in the view, `alias.column`, so that expressions stay
plain Spark SQL over one frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import AmbiguousColumn, QueryFailed, UnknownColumn
from laminae.views.grouping import name_of
from laminae.views.operators import ADDED, Linear, Named, quoted
from laminae.views.sql.sql_text import sql_of
from laminae.views.unsupported import NESTED_EXCEPT, STRUCT_STAR, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from laminae.views.operators import Operator


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column in scope: the relation's alias, its name in the query, the operators' name, and its current name.

    `shown` differs from `name` for a column that was renamed after the view was written. `is_added`: only a `*` means
    it.
    """

    relation: str
    name: str
    inner: str
    shown: str
    is_added: bool = False

    @property
    def text(self) -> str:
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True, slots=True)
class FromScope:
    """`star` are the columns of `*`; `relations` those of each relation by its alias in lower case.

    They differ for USING and NATURAL, which show the columns of both sides as one. `key` are inner names.
    """

    root: Operator
    star: tuple[ScopeColumn, ...]
    relations: Mapping[str, tuple[ScopeColumn, ...]]
    key: tuple[str, ...] | None = None

    def find(self, parts: list[str]) -> tuple[ScopeColumn, int] | None:
        """The column that a dotted name begins with, and how many parts name it; the rest are fields of a struct.

        None if no column has the name. Raises `AmbiguousColumn`.
        """
        own = self.relations.get(parts[0].casefold()) if len(parts) > 1 else None
        if own is not None and (match := _only(own, parts[1])) is not None:
            return match, 2
        match = _only(self.star, parts[0])
        return None if match is None else (match, 1)

    def starred(self, alias: str | None) -> tuple[ScopeColumn, ...]:
        """The columns of `*` or of `alias.*`."""
        if alias is None:
            return self.star
        own = self.relations.get(alias.casefold())
        if own is None:
            raise QueryFailed(problem=f"{alias}.*: FROM has no relation {alias}")
        return own

    def unknown(self, parts: list[str]) -> UnknownColumn:
        own = self.relations.get(parts[0].casefold()) if len(parts) > 1 else None
        columns = [column for column in own or self.star if not column.is_added]
        name = parts[1] if own is not None else parts[0]
        where = parts[0] if own is not None else ", ".join(dict.fromkeys(c.relation for c in self.star))
        close = get_close_matches(name, [column.name for column in columns], n=1)
        suggestion = f" (did you mean {close[0]}?)" if close else ""
        return UnknownColumn(source=where, path=name, suggestion=suggestion)


def relation_scope(
    alias: str,
    root: Operator,
    key: tuple[str, ...] | None,
    shown: Mapping[str, str],
    added: Iterable[str],
    used: frozenset[str] | None,
) -> FromScope:
    """A relation under its alias. `used` are the names that the query mentions, in lower case; None: all.

    Columns that no expression mentions are not part of the operators above, and so not of their state.
    """
    late = frozenset(added)
    columns = [
        ScopeColumn(alias, name, _inner(alias, name, name in late), shown.get(name, name), name in late)
        for name in root.columns
        if used is None or name.casefold() in used
    ]
    pairs = {name: column for column in columns for name in (column.name,)}
    renamed = Linear(root, tuple(Named(c.inner, quoted(c.name), c.is_added) for c in columns))
    inner_key = None if key is None or any(name not in pairs for name in key) else tuple(pairs[n].inner for n in key)
    return FromScope(renamed, tuple(columns), {alias.casefold(): tuple(columns)}, inner_key)


def _inner(alias: str, name: str, is_added: bool) -> str:
    return f"{ADDED}{alias}.{name.removeprefix(ADDED)}" if is_added else f"{alias}.{name}"


def _only(columns: Iterable[ScopeColumn], name: str) -> ScopeColumn | None:
    found = [column for column in columns if not column.is_added and column.name.casefold() == name.casefold()]
    if len({column.inner for column in found}) > 1:
        raise AmbiguousColumn(name=name, candidates=", ".join(column.text for column in found))
    return found[0] if found else None


def resolve(query: exp.Expr, scope: FromScope, aliases: Iterable[str] = ()) -> None:
    """Replace every column reference below a node, in place, by the inner name of its column.

    `aliases` are names that may stand for themselves: those of the SELECT list.
    """
    own = {alias.casefold() for alias in aliases}
    for node in list(query.find_all(exp.Column)):
        if isinstance(node.this, exp.Star):
            continue
        parts = node.parts
        names = [part.name for part in parts]
        if names[0].casefold() in variables_around(node):
            continue
        match = scope.find(names)
        if match is None:
            if names[0].casefold() in own or names[0].casefold() == "window":
                continue
            raise scope.unknown(names)
        column, count = match
        inner = exp.to_identifier(column.inner, quoted=True)
        rest = [part.copy() for part in parts[count:]]
        _rename(node, [inner, *rest])


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One column of a SELECT list; `shown` is its current name if it comes from a `*`."""

    node: exp.Expr
    shown: str | None = None
    is_added: bool = False


def select_items(query: exp.Select, scope: FromScope) -> list[SelectItem]:
    """The SELECT list with every `*` expanded, every column by its inner name, and every name as an alias."""
    aliases = [item.alias for item in query.expressions if item.alias]
    items: list[SelectItem] = []
    for item in query.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star):
            node = item.copy() if isinstance(item, exp.Alias) else _aliased(item.copy(), name_of(item))
            resolve(node, scope, aliases)
            items.append(SelectItem(node))
            continue
        if isinstance(item, exp.Column) and len(item.parts) > 2:
            raise unsupported(item, STRUCT_STAR)
        alias = item.parts[0].name if isinstance(item, exp.Column) and len(item.parts) == 2 else None
        left_out = {_excluded(node, scope).inner for node in star.args.get("except_") or star.args.get("except") or ()}
        columns = [column for column in scope.starred(alias) if column.inner not in left_out]
        if not columns:
            raise QueryFailed(problem=f"{sql_of(item)} excludes every column")
        items += map(_starred, columns)
    return items


def _starred(column: ScopeColumn) -> SelectItem:
    name = column.inner if column.is_added else column.name
    node = _aliased(exp.column(exp.to_identifier(column.inner, quoted=True)), name)
    return SelectItem(node, column.shown, column.is_added)


def _aliased(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _excluded(node: exp.Expr, scope: FromScope) -> ScopeColumn:
    """A column in EXCEPT of a `*`."""
    names = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
    match = scope.find(names)
    if match is None:
        raise scope.unknown(names)
    column, count = match
    if count < len(names):
        raise unsupported(node, NESTED_EXCEPT)
    return column


def _rename(node: exp.Column, parts: list[exp.Expr]) -> None:
    for name in ("this", "table", "db", "catalog"):
        node.set(name, None)
    for name, part in zip(("this", "table", "db", "catalog"), reversed(parts), strict=False):
        node.set(name, part)


def variables_around(node: exp.Expr) -> frozenset[str]:
    """The variables of the lambdas that enclose a node, in lower case."""
    names: set[str] = set()
    above = node.parent
    while above is not None and not isinstance(above, exp.Select):
        if isinstance(above, exp.Lambda):
            names |= {variable.name.casefold() for variable in above.expressions}
        above = above.parent
    return frozenset(names)


def mentioned_names(query: exp.Select) -> frozenset[str] | None:
    """Every name that may be a column of a relation in FROM, in lower case; None if a `*` means all of them."""
    names: set[str] = set()
    for node in _own_nodes(query):
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return None
        if isinstance(node, exp.Column):
            names |= {part.name.casefold() for part in node.parts}
        if isinstance(node, exp.Join):
            names |= {name.name.casefold() for name in node.args.get("using") or ()}
            if str(node.args.get("method") or "").upper() == "NATURAL":
                return None
    return frozenset(names)


def _own_nodes(query: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT without those of sub-queries in FROM, which have scopes of their own."""
    yield from query.walk(prune=lambda node: node is not query and isinstance(node, exp.Select | exp.SetOperation))
