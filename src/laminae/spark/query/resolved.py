"""Checks the analysed plan of a SELECT: it is refused if it has a node that is in no table of `nodes`.

Function names are checked before, in the parsed plan. This check sees what a name was resolved to, and which nodes the
analyzer inserted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.errors import UnsupportedSql
from laminae.spark.catalyst.plans.logical_plan import analyzed_nodes
from laminae.spark.query.nodes import EXPRESSIONS, OWN_FUNCTIONS, RESOLVED_PLANS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ADVICE = "A SELECT may only call functions of their arguments; it cannot read variables or files."


def refuse_unknown_nodes(frame: DataFrame, calls_own: bool) -> None:
    """`UnsupportedSql` for the first node that is not allowed. `calls_own`: the query calls user-defined functions that
    the home allows.
    """
    allowed = EXPRESSIONS | OWN_FUNCTIONS if calls_own else EXPRESSIONS
    for plan in analyzed_nodes(frame):
        if plan.kind not in RESOLVED_PLANS:
            raise not_allowed(plan.kind)
        for name in plan.expression_classes:
            if name not in allowed:
                raise not_allowed(name.rpartition(".")[2])


def not_allowed(node: str, line: int = 1, column: int = 1) -> UnsupportedSql:
    return UnsupportedSql(line=line, column=column, construct=f"{node} in a SELECT", advice=_ADVICE)
