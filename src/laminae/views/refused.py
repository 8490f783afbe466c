"""What a materialized view cannot hold in this version: refused by name, with its place, when the view is created."""

from __future__ import annotations

from sqlglot import exp

from laminae.errors import UnsupportedSql
from laminae.views.dependencies import CHANGES
from laminae.views.functions import (
    GENERATOR_NODES,
    GENERATORS,
    KEPT,
    KEPT_NAMES,
    NOT_DETERMINISTIC,
    NOT_DETERMINISTIC_NODES,
    OTHER_AGGREGATES,
    function_name,
)

REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Join: ("JOIN", "Keep one relation in each view; join the views in a plain SELECT."),
    exp.Lateral: ("LATERAL VIEW", "Explode the column before it reaches the source."),
    exp.Window: ("a window function (OVER)", "Use GROUP BY with window(ts, ...), or OVER in a SELECT on the view."),
    exp.Order: ("ORDER BY", "A view is a set: put ORDER BY into the SELECT that reads it."),
    exp.Limit: ("LIMIT", "A view is a set: put LIMIT into the SELECT that reads it."),
    exp.Intersect: ("INTERSECT", "Use a plain SELECT on the views."),
    exp.Except: ("EXCEPT", "Use a plain SELECT on the views."),
    exp.Rollup: ("ROLLUP", "Make one view for each set of keys."),
    exp.Cube: ("CUBE", "Make one view for each set of keys."),
    exp.GroupingSets: ("GROUPING SETS", "Make one view for each set of keys."),
    exp.Qualify: ("QUALIFY", "Filter in a SELECT on the view."),
    exp.TableSample: ("TABLESAMPLE", "A view holds every row; sample in a SELECT on it."),
    exp.Pivot: ("PIVOT", "Use one aggregate with FILTER for each column."),
}
CHANGES_OF = ("CHANGES OF", "Read the relation itself: a view is given its changes as they come.")
SUBQUERY = ("a sub-query in an expression", "Put the sub-query into FROM, or into a view of its own.")


def refuse_unsupported(query: exp.Expr) -> None:
    """Raise `UnsupportedSql` for the first construct, in the order of the tree, that no view can hold."""
    for node in query.walk(bfs=False):
        found = _refusal(node)
        if found is not None:
            construct, advice = found
            line, column = _place(node)
            where = f"{construct} in a materialized view"
            raise UnsupportedSql(line=line, column=column, construct=where, advice=advice)


def _refusal(node: exp.Expr) -> tuple[str, str] | None:
    for kind, found in REFUSED.items():
        if isinstance(node, kind):
            return found
    if isinstance(node, exp.Table) and node.db.casefold() == CHANGES:
        return CHANGES_OF
    if isinstance(node, exp.Query) and not isinstance(
        node.parent, exp.From | exp.CTE | exp.Union | exp.Subquery | None
    ):
        return SUBQUERY
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Union | None):
        return SUBQUERY
    return _function_refusal(node)


def _function_refusal(node: exp.Expr) -> tuple[str, str] | None:
    name = function_name(node)
    if name in NOT_DETERMINISTIC or isinstance(node, NOT_DETERMINISTIC_NODES):
        return (
            f"{name or node.key} (not deterministic)",
            "Use a column of the source: a view must give the same answer twice.",
        )
    if name in GENERATORS or isinstance(node, GENERATOR_NODES):
        return f"{name}", "Explode the column before it reaches the source."
    if (isinstance(node, exp.AggFunc) and type(node) not in KEPT) or name in OTHER_AGGREGATES:
        return f"the aggregate {name}", f"A view keeps {KEPT_NAMES}; use others in a plain SELECT on it."
    return None


def _place(node: exp.Expr) -> tuple[int, int]:
    """Line and column within the query of the first name inside the construct: sqlglot places names alone."""
    for inner in node.walk(bfs=False):
        if "line" in inner.meta:
            return int(inner.meta["line"]), int(inner.meta["col"]) - len(inner.name) + 1
    return 1, 1
