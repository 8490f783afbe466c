"""The kinds of nodes that the view planner understands, and for each kind the arguments that it handles.

Anything else in a query is refused by name. So a clause that sqlglot can parse but that is not in this table is never
silently dropped from a view.
"""

from __future__ import annotations

from sqlglot import exp

from laminae.views.sql.verbatim import Written

CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(("expressions", "distinct", "from_", "joins", "where", "group", "having", "with_")),
    exp.Union: frozenset(("this", "expression", "distinct", "with_")),
    exp.Subquery: frozenset(("this", "alias", "with_")),
    exp.With: frozenset(("expressions",)),
    exp.CTE: frozenset(("this", "alias")),
    exp.From: frozenset(("this",)),
    exp.Table: frozenset(("this", "db", "alias", "joins")),
    exp.Join: frozenset(("this", "on", "using", "side", "kind", "method")),
    exp.TableAlias: frozenset(("this", "columns")),
    exp.Where: frozenset(("this",)),
    exp.Having: frozenset(("this",)),
    exp.Group: frozenset(("expressions", "all")),
    exp.Distinct: frozenset(("expressions",)),
    exp.Star: frozenset(("except_",)),
    exp.Alias: frozenset(("this", "alias")),
    exp.Column: frozenset(("this", "table", "db", "catalog")),
    exp.Filter: frozenset(("this", "expression")),
    exp.Lambda: frozenset(("this", "expressions")),
    exp.Anonymous: frozenset(("this", "expressions")),
    exp.Count: frozenset(("this", "expressions")),
    **{kind: frozenset(("this",)) for kind in (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Paren, exp.Not, exp.Boolean)},
    **{
        kind: frozenset(("this", "expression"))
        for kind in (
            *(exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
            *(exp.Add, exp.Sub, exp.Mul, exp.BitwiseAnd, exp.BitwiseOr, exp.Dot),
        )
    },
    exp.Literal: frozenset(("this", "is_string")),
    exp.Identifier: frozenset(("this", "quoted")),
    exp.Var: frozenset(("this",)),
    exp.Null: frozenset(),
    Written: frozenset(("this", "expressions")),
}
"""For each kind of node, the arguments that the planner handles."""

NAMES: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Distinct, "on"): "DISTINCT ON",
    (exp.Select, "locks"): "FOR UPDATE",
    (exp.Select, "limit"): "LIMIT or FETCH FIRST",
    (exp.Select, "offset"): "OFFSET",
    (exp.Select, "windows"): "WINDOW",
    (exp.Select, "laterals"): "LATERAL VIEW",
    (exp.Select, "sort"): "SORT BY",
    (exp.Select, "cluster"): "CLUSTER BY",
    (exp.Select, "distribute"): "DISTRIBUTE BY",
    (exp.Select, "order"): "ORDER BY",
    (exp.Select, "operation_modifiers"): "a modifier after SELECT",
    (exp.Table, "version"): "VERSION AS OF or TIMESTAMP AS OF",
    (exp.Table, "sample"): "TABLESAMPLE",
    (exp.Table, "pivots"): "PIVOT or UNPIVOT",
    (exp.Join, "match_condition"): "ASOF JOIN",
    (exp.Join, "hint"): "a join hint",
    (exp.Union, "by_name"): "UNION BY NAME",
    (exp.With, "recursive"): "WITH RECURSIVE",
}
"""The SQL name of an argument, where it differs from the name in the tree."""


def not_understood(node: exp.Expr) -> str | None:
    """The name of what the planner would ignore in this node; None if it handles all of it."""
    parts = CLAUSES.get(type(node))
    if parts is None:
        return node.key.upper()
    for name, value in node.args.items():
        if name in parts or value is None or value is False or value == []:
            continue
        word = NAMES.get((type(node), name))
        return word or f"{name.strip('_').replace('_', ' ').upper()} of {node.key.upper()}"
    if isinstance(node, exp.Group) and node.args.get("all") is False:
        return "GROUP BY DISTINCT"
    return None
