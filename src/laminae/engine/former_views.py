"""Views that were replaced, as far as somebody has yet to read them: a sink must take back what it was given of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laminae.catalog.model import ViewRecord
    from laminae.catalog.port import Catalog


def delivered_before(catalog: Catalog, view: ViewRecord, progress: int) -> ViewRecord | None:
    """The view before this one of which a sink that is at `progress` has been given something."""
    former = catalog.replaced(view.id)
    if former is None or catalog.advances(view.id, 0, progress):
        return None
    while former is not None and not (given := catalog.advances(former.id, 0, progress)):
        former = catalog.replaced(former.id)
    # One that had no rows has emptied the sink when it took the place of another itself.
    return former if former is not None and any(each.rows for each in given) else None


def still_read(catalog: Catalog) -> frozenset[int]:
    """The ids of replaced views whose files must stay: for a sink, also as it would be after going back to a savepoint,
    and for a view that has yet to take over the state.
    """
    savepoints = [savepoint.epoch for savepoint in catalog.savepoints()]
    views = {view.name.casefold(): view for view in catalog.views()}
    found = {view.former for view in views.values() if view.former is not None}
    for sink in catalog.sinks():
        view = views.get(sink.relation.casefold())
        if view is not None:
            places = (sink.progress, *(epoch for epoch in savepoints if epoch < sink.progress))
            formers = (delivered_before(catalog, view, place) for place in places)
            found |= {former.id for former in formers if former is not None}
    return frozenset(found)
