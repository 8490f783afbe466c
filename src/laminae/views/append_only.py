"""Whether a view can take back a row that it has shown: what an append-only reader of it has to know beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.views.operators import Operator

FINAL_EMITS = frozenset({"ON WINDOW CLOSE", "FINAL"})
"""Strategies that show a row once, when nothing can change it any more."""


def retraction(root: Operator, emit: str | None, inputs: Mapping[str, bool]) -> str | None:
    """What makes the view take rows back, None when nothing does.

    `inputs` says for each relation, in lower case, whether that one does; one that is not named does.
    """
    return None if emit in FINAL_EMITS else _retraction(root, inputs)


def _retraction(operator: Operator, inputs: Mapping[str, bool]) -> str | None:
    match operator:
        case Read(relation=relation):
            return f"rows of {relation} change" if inputs.get(relation.casefold(), True) else None
        case Linear(input=below) | Distinct(input=below):
            return _retraction(below, inputs)
        case UnionAll(inputs=sides):
            return next(filter(None, (_retraction(side, inputs) for side in sides)), None)
        case GroupBy(input=below, calls=calls):
            # A group without an aggregate is there or not, like a row of a DISTINCT.
            if not calls:
                return _retraction(below, inputs)
            return "the aggregates of a group change with its rows"
        case _:
            assert_never(operator)
