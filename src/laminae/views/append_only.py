"""Whether a view can retract a row that it has emitted: append-only consumers must know this in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from laminae.views.operators import Distinct, GroupBy, Join, JoinKind, Linear, Read, UnionAll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from laminae.views.operators import Operator

FINAL_EMITS = frozenset({"ON WINDOW CLOSE", "FINAL"})
"""Strategies that emit a row of a window once, when it can no longer change."""


def retraction(root: Operator, emit: str | None, has_window: bool, inputs: Mapping[str, bool]) -> str | None:
    """The reason why the view retracts rows; None if it never does.

    `inputs` says for each relation, by its name in lower case, whether it retracts; relations that are missing from it
    do. Without a window nothing closes a group: FINAL emits its changes at the end of every bounded run.
    """
    return None if has_window and emit in FINAL_EMITS else _retraction(root, inputs)


def _retraction(operator: Operator, inputs: Mapping[str, bool]) -> str | None:
    match operator:
        case Read(relation=relation):
            return f"rows of {relation} change" if inputs.get(relation.casefold(), True) else None
        case Linear(input=below) | Distinct(input=below):
            return _retraction(below, inputs)
        case UnionAll(inputs=sides):
            return next(filter(None, (_retraction(side, inputs) for side in sides)), None)
        case GroupBy(input=below, calls=calls):
            # A group without aggregates exists or does not, like a row of a DISTINCT.
            if not calls:
                return _retraction(below, inputs)
            return "the aggregates of a group change with its rows"
        case Join(left=left, right=right, kind=kind):
            if kind in (JoinKind.INNER, JoinKind.SEMI):
                return _retraction(left, inputs) or _retraction(right, inputs)
            return "a row without a partner is retracted when one arrives"
        case _:
            assert_never(operator)
