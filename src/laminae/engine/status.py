"""How a home stands, from the catalog alone: any process can ask while another one runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.engine.changelogs import keeps_table
from laminae.engine.relations import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.port import Catalog

STATUS = pa.schema(
    [
        ("kind", pa.string()), ("name", pa.string()), ("state", pa.string()), ("version", pa.int64()),
        ("epochs", pa.int64()), ("rows", pa.int64()), ("dead_letters", pa.int64()), ("lag", pa.int64()),
        ("detail", pa.string()),
    ]
)  # fmt: skip


def status(catalog: Catalog) -> pa.Table:
    """Sources with what they have committed, views, sinks with how many epochs they lag, and who runs the home."""
    return table_of(STATUS, [*_sources(catalog), *_views(catalog), *_sinks(catalog), *_driver(catalog)])


def _sources(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for source in catalog.sources():
        totals = catalog.epoch_totals(source.id)
        waiting = sum(epoch.dead_letters for epoch in catalog.dead_letter_epochs(source.id))
        last = catalog.last_batch(source.id)
        detail = f"last epoch {last.epoch} at {last.committed_at.isoformat()}" if last is not None else "no epoch yet"
        state = None if source.problem is None else "failing"
        detail = source.problem or detail
        yield "source", source.name, state, source.version, totals.epochs, totals.rows, waiting, None, detail


def _views(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for view in catalog.views():
        detail = view.problem or f"from {', '.join(relation for relation, _ in view.reads)}"
        yield "view", view.name, view.state, None, None, None, catalog.refused(view.id), None, detail


def _sinks(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for sink in catalog.sinks():
        source, view = catalog.source(sink.relation), catalog.view(sink.relation)
        behind = catalog.epochs(source.id, sink.progress) if source is not None else ()
        lag = sum(epoch.segment is not None for epoch in behind)
        if owner := view or (source if source is not None and keeps_table(source) else None):
            lag = sum(each.rows > 0 for each in catalog.advances(owner.id, sink.progress))
        yield "sink", sink.name, sink.state, None, None, None, None, lag, sink.problem or f"from {sink.relation}"


def _driver(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    lease = catalog.lease()
    if lease is not None:
        detail = f"until {lease.expires_at.isoformat()} unless renewed"
        yield "driver", f"process {lease.pid} on {lease.host}", "holds the lease", *[None] * 5, detail
