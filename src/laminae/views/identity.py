"""Which state belongs to which operator: ids that stay while a source evolves, and when a view is replaced alike.

They are made of the text with the names that the view was written with, so neither a rename nor an added column moves
state. That a name means another column today, no id can say: see `laminae.engine.view_columns`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll

if TYPE_CHECKING:
    from laminae.views.operators import Operator


def operator_id(operator: GroupBy | Distinct) -> str:
    """The same for operators that keep the same: what they read, how it is filtered, and the expressions of the keys.

    Of the arguments of aggregates it says nothing, as these are known by ids of their own.
    """
    return hashlib.sha256(repr(_essence(operator)).encode()).hexdigest()[:16]


def stateful(operator: Operator) -> tuple[GroupBy | Distinct, ...]:
    """Every operator of a tree that keeps state."""
    match operator:
        case Read():
            return ()
        case UnionAll(inputs=inputs):
            return tuple(found for each in inputs for found in stateful(each))
        case Linear(input=below):
            return stateful(below)
        case GroupBy(input=below) | Distinct(input=below):
            return (operator, *stateful(below))


def _essence(operator: Operator) -> tuple[object, ...]:
    match operator:
        case Read(relation=relation):
            return ("read", relation.casefold())
        case Linear(input=below, expressions=expressions, condition=condition):
            own = tuple((each.name, each.sql) for each in expressions if not each.is_added)
            return ("linear", _essence(below), own, condition)
        case UnionAll(inputs=inputs):
            return ("union", *map(_essence, inputs))
        case GroupBy(input=Linear() as below, keys=keys):
            own = tuple((each.name, each.sql) for each in below.expressions if each.name in keys)
            return ("group", _essence(below.input), own, below.condition)
        case GroupBy(input=below, keys=keys):
            return ("group", _essence(below), keys)
        case Distinct(input=below):
            return ("distinct", _essence(below))
