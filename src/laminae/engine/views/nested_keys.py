"""Views that group by a whole struct, array or map of a source while the type of a nested field changes.

Only top-level keys are hashed in canonical types. Widening a nested field changes the hash of its groups, so the
existing groups would not be found any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from laminae.schema.column import columns_of
from laminae.views.identity import stateful
from laminae.views.operators import ADDED, GroupBy, Linear, Read, inputs_of
from laminae.views.sql.sql_text import parse_expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.schema.column import Column
    from laminae.views.operators import Operator, Stateful, ViewPlan


def retyped_within(old: pa.Schema, new: pa.Schema) -> dict[int, str]:
    """Nested columns whose fields have changed their types: names by column id."""
    before = {node.id: node for node in columns_of(old)}
    return {
        node.id: node.name
        for node in columns_of(new)
        if node.id is not None and node.is_nested and (known := before.get(node.id)) and _differ(known, node)
    }


def names_in(view: ViewRecord, source: SourceRecord, columns: dict[int, str]) -> frozenset[str]:
    """The names of these source columns in the query of a view, in lower case."""
    names_by_id = {relation.casefold(): dict(pairs) for relation, pairs in view.written}.get(source.name.casefold(), {})
    written = (names_by_id.get(str(number), name) for number, name in columns.items())
    return frozenset(name.casefold() for name in (*written, *(f"{ADDED}{number}" for number in columns)))


def passes_whole(plan: ViewPlan, names: Collection[str]) -> bool:
    """Whether a view uses one of these columns as a whole in any expression."""
    return any(_is_whole(sql, names) for sql in _expressions(plan.root))


def groups_by_whole(plan: ViewPlan, names: Collection[str]) -> bool:
    """Whether a view groups or deduplicates by one of these columns.

    False positives are possible, false negatives are not.
    """
    return any(_is_whole(sql, names) for operator in stateful(plan.root) for sql in _keys(operator))


def _keys(operator: Stateful) -> Iterator[str]:
    if isinstance(operator, GroupBy):
        below = operator.input
        if isinstance(below, Linear) and isinstance(below.input, Read):
            yield from (expression.sql for expression in below.expressions if expression.name in operator.keys)
            return
    for below in inputs_of(operator):
        yield from _expressions(below)


def _expressions(operator: Operator) -> Iterator[str]:
    if isinstance(operator, Linear):
        yield from (expression.sql for expression in operator.expressions)
    for below in inputs_of(operator):
        yield from _expressions(below)


def _is_whole(sql: str, names: Collection[str]) -> bool:
    """Whether an expression uses a column without selecting a field of it."""
    columns = parse_expression(sql).find_all(exp.Column)
    return any(
        len(node.parts) == 1 and node.name.casefold() in names and not isinstance(node.parent, exp.Dot)
        for node in columns
    )


def _differ(old: Column, new: Column) -> bool:
    """Whether a common field has another type. Added and dropped fields do not change the hashes of the others."""
    before = {node.id if node.id is not None else node.name: node for node in old.children}
    for node in new.children:
        known = before.get(node.id if node.id is not None else node.name)
        if known is None:
            continue
        if _differ(known, node) if node.is_nested or known.is_nested else known.type != node.type:
            return True
    return False
