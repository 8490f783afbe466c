"""Which views a schema change of a source would break: the query becomes invalid, or the state does not fit.

Such a change is refused with the view's name. Running views adopt every other change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.views.nested_keys import groups_by_whole, names_in, passes_whole, retyped_within
from laminae.engine.views.order import above, inputs_of
from laminae.engine.views.resolution import view_plan
from laminae.errors import LaminaeError
from laminae.schema.column import columns_of
from laminae.views.dependencies import ALL_COLUMNS
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import ADDED, Distinct, Join
from laminae.views.operators import inputs_of as operators_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.schema.column import Column, Columns
    from laminae.views.operators import ViewPlan


def broken_views(
    source: SourceRecord, evolved: pa.Schema, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> list[tuple[str, str]]:
    """(view, problem) for every view that could not continue over the evolved source."""
    after = [replace(other, schema=evolved) if other.id == source.id else other for other in sources]
    retyped, filled = set(_retyped(source.schema, evolved)), _filled(source.schema, evolved)
    within = retyped_within(source.schema, evolved)
    problems: list[tuple[str, str]] = []
    touched, carriers = set[str](), set[str]()
    for view in above(source.name, views):
        reads_it = _reads(view, source, retyped) or not touched.isdisjoint(inputs_of(view))
        if reads_it:
            touched.add(view.name.casefold())
        try:
            old = view_plan(view.name, view.query, sources, views, view.written, view.reading)
        except LaminaeError:
            # The view is broken already, so this change does not break it.
            continue
        try:
            new = view_plan(view.name, view.query, after, views, view.written, view.reading)
        except LaminaeError as problem:
            problems.append((view.name, str(problem)))
            continue
        names = names_in(view, source, within)
        reads_whole = not carriers.isdisjoint(inputs_of(view))
        if within and (reads_whole or passes_whole(new, names)):
            carriers.add(view.name.casefold())
        if _operators(old) != _operators(new):
            problems.append((view.name, "it groups by the columns of *, so its groups would change"))
        elif reads_it and stateful(new.root):
            problems.append((view.name, "its state has values of the old type"))
        elif within and stateful(new.root) and (reads_whole or groups_by_whole(new, names)):
            problems.append((view.name, "it groups by a column whose nested type would change"))
        elif _has_defaults(new, filled):
            problems.append((view.name, "its state has whole rows, and the default would change them"))
    return problems


def _reads(view: ViewRecord, source: SourceRecord, ids: set[int]) -> bool:
    read = [columns for name, columns in view.reads if name.casefold() == source.name.casefold()]
    return bool(ids) and any(columns == ALL_COLUMNS or not ids.isdisjoint(columns) for columns in read)


def _operators(plan: ViewPlan) -> list[str]:
    return [operator_id(operator) for operator in stateful(plan.root)]


def _has_defaults(plan: ViewPlan, filled: set[int]) -> bool:
    """Whether a DISTINCT or join of all columns would include a new column whose default also changes the old rows."""
    whole = (operator for operator in stateful(plan.root) if isinstance(operator, Distinct | Join))
    names = {name for operator in whole for below in operators_below(operator) for name in below.columns}
    added = {name.rpartition(".")[2].lstrip(ADDED) for name in names if name.startswith(ADDED)}
    return any(str(number) in added for number in filled)


def _retyped(old: pa.Schema, new: pa.Schema) -> Iterator[int]:
    """Columns whose values are stored differently than before, including parents of a new field that has a default."""
    before, now = dict(_known(columns_of(old))), dict(_known(columns_of(new)))
    for number, node in now.items():
        known = before.get(number)
        if known is None:
            continue
        fresh = [child for child in node.children if child.id not in before and child.default is not None]
        if fresh or (not node.is_nested and not is_kept_alike(known.type, node.type)):
            yield number


def _filled(old: pa.Schema, new: pa.Schema) -> set[int]:
    known = dict(_known(columns_of(old)))
    added = (node for node in columns_of(new) if node.id not in known and node.default is not None)
    return {node.id for node in added if node.id is not None}


def _known(columns: Columns) -> Iterator[tuple[int, Column]]:
    for node in columns:
        if node.id is not None:
            yield node.id, node
        yield from _known(node.children)


def is_kept_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether state of the old type can be read as the new one: a wider type of the same family, with equal hashes."""
    if old == new:
        return True
    if pa.types.is_integer(old) and pa.types.is_integer(new):
        return bool(old.bit_width <= new.bit_width)
    if pa.types.is_floating(old) and pa.types.is_floating(new):
        return bool(old.bit_width <= new.bit_width)
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale and old.precision <= new.precision)
    return {str(old), str(new)} in ({"string", "large_string"}, {"binary", "large_binary"})
