"""Plans the joins of a FROM clause: relations left to right, as written. Spark evaluates every expression.

Each conjunct of a condition becomes a key (an equality of the two sides), a filter of one side, or a residual
comparison of one column of each side, which the kernel evaluates. An inner join filters its pairs by anything else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import AmbiguousColumn, QueryFailed, UnknownColumn
from laminae.views.from_scope import FromScope, ScopeColumn, mentioned_names, relation_scope, resolve
from laminae.views.operators import MIRRORED, Comparison, Join, JoinKey, JoinKind, Linear, Named, quoted
from laminae.views.sql.sql_text import comparable, sql_of
from laminae.views.sql.verbatim import Written
from laminae.views.unsupported import unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from laminae.views.operators import Operator

    Relation = Callable[[exp.Expr], "PlannedRelation"]

KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}
SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
NULL_SAFE = "<=>"
CROSS = (
    "a join without an equality of both sides",
    "Add a condition of the form a.x = b.y, or join in a plain SELECT.",
)
MIXED = (
    "a condition of an outer, semi or anti join that does not compare one side with the other",
    "Write it as comparisons of an expression over one side with an expression over the other.",
)
MOST_RELATIONS = 12


@dataclass(frozen=True, slots=True)
class PlannedRelation:
    """A relation of FROM: its operators, key, and how its columns are called today (see `planner._Planned`)."""

    alias: str
    root: Operator
    key: tuple[str, ...] | None
    shown: dict[str, str]
    added: frozenset[str]


def has_joins(query: exp.Select) -> bool:
    origin = query.args.get("from_") or query.args.get("from")
    nested = origin is not None and isinstance(origin.this, exp.Subquery) and isinstance(origin.this.this, exp.Table)
    return nested or bool(query.args.get("joins"))


def from_scope(query: exp.Select, relation: Relation) -> FromScope:
    """The scope of a SELECT whose FROM joins relations; `relation` plans a table or a sub-query."""
    origin = query.args.get("from_") or query.args.get("from")
    if origin is None:
        raise QueryFailed(problem="a materialized view reads a source or another view: FROM is missing")
    where = query.args.get("where")
    building = _Joins(relation, mentioned_names(query), () if where is None else tuple(_conjuncts(where.this)))
    return building.joined(building.scope(origin.this), query.args.get("joins") or ())


@dataclass(frozen=True, slots=True)
class _Joins:
    relation: Relation
    used: frozenset[str] | None
    where: tuple[exp.Expr, ...]
    """The conjuncts of WHERE: the conditions of joins that have none of their own, as in FROM a, b WHERE a.x = b.x."""
    aliases: set[str] = field(default_factory=set)

    def scope(self, node: exp.Expr) -> FromScope:
        """A table, a sub-query, or joins in parentheses."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
            return self.joined(self.scope(node.this), node.this.args.get("joins") or ())
        planned = self.relation(node)
        if not planned.alias:
            raise QueryFailed(problem=f"{sql_of(node)} in a join needs a name: add AS t")
        if planned.alias.casefold() in self.aliases:
            raise QueryFailed(problem=f"FROM has two relations called {planned.alias}: rename one with AS")
        self.aliases.add(planned.alias.casefold())
        if len(self.aliases) > MOST_RELATIONS:
            raise QueryFailed(problem=f"a view joins at most {MOST_RELATIONS} relations: join some in a view below it")
        return relation_scope(planned.alias, planned.root, planned.key, planned.shown, planned.added, self.used)

    def joined(self, scope: FromScope, joins: Sequence[exp.Join]) -> FromScope:
        """JOIN binds closer than a comma: a comma begins a new group, and the groups are joined by WHERE."""
        groups, commas = [scope], list[exp.Join]()
        for join in joins:
            right = self.scope(join.this)
            if _is_comma(join):
                groups.append(right)
                commas.append(join)
            else:
                groups[-1] = _joined(groups[-1], right, join)
        scope, rest = groups[0], [*zip(commas, groups[1:], strict=True)]
        while rest:
            plans = [_Conditions(join, scope, right, JoinKind.INNER) for join, right in rest]
            place = next((place for place, plan in enumerate(plans) if plan.has_equalities(self.where)), None)
            if place is None:
                raise unsupported(rest[0][0], CROSS)
            scope = plans[place].scope()
            del rest[place]
        order = {column.inner: place for place, column in enumerate(c for group in groups for c in group.star)}
        return replace(scope, star=tuple(sorted(scope.star, key=lambda column: order[column.inner])))


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("on", "using", "side", "kind", "method"))


def _joined(left: FromScope, right: FromScope, join: exp.Join) -> FromScope:
    kind = _kind(join)
    is_natural = str(join.args.get("method") or "").upper() == "NATURAL"
    names = _common(left, right) if is_natural else [name.name for name in join.args.get("using") or ()]
    plan = _Conditions(join, left, right, kind)
    if names:
        shared = [(_side_column(left, name), _side_column(right, name)) for name in names]
        for a, b in shared:
            plan.keys.append(JoinKey(a.inner, b.inner))
        return _merged(plan.scope(), shared, kind)
    condition = join.args.get("on")
    for conjunct in [] if condition is None else _conjuncts(condition):
        plan.add(conjunct)
    return plan.scope()


def _kind(join: exp.Join) -> JoinKind:
    words = tuple(str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    if words not in KINDS:
        raise unsupported(join, (f"{' '.join(filter(None, words))} JOIN", CROSS[1]))
    return KINDS[words]


def _common(left: FromScope, right: FromScope) -> list[str]:
    theirs = {column.name.casefold() for column in right.star if not column.is_added}
    return [column.name for column in left.star if not column.is_added and column.name.casefold() in theirs]


def _side_column(scope: FromScope, name: str) -> ScopeColumn:
    match = scope.find([name])
    if match is None:
        raise scope.unknown([name])
    return match[0]


def _merged(scope: FromScope, shared: Sequence[tuple[ScopeColumn, ScopeColumn]], kind: JoinKind) -> FromScope:
    """USING shows the columns of both sides as one, before all others: that of the side whose rows are all there."""
    if kind.selects_left:
        return scope
    first: list[ScopeColumn] = []
    root = scope.root
    for a, b in shared:
        if kind is JoinKind.FULL:
            inner = f"{a.inner}={b.inner}"
            both = Named(inner, f"coalesce({quoted(a.inner)}, {quoted(b.inner)})")
            added = _added_in(scope)
            root = Linear(root, (*(Named(name, quoted(name), name in added) for name in root.columns), both))
            first.append(replace(a, inner=inner))
        else:
            first.append(b if kind is JoinKind.RIGHT else a)
    hidden = {column.inner for pair in shared for column in pair}
    star = (*first, *(column for column in scope.star if column.inner not in hidden))
    return replace(scope, root=root, star=star)


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    match node:
        case exp.And():
            yield from _conjuncts(node.this)
            yield from _conjuncts(node.expression)
        case exp.Paren():
            yield from _conjuncts(node.this)
        case _:
            yield node


@dataclass(slots=True)
class _Conditions:
    """Collects the conjuncts of a join condition by what becomes of them."""

    join: exp.Join
    left: FromScope
    right: FromScope
    kind: JoinKind
    keys: list[JoinKey] = field(default_factory=list)
    residual: list[Comparison] = field(default_factory=list)
    computed: tuple[dict[str, Named], dict[str, Named]] = field(default_factory=lambda: ({}, {}))
    filters: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    above: list[str] = field(default_factory=list)

    def _resolved(self, conjunct: exp.Expr) -> exp.Expr:
        relations = {**self.left.relations, **self.right.relations}
        wrapped = exp.Paren(this=conjunct.copy())
        resolve(wrapped, FromScope(self.left.root, (*self.left.star, *self.right.star), relations))
        resolved: exp.Expr = wrapped.this
        return resolved

    def has_equalities(self, conjuncts: Sequence[exp.Expr]) -> bool:
        """Take the equalities of the two sides as keys. The filter that they come from stays where it is."""
        for conjunct in conjuncts:
            try:
                pair = self._compared(self._resolved(conjunct))
            except (UnknownColumn, AmbiguousColumn):
                continue  # it is about relations that are joined later
            if pair is not None and pair[1] in ("=", NULL_SAFE):
                self._add_comparison(*pair)
        return bool(self.keys)

    def add(self, conjunct: exp.Expr) -> None:
        node = self._resolved(conjunct)
        sides = self._sides(node)
        if (pair := self._compared(node)) is not None:
            self._add_comparison(*pair)
        elif len(sides) < 2 and self._filters(sides):
            self.filters[min(sides, default=0)].append(sql_of(node))
        elif self.kind is JoinKind.INNER:
            self.above.append(sql_of(node))
        elif len(sides) < 2:
            # A row for which the condition does not hold has no partner: true on one side equals true on the other.
            side = min(sides, default=0)
            names = ["", ""]
            names[side] = self._column(side, exp.Paren(this=node))
            names[1 - side] = self._column(1 - side, exp.Boolean(this=True))
            self.residual.append(Comparison(names[0], "=", names[1]))
        else:
            raise unsupported(conjunct, MIXED)

    def _filters(self, sides: set[int]) -> bool:
        """Whether rows of this side that fail a condition leave no trace in the result."""
        side = min(sides, default=0)
        if self.kind in (JoinKind.INNER, JoinKind.SEMI):
            return True
        return side == (0 if self.kind is JoinKind.RIGHT else 1) and self.kind is not JoinKind.FULL

    def _sides(self, node: exp.Expr) -> set[int]:
        names = {str(column.parts[0].name) for column in node.find_all(exp.Column)}
        return {n for n, scope in enumerate((self.left, self.right)) if names & {*scope.root.columns}}

    def _compared(self, node: exp.Expr) -> tuple[exp.Expr, str, exp.Expr] | None:
        """(left expression, sign, right expression), if the conjunct compares the two sides."""
        sign = SIGNS.get(type(node))
        operands = (node.this, node.expression) if sign is not None else None
        if isinstance(node, Written) and len(node.expressions) == 3:
            first, between, second = node.expressions
            if isinstance(between, exp.Var) and str(between.this).strip() == NULL_SAFE:
                sign, operands = NULL_SAFE, (first, second)
        if sign is None or operands is None:
            return None
        sides = [self._sides(operand) for operand in operands]
        if sides == [{0}, {1}]:
            return operands[0], sign, operands[1]
        return (operands[1], MIRRORED[sign], operands[0]) if sides == [{1}, {0}] else None

    def _add_comparison(self, left: exp.Expr, sign: str, right: exp.Expr) -> None:
        if sign in ("=", NULL_SAFE):
            self.keys.append(JoinKey(self._key(0, left), self._key(1, right), sign == NULL_SAFE))
        elif self.kind is JoinKind.INNER:
            self.above.append(f"({sql_of(left)}) {sign} ({sql_of(right)})")
        else:
            self.residual.append(Comparison(self._column(0, left), sign, self._column(1, right)))

    def _key(self, side: int, node: exp.Expr) -> str:
        """The column that holds a key: the column itself, or a computed one."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            name = str(node.name)
            columns = (self.left, self.right)[side].root.columns
            return next(column for column in columns if column == name)
        return self._column(side, node)

    def _column(self, side: int, node: exp.Expr) -> str:
        """A computed column, named after its expression, so that an unchanged condition keeps its state."""
        sql = sql_of(node)
        digest = hashlib.sha256(f"{side} {comparable(node)}".encode()).hexdigest()[:12]
        self.computed[side][f"on_{digest}"] = Named(f"on_{digest}", sql)
        return f"on_{digest}"

    def scope(self) -> FromScope:
        if not self.keys:
            raise unsupported(self.join, CROSS)
        if twice := {*self.left.root.columns} & {*self.right.root.columns}:
            raise QueryFailed(problem=f"two columns of the join are named {min(twice)}: rename a relation with AS")
        left, right = (
            _computed(*each) for each in zip((self.left, self.right), self.computed, self.filters, strict=True)
        )
        root: Operator = Join(left, right, self.kind, tuple(self.keys), tuple(self.residual))
        if self.above or any(self.computed):
            shown = (*self.left.root.columns, *(() if self.kind.selects_left else self.right.root.columns))
            condition = " AND ".join(f"({sql})" for sql in self.above) or None
            added = _added_in(self.left, self.right)
            root = Linear(root, tuple(Named(name, quoted(name), name in added) for name in shown), condition)
        if self.kind.selects_left:
            return replace(self.left, root=root)
        relations = {**self.left.relations, **self.right.relations}
        return FromScope(root, (*self.left.star, *self.right.star), relations, self._identity())

    def _identity(self) -> tuple[str, ...] | None:
        """The columns that identify a row of the result, None if there are none."""
        unique_left = self._is_unique(self.left, [key.left for key in self.keys])
        unique_right = self._is_unique(self.right, [key.right for key in self.keys])
        if unique_right and self.kind in (JoinKind.INNER, JoinKind.LEFT):
            return self.left.key
        if unique_left and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return self.right.key
        if self.left.key is None or self.right.key is None:
            return None
        return (*self.left.key, *self.right.key)

    def _is_unique(self, scope: FromScope, columns: Sequence[str]) -> bool:
        return scope.key is not None and {*scope.key} <= {*columns}


def _computed(scope: FromScope, computed: dict[str, Named], filters: Sequence[str]) -> Operator:
    """The rows of a side with its computed columns, without those that its filters reject."""
    if not computed and not filters:
        return scope.root
    added = _added_in(scope)
    own = tuple(Named(name, quoted(name), name in added) for name in scope.root.columns)
    condition = " AND ".join(f"({sql})" for sql in filters) or None
    return Linear(scope.root, (*own, *computed.values()), condition)


def _added_in(*scopes: FromScope) -> frozenset[str]:
    return frozenset(c.inner for scope in scopes for columns in scope.relations.values() for c in columns if c.is_added)
