"""Which views a change of a source would break: their text no longer holds, or their state would be other rows' state.

Such a change is refused with the view's name; every other change is followed by the views that run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.view_columns import view_plan
from laminae.engine.view_order import above, inputs_of
from laminae.errors import LaminaeError
from laminae.schema.column import columns_of
from laminae.views.dependencies import ALL_COLUMNS
from laminae.views.identity import operator_id, stateful
from laminae.views.operators import ADDED, Distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.schema.column import Column, Columns
    from laminae.views.operators import ViewPlan


def broken_views(
    source: SourceRecord, evolved: pa.Schema, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> list[tuple[str, str]]:
    """(view, what is wrong) of every view that could not go on over the evolved source."""
    after = [replace(each, schema=evolved) if each.id == source.id else each for each in sources]
    retyped, filled = set(_retyped(source.schema, evolved)), _filled(source.schema, evolved)
    found: list[tuple[str, str]] = []
    touched = set[str]()
    for view in above(source.name, views):
        reads_it = _reads(view, source, retyped) or not touched.isdisjoint(inputs_of(view))
        if reads_it:
            touched.add(view.name.casefold())
        try:
            old = view_plan(view.name, view.query, sources, views, view.written)
        except LaminaeError:
            # It does not run as it is: this change does not break it.
            continue
        try:
            new = view_plan(view.name, view.query, after, views, view.written)
        except LaminaeError as problem:
            found.append((view.name, str(problem)))
            continue
        if _operators(old) != _operators(new):
            found.append((view.name, "it groups by the columns of *, so its groups would be others"))
        elif reads_it and stateful(new.root):
            found.append((view.name, "it keeps values of the old type"))
        elif _has_defaults(new, filled):
            found.append((view.name, "it keeps distinct rows, and the default would make them other rows"))
    return found


def _reads(view: ViewRecord, source: SourceRecord, ids: set[int]) -> bool:
    read = [columns for name, columns in view.reads if name.casefold() == source.name.casefold()]
    return bool(ids) and any(columns == ALL_COLUMNS or not ids.isdisjoint(columns) for columns in read)


def _operators(plan: ViewPlan) -> list[str]:
    return [operator_id(each) for each in stateful(plan.root)]


def _has_defaults(plan: ViewPlan, filled: set[int]) -> bool:
    """Whether a column with a value in old rows, too, came to rows that are told apart by all their columns."""
    names = {name for each in stateful(plan.root) if isinstance(each, Distinct) for name in each.columns}
    return any(name.startswith(ADDED) and name.lstrip(ADDED) == str(each) for name in names for each in filled)


def _retyped(old: pa.Schema, new: pa.Schema) -> Iterator[int]:
    """Columns whose values are kept otherwise than before; also those around a new field that has a default."""
    before, now = dict(_known(columns_of(old))), dict(_known(columns_of(new)))
    for number, node in now.items():
        known = before.get(number)
        if known is None:
            continue
        fresh = [each for each in node.children if each.id not in before and each.default is not None]
        if fresh or (not node.is_nested and not _is_kept_alike(known.type, node.type)):
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


def _is_kept_alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether state of the one is read as state of the other: a wider type of the same family, which hashes alike."""
    if old == new:
        return True
    if pa.types.is_integer(old) and pa.types.is_integer(new):
        return bool(old.bit_width <= new.bit_width)
    if pa.types.is_floating(old) and pa.types.is_floating(new):
        return bool(old.bit_width <= new.bit_width)
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        return bool(old.scale == new.scale and old.precision <= new.precision)
    return {str(old), str(new)} in ({"string", "large_string"}, {"binary", "large_binary"})
