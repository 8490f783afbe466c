"""How far event time has come for a view: the earliest of the sources below it, as of the epochs that are committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.options import SOURCE_OPTIONS, duration, option
from laminae.engine.view_order import inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog


def watermark_of(
    view: ViewRecord,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    times: Mapping[int, int | None],
    idle: frozenset[int] = frozenset(),
) -> int | None:
    """The least of (latest event time - delay), in microseconds. None while a source that counts has had none.

    A source without a watermark holds it back for ever; one that is idle does not count, unless all are.
    """
    below = list(sources_below(view, sources, views))
    counted = [source for source in below if source.id not in idle] or below
    marks = [_mark(source, times.get(source.id)) for source in counted]
    return None if not marks or None in marks else min(mark for mark in marks if mark is not None)


def sources_below(
    view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> Iterator[SourceRecord]:
    """The sources that a view stands on, through other views too, each once."""
    views_by_name = {each.name.casefold(): each for each in views}
    sources_by_name = {each.name.casefold(): each for each in sources}
    seen, waiting = set[str](), sorted(inputs_of(view))
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in sources_by_name:
            yield sources_by_name[name]
        elif name in views_by_name:
            waiting += sorted(inputs_of(views_by_name[name]))


def idle_sources(catalog: Catalog, sources: Sequence[SourceRecord], now: datetime) -> frozenset[int]:
    """Those that have had no rows for their `idle_timeout`."""
    found = set[int]()
    for source in sources:
        timeout = option(source.options, "idle_timeout", SOURCE_OPTIONS)
        if timeout is None:
            continue
        last = catalog.last_batch(source.id)
        since = source.created_at if last is None else last.committed_at
        if now - since >= duration(timeout):
            found.add(source.id)
    return frozenset(found)


def _mark(source: SourceRecord, time: int | None) -> int | None:
    return None if source.watermark is None or time is None else time - source.watermark.delay_us
