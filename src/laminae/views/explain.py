"""Operator trees as text: line by line with the state of each operator, and in one sentence for the creator of a view.

Operators use internal names for keys and arguments; the sentence shows the expressions of the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from laminae.views.operators import Distinct, GroupBy, Join, Linear, Read, UnionAll, inputs_of, reads_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.views.operators import Operator, ViewPlan

INDENT = "  "
COUNT_ROWS = "COUNT(*)"


def drawn(operator: Operator, depth: int = 0) -> Iterator[tuple[str, str]]:
    """(operator, what it does) from the root down, indented by depth."""
    yield INDENT * depth + type(operator).__name__, _summary(operator)
    for inner in inputs_of(operator):
        yield from drawn(inner, depth + 1)


def _summary(operator: Operator) -> str:
    match operator:
        case Read(relation=relation, columns=columns):
            return f"delta of {relation} ({', '.join(columns)})"
        case Linear(expressions=expressions, condition=condition):
            shown = ", ".join(
                expression.sql if expression.sql == expression.name else f"{expression.sql} AS {expression.name}"
                for expression in expressions
            )
            return f"{shown or 'no column'}{'' if condition is None else f' WHERE {condition}'}; no state"
        case UnionAll(inputs=inputs):
            return f"all rows of {len(inputs)} inputs; no state"
        case GroupBy(keys=keys, calls=calls):
            results = ", ".join(f"{call.function.value}({call.argument or ''}) AS {call.name}" for call in calls)
            return f"by {', '.join(keys) or 'nothing'}: {results or 'no aggregate'}; state: one row for each group"
        case Distinct(input=inner):
            return f"each ({', '.join(inner.columns)}) once; state: one row for each"
        case Join(kind=kind, keys=keys, residual=residual):
            tests = [f"{key.left} {'<=>' if key.is_null_safe else '='} {key.right}" for key in keys]
            tests += [f"{each.left} {each.sign} {each.right}" for each in residual]
            return f"{kind.value} on {' AND '.join(tests)}; state: the rows of both sides, grows with them"
        case _:
            assert_never(operator)


def describe_view(plan: ViewPlan, emit: str | None) -> str:
    """One sentence: the columns, inputs, grouping and EMIT strategy of a view."""
    relations = dict.fromkeys(read.relation for read in reads_in(plan.root))
    parts = [f"({', '.join(plan.columns)}) from {', '.join(relations)}", *_steps(plan.root)]
    parts.append(f"one row for each {', '.join(plan.key)}" if plan.key else "rows without a key")
    parts.append(f"emits {(emit or 'CHANGES').removeprefix('EMIT ')}")
    return "; ".join(parts)


def _steps(operator: Operator) -> Iterator[str]:
    """The operations on the rows, in execution order."""
    for inner in inputs_of(operator):
        yield from _steps(inner)
    match operator:
        case GroupBy(keys=keys, calls=calls, input=inner):
            names = _expressions(inner)
            columns = dict.fromkeys(_window(names.get(key, key)) for key in keys)
            results = (
                COUNT_ROWS
                if call.argument is None
                else _call(call.function.value, names.get(call.argument, call.argument))
                for call in calls
            )
            grouped = f"grouped by {', '.join(columns)}" if keys else "all rows as one group"
            yield f"{grouped}: {', '.join(dict.fromkeys(results)) or 'no aggregate'}"
        case Distinct():
            yield "each row once"
        case Join(kind=kind):
            yield f"{kind.value} join"
        case UnionAll(inputs=inputs):
            yield f"{len(inputs)} inputs together"
        case _:
            pass


def _expressions(operator: Operator) -> dict[str, str]:
    return (
        {expression.name: expression.sql for expression in operator.expressions} if isinstance(operator, Linear) else {}
    )


def _window(sql: str) -> str:
    """A window is stored as two columns, its start and its end, but is described as one."""
    return sql.removesuffix(".start").removesuffix(".end") if ")." in sql else sql


def _call(function: str, argument: str) -> str:
    head, opens, _ = function.partition("(")
    return f"{head}({'DISTINCT ' if 'DISTINCT' in function else ''}{argument})" if opens else f"{function}({argument})"
