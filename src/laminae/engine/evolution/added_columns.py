"""Initial defaults: what older rows of a relation have in columns that were added later, also through `*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.model import SourceRecord
from laminae.engine.views.resolution import view_plan
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
    """Initial defaults by current column name. Columns without an entry are NULL in rows older than the column."""
    return {name: value for name, _, value in _filled(relation, sources, views)}


def _filled(
    relation: SourceRecord | ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> Iterator[tuple[str, str, pa.Scalar]]:
    """(name, id, value) per column. A view yields only the columns that its `*` has gained since its definition."""
    if isinstance(relation, SourceRecord):
        for node in columns_of(relation.schema):
            if node.initial_default is not None:
                yield node.name, str(node.id), default_scalar(node.initial_default, node.type, node.name)
        return
    plan = view_plan(relation.name, relation.query, sources, views, relation.written, relation.reading)
    read = {scan.relation.casefold() for scan in reads_in(plan.root)}
    relations: tuple[SourceRecord | ViewRecord, ...] = (*sources, *views)
    below = [upstream for upstream in relations if upstream.name.casefold() in read]
    known = {f"{ADDED}{id_}": value for upstream in below for _, id_, value in _filled(upstream, sources, views)}
    for name, id_ in zip(plan.columns, plan.ids, strict=True):
        if id_ in known:
            yield name, id_, known[id_]
