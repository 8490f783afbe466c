"""Split a SELECT with aggregates into three operators.

A projection computes keys and arguments, a GROUP BY works on plain columns, and a second projection over keys and
results computes the SELECT list and HAVING.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.catalog.model import EXACT_READING
from laminae.errors import QueryFailed
from laminae.views.functions import KEPT
from laminae.views.kernels.group_by.aggregates import Function
from laminae.views.operators import Call, EventWindow, GroupBy, Linear, Named
from laminae.views.sql.field_names import field_names, keep_names
from laminae.views.sql.sql_text import comparable, sql_of
from laminae.views.sql.verbatim import column as written_column
from laminae.views.sql.verbatim import is_field
from laminae.views.windows import WINDOW, is_same_window, is_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.views.operators import Operator

ENDS = ("start", "end")
RESULT = "result"
"""Meta key that marks a column as an output of the GROUP BY, even if its input has a column of the same name."""


@dataclass(frozen=True, slots=True)
class _Key:
    """One expression of GROUP BY and the columns that store it: one, or the start and end of a window."""

    text: str
    columns: tuple[Named, ...]
    node: exp.Expr

    @property
    def is_window(self) -> bool:
        return len(self.columns) > 1


@dataclass(slots=True)
class Grouping:
    """Collects the aggregates and arguments of the SELECT list and HAVING while rewriting both over the results."""

    keys: list[_Key]
    items: Sequence[exp.Expr]
    having: exp.Expr | None
    reading: int
    arguments: dict[str, Named] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)

    @classmethod
    def of(cls, query: exp.Select, items: Sequence[exp.Expr], columns: Sequence[str], reading: int) -> Grouping:
        """`columns` are those of the input: a name in GROUP BY refers to an input column before it refers to an alias.

        In the first reading (see `dependencies.EXACT`) the alias took precedence.
        """
        having = query.args.get("having")
        own = columns if reading == EXACT_READING else ()
        keys = [_key(number, node, reading) for number, node in enumerate(_grouped_by(query, items, own))]
        return cls(keys, items, None if having is None else having.this, reading)

    def planned(
        self, source: Operator, condition: str | None
    ) -> tuple[Operator, tuple[str, ...] | None, EventWindow | None]:
        """The operators, the columns that identify a row, and the window if there is one."""
        shown = tuple(Named(name_of(item), self._over_results(_bare(item))) for item in self.items)
        having = None if self.having is None else self._over_results(self.having)
        columns = [column for key in self.keys for column in key.columns]
        before = Linear(source, (*columns, *self.arguments.values()), condition)
        group = GroupBy(before, tuple(column.name for column in columns), tuple(self.calls.values()))
        return Linear(group, shown, having), self._identity(shown), self._window(shown)

    def _over_results(self, node: exp.Expr) -> str:
        """The expression with keys and aggregates replaced by the columns that hold them."""
        rewritten = self._replaced(node.copy())
        for column in rewritten.find_all(exp.Column):
            if not column.meta.get(RESULT) and not _is_variable(column):
                text = sql_of(node)
                raise QueryFailed(problem=f"{sql_of(column)} in {text} is neither in GROUP BY nor inside an aggregate")
        return sql_of(rewritten)

    def _replaced(self, node: exp.Expr, variables: frozenset[str] = frozenset()) -> exp.Expr:
        """`variables` are those of enclosing lambdas: a node that refers to one is neither a key nor an aggregate."""
        if isinstance(node, exp.Identifier):
            return node
        if isinstance(node, exp.Lambda):
            own = {variable.name.casefold() for variable in node.expressions}
            node.set("this", self._replaced(node.this, variables | own))
            return node
        is_aggregate = isinstance(node, exp.Filter) or type(node) in KEPT
        if _mentions(node, variables):
            if is_aggregate:
                raise QueryFailed(problem=f"{sql_of(node)} is an aggregate of a variable of a lambda")
        elif (held := self._held(node)) is not None:
            return _free_of(held, variables)
        elif is_aggregate:
            return _free_of(_result(self._call(node).name), variables)
        names = field_names(node) if self.reading == EXACT_READING else ()
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, self._replaced(value, variables))
            elif isinstance(value, list):
                inner = [self._replaced(child, variables) if isinstance(child, exp.Expr) else child for child in value]
                node.set(name, inner)
        keep_names(node, names)
        return node

    def _held(self, node: exp.Expr) -> exp.Expr | None:
        """The columns that hold a key, the start or end of a window key, or a field of a key; None for other nodes."""
        text = comparable(node, self.reading)
        if (key := next((key for key in self.keys if key.text == text), None)) is not None:
            return _struct(key)
        if (held := self._end(node)) is not None:
            return held
        parts = node.parts if isinstance(node, exp.Column) else []
        if len(parts) < 2 or not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        last = parts[-1].copy()
        held = self._held(written_column([part.copy() for part in parts[:-1]]))
        if held is None:
            return None
        dot = exp.Dot(this=held, expression=last)
        dot.add_comments(node.comments)
        return dot

    def _end(self, node: exp.Expr) -> exp.Expr | None:
        key = next((key for key in self.keys if key.is_window), None)
        if key is None or (end := _end_of(node)) is None:
            return None
        if isinstance(node, exp.Dot) and not is_same_window(node.this, key.node):
            problem = f"{sql_of(node.this)} is not the window in GROUP BY, {sql_of(key.node)}"
            raise QueryFailed(problem=f"{problem}: write it as there, or {WINDOW}.{end}")
        return _result(key.columns[ENDS.index(end)].name)

    def _call(self, node: exp.Expr) -> Call:
        text = comparable(node, self.reading)
        if text not in self.calls:
            function, argument = _function(node)
            column = None if argument is None else self._argument(argument)
            identity = "" if column is None else column.name
            self.calls[text] = Call(f"o{len(self.calls)}", function, identity or None, identity)
        return self.calls[text]

    def _argument(self, node: exp.Expr) -> Named:
        """The argument column, named after its expression, so that equal aggregates share one name and one state."""
        text = comparable(node, self.reading)
        if text not in self.arguments:
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            self.arguments[text] = Named(f"a_{digest}", sql_of(node))
        return self.arguments[text]

    def _identity(self, shown: Sequence[Named]) -> tuple[str, ...] | None:
        names = {column.sql: column.name for column in shown}
        key_names: list[str] = []
        for key in self.keys:
            # All windows have the same length, so the start or the end alone identifies one; so does the pair.
            texts = [*(column.name for column in key.columns), sql_of(_struct(key))]
            name = next((names[text] for text in texts if text in names), None)
            if name is None:
                return None
            key_names.append(name)
        return tuple(key_names)

    def _window(self, shown: Sequence[Named]) -> EventWindow | None:
        key = next((key for key in self.keys if key.is_window), None)
        return None if key is None else EventWindow(key.columns[0].name, key.columns[1].name)


def has_aggregate(node: exp.Expr) -> bool:
    return any(type(inner) in KEPT for inner in node.walk())


def _grouped_by(query: exp.Select, items: Sequence[exp.Expr], columns: Sequence[str]) -> Iterator[exp.Expr]:
    group = query.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from (_bare(item) for item in items if not has_aggregate(item))
        return
    own = {name.casefold() for name in columns}
    names = {item.alias.casefold(): item for item in items if item.alias and item.alias.casefold() not in own}
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
            place = int(node.this)
            if not 1 <= place <= len(items):
                raise QueryFailed(problem=f"GROUP BY {place}: the SELECT list has {len(items)} columns")
            yield _bare(items[place - 1])
        elif isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.casefold() in names:
            meant = _bare(names[node.name.casefold()])
            yield node if has_aggregate(meant) else meant
        else:
            yield node


def _key(number: int, node: exp.Expr, reading: int) -> _Key:
    if has_aggregate(node):
        raise QueryFailed(problem=f"GROUP BY {sql_of(node)}: an aggregate cannot be a key")
    sql = sql_of(node)
    if is_window(node):
        return _Key(comparable(node, reading), tuple(Named(f"k{number}_{end}", f"{sql}.{end}") for end in ENDS), node)
    return _Key(comparable(node, reading), (Named(f"k{number}", sql),), node)


def _result(name: str) -> exp.Column:
    column = exp.column(name)
    column.meta[RESULT] = True
    return column


def _free_of(held: exp.Expr, variables: frozenset[str]) -> exp.Expr:
    """Refuse a column whose name is a variable of an enclosing lambda."""
    for column in held.find_all(exp.Column):
        if column.parts[0].name.casefold() in variables:
            name = column.parts[0].name
            raise QueryFailed(problem=f"a variable of a lambda cannot be called {name} here: give it another name")
    return held


def _mentions(node: exp.Expr, variables: frozenset[str]) -> bool:
    if not variables:
        return False
    return any(name.name.casefold() in variables for name in node.find_all(exp.Identifier) if not is_field(name))


def _struct(key: _Key) -> exp.Expr:
    if not key.is_window:
        return _result(key.columns[0].name)
    parts = [part for end, column in zip(ENDS, key.columns, strict=True) for part in (end, column.name)]
    return exp.Anonymous(
        this="named_struct",
        expressions=[exp.Literal.string(part) if i % 2 == 0 else _result(part) for i, part in enumerate(parts)],
    )


def _end_of(node: exp.Expr) -> str | None:
    """Which bound of the window the node refers to: `window.start`, `window.end` or `window(...).start`."""
    if isinstance(node, exp.Dot) and is_window(node.this) and node.expression.name.casefold() in ENDS:
        return str(node.expression.name).casefold()
    if isinstance(node, exp.Column) and len(node.parts) == 2 and node.parts[0].name.casefold() == WINDOW:
        return node.name.casefold() if node.name.casefold() in ENDS else None
    return None


def _function(node: exp.Expr) -> tuple[Function, exp.Expr | None]:
    """The aggregate function and its argument; a FILTER becomes a CASE around the argument."""
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if type(node) not in KEPT:
        raise QueryFailed(problem=f"FILTER follows {sql_of(node)}, which is not an aggregate")
    function, argument = KEPT[type(node)], node.this
    if isinstance(argument, exp.Distinct):
        if function is Function.COUNT:
            function = Function.COUNT_DISTINCT
        elif function not in (Function.MIN, Function.MAX):
            raise QueryFailed(problem=f"{sql_of(node)}: DISTINCT is supported for COUNT only")
        if len(argument.expressions) != 1:
            raise QueryFailed(problem=f"{sql_of(node)}: DISTINCT takes one expression")
        argument = argument.expressions[0]
    elif function is Function.COUNT and node.expressions:
        raise QueryFailed(problem=f"{sql_of(node)}: COUNT takes one expression")
    if function is Function.COUNT and (isinstance(argument, exp.Star) or _is_constant(argument)):
        if condition is None:
            return Function.COUNT_ROWS, None
        argument = exp.Literal.number(1)
    if has_aggregate(argument):
        raise QueryFailed(problem=f"{sql_of(node)}: an aggregate is nested in an aggregate")
    return function, argument if condition is None else _where(condition, argument)


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal)


def _is_variable(column: exp.Column) -> bool:
    above = column.parent
    while above is not None:
        if isinstance(above, exp.Lambda) and _mentions(column, frozenset(v.name.casefold() for v in above.expressions)):
            return True
        above = above.parent
    return False


def _bare(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def name_of(item: exp.Expr) -> str:
    """The alias, the name of the column, or the text of the expression, as in Spark."""
    if isinstance(item, exp.Alias | exp.Column | exp.Dot):
        return str(item.alias_or_name or item.name)
    return sql_of(item)
