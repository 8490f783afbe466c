"""The field names of `struct(...)` and of a row `(a, b)` in Spark: they are derived from the arguments as written.

So when an argument is replaced by a column of another name, it needs an alias with its original name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import QueryFailed
from laminae.views.sql.sql_text import sql_of, string_value, takes_names
from laminae.views.sql.verbatim import Written

if TYPE_CHECKING:
    from collections.abc import Sequence


def field_names(node: exp.Expr) -> tuple[str, ...]:
    """One name per argument; empty if the node does not take field names from its arguments."""
    return (
        tuple(_name(place, argument) for place, argument in enumerate(_arguments(node), 1)) if takes_names(node) else ()
    )


def keep_names(node: exp.Expr, names: Sequence[str]) -> None:
    """Restore the field names of a node after its arguments were replaced."""
    if not names:
        return
    for name, now, argument in zip(names, field_names(node), _arguments(node), strict=True):
        if name == now:
            continue
        if isinstance(node, exp.Anonymous) and node.name.casefold() != "struct":
            problem = f"{sql_of(node)}: its fields have the names of grouping columns; compute it in a subquery"
            raise QueryFailed(problem=problem)
        argument.replace(exp.Alias(this=argument.copy(), alias=exp.to_identifier(name, quoted=True)))


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return [argument for argument in node.expressions if not isinstance(argument, exp.Var)]


def _name(place: int, argument: exp.Expr) -> str:
    if isinstance(argument, exp.Alias):
        return str(argument.alias)
    if isinstance(argument, exp.Column | exp.Dot):
        return str(argument.name)
    if isinstance(argument, Written) and argument.expressions[-1].name == "]":
        index = argument.expressions[-2]
        if isinstance(index, exp.Literal) and index.is_string:
            return string_value(str(index.this))
    return f"col{place}"
