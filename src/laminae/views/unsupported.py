"""SQL that a materialized view does not support in this version: refused by name, with its position, at creation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.errors import InvalidName, UnsupportedSql
from laminae.schema.identifiers import INTERNAL
from laminae.trace.spec import HASH
from laminae.views.dependencies import CHANGES, EXACT
from laminae.views.functions import GENERATOR_NODES, KEPT, KEPT_NAMES, NOT_DETERMINISTIC_NODES, function_name
from laminae.views.operators import Read, inputs_of
from laminae.views.sql.function_names import AGGREGATES, GENERATORS, NOT_DETERMINISTIC, OUTSIDE, RANKINGS
from laminae.views.sql.nesting import refuse_deep_nesting
from laminae.views.sql.supported_nodes import not_understood
from laminae.zset.changelog import EPOCH, OP, TIMESTAMP, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from laminae.views.operators import Operator

# The changelog of a view adds the first four to its columns; the state of a DISTINCT adds the last.
RESERVED = frozenset((EPOCH, OP, TIMESTAMP, WEIGHT, HASH))
# These hide a column of a relation. The others may exist in a relation, because they are not read from it by name.
HIDDEN = frozenset((WEIGHT,))
REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
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
CHANGES_OF = ("CHANGES OF", "Read the relation itself: a view always processes its changes.")
# A row may merge two sessions, even of earlier epochs: per-group state cannot express that.
SESSION_WINDOW = "session_window"
STAR = (
    "* inside an expression",
    "Name the columns: * is supported only in the SELECT list and in COUNT(*).",
)
WINDOW_OF_JOIN = ("GROUP BY window(...) of a join", "Group one relation by window in a view, and join that view.")
NESTED_EXCEPT = ("a field of a struct in EXCEPT", "Name the columns and fields of the view instead of *.")
STRUCT_STAR = ("* of a struct", "Name the fields, as in SELECT st.a, st.b.")
SUBQUERY = ("a sub-query in an expression", "Put the sub-query into FROM, or into a view of its own.")


REST = "A view is SELECT, FROM, JOIN, WHERE, GROUP BY, HAVING and UNION; use the rest in a plain SELECT on it."


def refuse_unsupported(query: exp.Expr, reading: int = EXACT) -> None:
    """Raise `UnsupportedSql` for the first unsupported construct, in the order of the tree.

    Constructs with specific advice are checked first, then everything that the planner does not know.
    """
    with refuse_deep_nesting():
        _refuse(query, _refusal)
        if reading == EXACT:
            _refuse(query, _unknown)


def _unknown(node: exp.Expr) -> tuple[str, str] | None:
    name = not_understood(node)
    return None if name is None else (name, REST)


def _refuse(query: exp.Expr, refusal: Callable[[exp.Expr], tuple[str, str] | None]) -> None:
    for node in query.walk(bfs=False):
        reason = refusal(node)
        if reason is not None:
            raise unsupported(node, reason)


def unsupported(node: exp.Expr, refusal: tuple[str, str]) -> UnsupportedSql:
    """The error for a node, with the construct's name and advice."""
    construct, advice = refusal
    line, column = _place(node)
    return UnsupportedSql(line=line, column=column, construct=f"{construct} in a materialized view", advice=advice)


def _refusal(node: exp.Expr) -> tuple[str, str] | None:
    for kind, refusal in REFUSED.items():
        if isinstance(node, kind):
            return refusal
    if isinstance(node, exp.Table) and node.db.casefold() == CHANGES:
        return CHANGES_OF
    if isinstance(node, exp.Query) and not isinstance(
        node.parent, exp.From | exp.Join | exp.CTE | exp.Union | exp.Subquery | None
    ):
        return SUBQUERY
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join | exp.Union | None):
        return SUBQUERY
    if isinstance(node, exp.Star):
        return _star_refusal(node)
    return _function_refusal(node)


def _star_refusal(star: exp.Star) -> tuple[str, str] | None:
    """Refuse `*` inside an expression: Spark would include the internal columns of each epoch's rows."""
    above = star.parent
    whole = above if isinstance(above, exp.Column) else star
    if isinstance(whole.parent, exp.Select) and whole.arg_key == "expressions":
        return None
    is_plain = whole is star and not any(star.args.values())
    return None if isinstance(above, exp.Count) and star.arg_key == "this" and is_plain else STAR


def _function_refusal(node: exp.Expr) -> tuple[str, str] | None:
    name = function_name(node)
    if name in NOT_DETERMINISTIC or name in OUTSIDE or isinstance(node, NOT_DETERMINISTIC_NODES):
        return (
            f"{name or node.key} (not deterministic)",
            "Use a column of the source: a view must be deterministic.",
        )
    if name == SESSION_WINDOW:
        return SESSION_WINDOW, "Use window(ts, ...), or session_window in a plain SELECT on the rows of the view."
    if name in GENERATORS or isinstance(node, GENERATOR_NODES):
        return f"{name}", "Explode the column before it reaches the source."
    if name in RANKINGS:
        return REFUSED[exp.Window]
    if type(node) not in KEPT and (isinstance(node, exp.AggFunc) or name in AGGREGATES):
        return f"the aggregate {name}", f"A view supports {KEPT_NAMES}; use others in a plain SELECT on it."
    return None


def _place(node: exp.Expr) -> tuple[int, int]:
    """Line and column of the first name inside the construct: sqlglot records positions for names only."""
    for inner in node.walk(bfs=False):
        if "line" in inner.meta:
            return int(inner.meta["line"]), int(inner.meta["col"]) - len(inner.name) + 1
    return 1, 1


def refuse_reserved(root: Operator) -> None:
    """Raise `InvalidName` for the first column of an operator with a reserved name."""
    taken = HIDDEN if isinstance(root, Read) else RESERVED
    for name in root.columns:
        if name.casefold() in taken or name.casefold().startswith(INTERNAL):
            where = f"changes have a column of their own with this name ({', '.join(sorted(RESERVED))} are reserved)"
            raise InvalidName(name=name, kind="column of a materialized view", problem=where)
    for below in inputs_of(root):
        refuse_reserved(below)
