"""What a materialized view cannot hold in this version: refused by name, with its place, when the view is created."""

from __future__ import annotations

from sqlglot import exp

from laminae.errors import UnsupportedSql

REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Join: ("JOIN", "Keep one relation in each view; join the views in a plain SELECT."),
    exp.Lateral: ("LATERAL VIEW", "Explode the column before it reaches the source."),
    exp.Window: ("a window function (OVER)", "Use GROUP BY with window(ts, ...), or OVER in a SELECT on the view."),
    exp.Order: ("ORDER BY", "A view is a set: put ORDER BY into the SELECT that reads it."),
    exp.Limit: ("LIMIT", "A view is a set: put LIMIT into the SELECT that reads it."),
    exp.Intersect: ("INTERSECT", "Use a plain SELECT on the views."),
    exp.Except: ("EXCEPT", "Use a plain SELECT on the views."),
}


def refuse_unsupported(query: exp.Query) -> None:
    """Raise `UnsupportedSql` for the first construct, in the order of the tree, that no view can hold."""
    for node in query.walk(bfs=False):
        for kind, (construct, advice) in REFUSED.items():
            if isinstance(node, kind):
                line, column = _place(node)
                where = f"{construct} in a materialized view"
                raise UnsupportedSql(line=line, column=column, construct=where, advice=advice)


def _place(node: exp.Expr) -> tuple[int, int]:
    """Line and column within the query of the first name inside the construct: sqlglot places names alone."""
    for inner in node.walk(bfs=False):
        if "line" in inner.meta:
            return int(inner.meta["line"]), int(inner.meta["col"]) - len(inner.name) + 1
    return 1, 1
