"""Which views an epoch affects and in which order, and which sources must alternate because a view connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.model import ViewStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord

LIVE, CREATING, WAITING, FAILED = ViewStatus.LIVE, ViewStatus.CREATING, ViewStatus.WAITING, ViewStatus.FAILED


def inputs_of(view: ViewRecord) -> set[str]:
    """The relations that a view reads, in lower case."""
    return {relation.casefold() for relation, _ in view.reads}


def in_order(views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """Topological order: each view after the views it reads, otherwise by name."""
    left = sorted(views, key=lambda view: view.name)
    ordered: list[ViewRecord] = []
    while left:
        pending = {view.name.casefold() for view in left}
        ready = [view for view in left if not inputs_of(view) & (pending - {view.name.casefold()})]
        ordered += ready or left
        left = [view for view in left if view not in ordered]
    return tuple(ordered)


def live_above(source: str, views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """The views that take part in an epoch of a source, in order: live ones that read only live views."""
    touched, idle = {source.casefold()}, set[str]()
    affected: list[ViewRecord] = []
    for view in in_order(views):
        reads, name = inputs_of(view), view.name.casefold()
        if view.state != LIVE or reads & idle:
            idle.add(name)
        elif reads & touched:
            touched.add(name)
            affected.append(view)
    return tuple(affected)


def above(name: str, views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """Every view that reads a relation, directly or through others, in order."""
    touched = {name.casefold()}
    affected: list[ViewRecord] = []
    for view in in_order(views):
        if inputs_of(view) & touched:
            touched.add(view.name.casefold())
            affected.append(view)
    return tuple(affected)


def connected(source: SourceRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> tuple[int, ...]:
    """The ids of the sources whose epochs share a view with this source, its own included, sorted."""
    group, before = {source.name.casefold()}, 0
    while len(group) != before:
        before = len(group)
        for view in views:
            own = {view.name.casefold(), *inputs_of(view)}
            if own & group:
                group |= own
    return tuple(sorted(_ids(group, sources)))


def _ids(names: set[str], sources: Sequence[SourceRecord]) -> Iterator[int]:
    return (source.id for source in sources if source.name.casefold() in names)
