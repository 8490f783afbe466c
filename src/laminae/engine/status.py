"""The status of a home, from the catalog alone: any process can query it while another one runs the home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.model import PendingRecord, PendingState, QueryStatus
from laminae.engine.catalog_query.introspection import table_of
from laminae.engine.source_spec import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laminae.catalog.port import Catalog

STATUS = pa.schema(
    [
        ("kind", pa.string()), ("name", pa.string()), ("state", pa.string()), ("version", pa.int64()),
        ("epochs", pa.int64()), ("rows", pa.int64()), ("dead_letters", pa.int64()), ("lag", pa.int64()),
        ("pending_changes", pa.int64()), ("detail", pa.string()),
    ]
)  # fmt: skip


def status(catalog: Catalog) -> pa.Table:
    """Sources with their committed totals, views, sinks with their lag in epochs, and the holder of the lease."""
    return table_of(STATUS, [*_sources(catalog), *_views(catalog), *_sinks(catalog), *_driver(catalog)])


def _sources(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for source in catalog.sources():
        totals = catalog.epoch_totals(source.id)
        waiting = sum(epoch.dead_letters for epoch in catalog.dead_letter_epochs(source.id))
        last = catalog.last_batch(source.id)
        detail = f"last epoch {last.epoch} at {last.committed_at.isoformat()}" if last is not None else "no epoch yet"
        state = None if source.problem is None else QueryStatus.FAILING
        pending = [change for change in catalog.pending() if _waits(change, source.name)]
        changes = (f"change {change.id} waits for CONFIRM or REJECT: {change.summary}" for change in pending)
        detail = "; ".join((source.problem or detail, *changes))
        counts = (source.version, totals.epochs, totals.rows, waiting, None, len(pending))
        yield "source", source.name, state, *counts, detail


def _waits(change: PendingRecord, source: str) -> bool:
    return change.source_name == source and change.state is PendingState.PENDING


def _views(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for view in catalog.views():
        detail = view.problem or f"from {', '.join(relation for relation, _ in view.reads)}"
        yield "view", view.name, view.state, None, None, None, catalog.refused(view.id), None, None, detail


def _sinks(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    for sink in catalog.sinks():
        source, view = catalog.source(sink.relation), catalog.view(sink.relation)
        behind = catalog.epochs(source.id, sink.progress) if source is not None else ()
        lag = sum(epoch.segment is not None for epoch in behind)
        if owner := view or (source if source is not None and spec_of(source).keeps_table else None):
            lag = sum(advance.rows > 0 for advance in catalog.advances(owner.id, sink.progress))
        yield "sink", sink.name, sink.state, None, None, None, None, lag, None, sink.problem or f"from {sink.relation}"


def _driver(catalog: Catalog) -> Iterator[tuple[object, ...]]:
    lease = catalog.lease()
    if lease is not None:
        detail = f"until {lease.expires_at.isoformat()} unless renewed"
        yield "driver", f"process {lease.pid} on {lease.host}", "holds the lease", *[None] * 6, detail
