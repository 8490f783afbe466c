"""Which views an epoch touches and in which order, and which sources take turns because a view connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from laminae.catalog.model import SourceRecord, ViewRecord

LIVE, CREATING, WAITING, FAILED = "live", "creating", "waiting", "failed"
"""A view that reads one that is not live waits with it."""


def inputs_of(view: ViewRecord) -> set[str]:
    """The relations that a view reads, in lower case."""
    return {relation.casefold() for relation, _ in view.reads}


def in_order(views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """Each behind the views that it reads; by name where that leaves a choice."""
    left = sorted(views, key=lambda view: view.name)
    found: list[ViewRecord] = []
    while left:
        unmade = {view.name.casefold() for view in left}
        ready = [view for view in left if not inputs_of(view) & (unmade - {view.name.casefold()})]
        found += ready or left
        left = [view for view in left if view not in found]
    return tuple(found)


def live_above(source: str, views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """The views that take part in an epoch of a source, in order: live, and above live views alone."""
    touched, idle = {source.casefold()}, set[str]()
    found: list[ViewRecord] = []
    for view in in_order(views):
        reads, name = inputs_of(view), view.name.casefold()
        if view.state != LIVE or reads & idle:
            idle.add(name)
        elif reads & touched:
            touched.add(name)
            found.append(view)
    return tuple(found)


def above(name: str, views: Sequence[ViewRecord]) -> tuple[ViewRecord, ...]:
    """Every view that reads a relation, directly or through others, in order."""
    touched = {name.casefold()}
    found: list[ViewRecord] = []
    for view in in_order(views):
        if inputs_of(view) & touched:
            touched.add(view.name.casefold())
            found.append(view)
    return tuple(found)


def connected(source: SourceRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]) -> tuple[int, ...]:
    """The ids of the sources whose epochs touch a common view with this one's, with its own, in order."""
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
