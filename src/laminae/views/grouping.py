"""A SELECT with aggregates, taken apart: a projection that computes keys and arguments, a GROUP BY of plain columns,
and a projection of keys and results that computes the SELECT list and HAVING.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed
from laminae.views.functions import KEPT
from laminae.views.kernels.aggregates import Function
from laminae.views.operators import Call, EventWindow, GroupBy, Linear, Named
from laminae.views.windows import WINDOW, is_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.views.operators import Operator

ENDS = ("start", "end")


@dataclass(frozen=True, slots=True)
class _Key:
    """One expression of GROUP BY and the columns it is kept in: one, or the two ends of a window."""

    text: str
    columns: tuple[Named, ...]

    @property
    def is_window(self) -> bool:
        return len(self.columns) > 1


@dataclass(slots=True)
class Grouping:
    """Collects what the SELECT list and HAVING need while it rewrites them over keys and results."""

    keys: list[_Key]
    items: Sequence[exp.Expr]
    having: exp.Expr | None
    arguments: dict[str, Named] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)

    @classmethod
    def of(cls, query: exp.Select, items: Sequence[exp.Expr]) -> Grouping:
        having = query.args.get("having")
        keys = [_key(number, node) for number, node in enumerate(_grouped_by(query, items))]
        return cls(keys, items, None if having is None else having.this)

    def planned(
        self, source: Operator, condition: str | None
    ) -> tuple[Operator, tuple[str, ...] | None, EventWindow | None]:
        """The operators, the columns that identify a row, and the window if there is one."""
        shown = tuple(Named(name_of(item), self._over_results(_bare(item))) for item in self.items)
        kept = None if self.having is None else self._over_results(self.having)
        columns = [column for key in self.keys for column in key.columns]
        before = Linear(source, (*columns, *self.arguments.values()), condition)
        group = GroupBy(before, tuple(column.name for column in columns), tuple(self.calls.values()))
        return Linear(group, shown, kept), self._identity(shown), self._window(shown)

    def _over_results(self, node: exp.Expr) -> str:
        """The expression with keys and aggregates replaced by the columns that hold them."""
        rewritten = self._replaced(node.copy())
        own = {column.name for key in self.keys for column in key.columns} | {call.name for call in self.calls.values()}
        for column in rewritten.find_all(exp.Column):
            if column.parts[0].name not in own and not _is_variable(column):
                text = node.sql(dialect="spark")
                raise QueryFailed(
                    problem=f"{column.sql(dialect='spark')} in {text} is neither in GROUP BY nor inside an aggregate"
                )
        return str(rewritten.sql(dialect="spark"))

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        for key in self.keys:
            if _text(node) == key.text:
                return _struct(key) if key.is_window else exp.column(key.columns[0].name)
            if key.is_window and (end := _end_of(node)) is not None:
                return exp.column(next(column.name for column in key.columns if column.name.endswith(end)))
        if isinstance(node, exp.Filter) or type(node) in KEPT:
            return exp.column(self._call(node).name)
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, self._replaced(value))
            elif isinstance(value, list):
                node.set(name, [self._replaced(each) if isinstance(each, exp.Expr) else each for each in value])
        return node

    def _call(self, node: exp.Expr) -> Call:
        text = _text(node)
        if text not in self.calls:
            function, argument = _function(node)
            column = None if argument is None else self._argument(argument)
            identity = "" if column is None else column.name
            self.calls[text] = Call(f"o{len(self.calls)}", function, identity or None, identity)
        return self.calls[text]

    def _argument(self, node: exp.Expr) -> Named:
        """Named after its expression: the state of an aggregate that is the same has the same name."""
        text = _text(node)
        if text not in self.arguments:
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            self.arguments[text] = Named(f"a_{digest}", str(node.sql(dialect="spark")))
        return self.arguments[text]

    def _identity(self, shown: Sequence[Named]) -> tuple[str, ...] | None:
        names = {each.sql: each.name for each in shown}
        found: list[str] = []
        for key in self.keys:
            # One end tells a window from the others, as all are of one length; so does the pair.
            texts = [*(column.name for column in key.columns), _struct(key).sql(dialect="spark")]
            name = next((names[text] for text in texts if text in names), None)
            if name is None:
                return None
            found.append(name)
        return tuple(found)

    def _window(self, shown: Sequence[Named]) -> EventWindow | None:
        key = next((key for key in self.keys if key.is_window), None)
        return None if key is None else EventWindow(key.columns[0].name, key.columns[1].name)


def has_aggregate(node: exp.Expr) -> bool:
    return any(type(inner) in KEPT for inner in node.walk())


def _grouped_by(query: exp.Select, items: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    group = query.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from (_bare(item) for item in items if not has_aggregate(item))
        return
    names = {item.alias.casefold(): item for item in items if item.alias}
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this)
            if not 1 <= place <= len(items):
                raise QueryFailed(problem=f"GROUP BY {place}: the SELECT list has {len(items)} columns")
            yield _bare(items[place - 1])
        elif isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.casefold() in names:
            meant = _bare(names[node.name.casefold()])
            yield node if has_aggregate(meant) else meant
        else:
            yield node


def _key(number: int, node: exp.Expr) -> _Key:
    if has_aggregate(node):
        raise QueryFailed(problem=f"GROUP BY {node.sql(dialect='spark')}: an aggregate cannot be a key")
    sql = node.sql(dialect="spark")
    if is_window(node):
        return _Key(_text(node), tuple(Named(f"k{number}_{end}", f"{sql}.{end}") for end in ENDS))
    return _Key(_text(node), (Named(f"k{number}", sql),))


def _struct(key: _Key) -> exp.Expr:
    if not key.is_window:
        return exp.column(key.columns[0].name)
    parts = [part for end, column in zip(ENDS, key.columns, strict=True) for part in (end, column.name)]
    return exp.Anonymous(
        this="named_struct",
        expressions=[exp.Literal.string(part) if i % 2 == 0 else exp.column(part) for i, part in enumerate(parts)],
    )


def _end_of(node: exp.Expr) -> str | None:
    """Which end of the window `window.start`, `window.end` or `window(...).start` means."""
    if isinstance(node, exp.Dot) and is_window(node.this) and node.expression.name.casefold() in ENDS:
        return str(node.expression.name).casefold()
    if isinstance(node, exp.Column) and len(node.parts) == 2 and node.parts[0].name.casefold() == WINDOW:
        return node.name.casefold() if node.name.casefold() in ENDS else None
    return None


def _function(node: exp.Expr) -> tuple[Function, exp.Expr | None]:
    """The aggregate and what it is of; a FILTER becomes a CASE around its argument."""
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if type(node) not in KEPT:
        raise QueryFailed(problem=f"FILTER stands behind {node.sql(dialect='spark')}, which is no aggregate")
    function, argument = KEPT[type(node)], node.this
    if isinstance(argument, exp.Distinct):
        if function is Function.COUNT:
            function = Function.COUNT_DISTINCT
        elif function not in (Function.MIN, Function.MAX):
            raise QueryFailed(problem=f"{node.sql(dialect='spark')}: DISTINCT is kept for COUNT alone")
        if len(argument.expressions) != 1:
            raise QueryFailed(problem=f"{node.sql(dialect='spark')}: DISTINCT takes one expression")
        argument = argument.expressions[0]
    elif function is Function.COUNT and node.expressions:
        raise QueryFailed(problem=f"{node.sql(dialect='spark')}: COUNT takes one expression")
    if function is Function.COUNT and (isinstance(argument, exp.Star) or _is_constant(argument)):
        if condition is None:
            return Function.COUNT_ROWS, None
        argument = exp.Literal.number(1)
    if has_aggregate(argument):
        raise QueryFailed(problem=f"{node.sql(dialect='spark')}: an aggregate stands inside an aggregate")
    return function, argument if condition is None else _where(condition, argument)


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal)


def _is_variable(column: exp.Column) -> bool:
    above = column.parent
    while above is not None:
        if isinstance(above, exp.Lambda) and column.name in {each.name for each in above.expressions}:
            return True
        above = above.parent
    return False


def _text(node: exp.Expr) -> str:
    """Equal for expressions that mean the same column and differ in nothing but case."""
    return str(node.sql(dialect="spark", normalize=True, identify=True, normalize_functions="lower", comments=False))


def _bare(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def name_of(item: exp.Expr) -> str:
    """The alias, the column's own name, or the text of the expression, as Spark has it."""
    if isinstance(item, exp.Alias | exp.Column | exp.Dot):
        return str(item.alias_or_name or item.name)
    return str(item.sql(dialect="spark"))
