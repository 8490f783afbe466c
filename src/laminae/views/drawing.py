"""An operator tree as lines that a person reads: what each operator does, and what state it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from laminae.views.operators import Distinct, GroupBy, Linear, Read, UnionAll, inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.views.operators import Operator

INDENT = "  "


def drawn(operator: Operator, depth: int = 0) -> Iterator[tuple[str, str]]:
    """(operator, what it does) from the root down, indented by depth."""
    yield INDENT * depth + type(operator).__name__, _told(operator)
    for inner in inputs_of(operator):
        yield from drawn(inner, depth + 1)


def _told(operator: Operator) -> str:
    match operator:
        case Read(relation=relation, columns=columns):
            return f"delta of {relation} ({', '.join(columns)})"
        case Linear(expressions=expressions, condition=condition):
            shown = ", ".join(
                each.sql if each.sql == each.name else f"{each.sql} AS {each.name}" for each in expressions
            )
            return f"{shown or 'no column'}{'' if condition is None else f' WHERE {condition}'}; no state"
        case UnionAll(inputs=inputs):
            return f"all rows of {len(inputs)} inputs; no state"
        case GroupBy(keys=keys, calls=calls):
            results = ", ".join(f"{call.function.value}({call.argument or ''}) AS {call.name}" for call in calls)
            return f"by {', '.join(keys) or 'nothing'}: {results or 'no aggregate'}; state: one row for each group"
        case Distinct(input=inner):
            return f"each ({', '.join(inner.columns)}) once; state: one row for each"
        case _:
            assert_never(operator)
