"""Replaced views that are still read: a sink has to retract the rows that it delivered of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog


def delivered_before(catalog: Catalog, view: ViewRecord, progress: int) -> ViewRecord | None:
    """The former version of this view whose rows a sink at `progress` has delivered, if any."""
    former = catalog.replaced(view.id)
    if former is None or catalog.advances(view.id, 0, progress):
        return None
    while former is not None and not (advances := catalog.advances(former.id, 0, progress)):
        former = catalog.replaced(former.id)
    # A former view without rows has already emptied the sink when it replaced its own predecessor.
    return former if former is not None and any(advance.rows for advance in advances) else None


def still_read(catalog: Catalog) -> frozenset[int]:
    """The ids of replaced views whose files must stay: for a sink (also at the progress it would have after restoring a
    savepoint), and for a view that has not taken over the state yet.
    """
    savepoints = [savepoint.epoch for savepoint in catalog.savepoints()]
    views = {view.name.casefold(): view for view in catalog.views()}
    ids = {view.former for view in views.values() if view.former is not None}
    for sink in catalog.sinks():
        view = views.get(sink.relation.casefold())
        if view is not None:
            places = (sink.progress, *(epoch for epoch in savepoints if epoch < sink.progress))
            formers = (delivered_before(catalog, view, place) for place in places)
            ids |= {former.id for former in formers if former is not None}
    return frozenset(ids)
