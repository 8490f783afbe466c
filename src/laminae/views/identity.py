"""Which state belongs to which operator: ids that are stable while a source evolves and when a view is replaced.

Ids are hashes of the text with the names that the view was written with, so neither a rename nor an added column moves
state. An id cannot detect that a name refers to another column today: see `laminae.engine.views.resolution`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from laminae.errors import StateIncompatible
from laminae.views.operators import Distinct, GroupBy, Join, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Collection

    from laminae.views.operators import Operator, Stateful


def operator_id(operator: Stateful) -> str:
    """Equal for operators with the same state: the same input, filter and key expressions.

    The arguments of aggregates are not included, because accumulators have their own ids.
    """
    return hashlib.sha256(repr(_essence(operator)).encode()).hexdigest()[:16]


def stateful(operator: Operator) -> tuple[Stateful, ...]:
    """Every stateful operator of a plan."""
    match operator:
        case Read():
            return ()
        case UnionAll(inputs=inputs):
            return tuple(node for inner in inputs for node in stateful(inner))
        case Linear(input=below):
            return stateful(below)
        case GroupBy(input=below) | Distinct(input=below):
            return (operator, *stateful(below))
        case Join(left=left, right=right):
            return (operator, *stateful(left), *stateful(right))


def refuse_state_of_another(view: str, root: Operator, stored: Collection[str]) -> None:
    """Refuse a plan if one of its operators has no stored state while there is stored state that none of them owns.

    That operator would start from empty state in the middle of the view's life. Raises `StateIncompatible`.
    """
    if not stored:
        return
    own = {operator_id(operator) for operator in stateful(root)}
    if (unknown := sorted(set(stored) - own)) and not own <= set(stored):
        problem = "what the view groups, and by which keys, has another id: CREATE OR REPLACE the view"
        raise StateIncompatible(file=f"view {view}", path=f"operator {unknown[0]}", problem=problem)


def _essence(operator: Operator) -> tuple[object, ...]:
    match operator:
        case Read(relation=relation):
            return ("read", relation.casefold())
        case Linear(input=below, expressions=expressions, condition=condition):
            own = tuple((expression.name, expression.sql) for expression in expressions if not expression.is_added)
            return ("linear", _essence(below), own, condition)
        case UnionAll(inputs=inputs):
            return ("union", *map(_essence, inputs))
        case GroupBy(input=Linear() as below, keys=keys):
            own = tuple(
                (expression.name, expression.sql) for expression in below.expressions if expression.name in keys
            )
            return ("group", _essence(below.input), own, below.condition)
        case GroupBy(input=below, keys=keys):
            return ("group", _essence(below), keys)
        case Distinct(input=below):
            return ("distinct", _essence(below))
        case Join(left=left, right=right, kind=kind, keys=keys, residual=residual):
            on = tuple((key.left, key.right, key.is_null_safe) for key in keys)
            rest = tuple((each.left, each.sign, each.right) for each in residual)
            return ("join", kind.value, _essence(left), _essence(right), on, rest)
