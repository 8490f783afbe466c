"""What old rows of a relation have in columns that came later: the default of the source's column, also through `*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.model import SourceRecord
from laminae.engine.view_columns import view_plan
from laminae.schema.column import columns_of
from laminae.schema.defaults import default_scalar
from laminae.views.operators import ADDED, reads_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from laminae.catalog.model import ViewRecord


def added_defaults(
    relation: SourceRecord | ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> dict[str, pa.Scalar]:
    """By the name of a column today. In a column that is not there, rows from before it have NULL."""
    return {name: value for name, _, value in _filled(relation, sources, views)}


def _filled(
    relation: SourceRecord | ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> Iterator[tuple[str, str, pa.Scalar]]:
    """(name, id, value) of columns; those of a view are none but what a `*` has gained since the view was written."""
    if isinstance(relation, SourceRecord):
        for node in columns_of(relation.schema):
            if node.default is not None:
                yield node.name, str(node.id), default_scalar(node.default, node.type, node.name)
        return
    plan = view_plan(relation.name, relation.query, sources, views, relation.written)
    read = {each.relation.casefold() for each in reads_in(plan.root)}
    relations: tuple[SourceRecord | ViewRecord, ...] = (*sources, *views)
    below = [each for each in relations if each.name.casefold() in read]
    known = {f"{ADDED}{id_}": value for each in below for _, id_, value in _filled(each, sources, views)}
    for name, id_ in zip(plan.columns, plan.ids, strict=True):
        if id_ in known:
            yield name, id_, known[id_]
