"""The watermark of a view: the minimum over the sources below it, as of the committed epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.engine.source_spec import spec_of
from laminae.engine.views.order import inputs_of
from laminae.views.emit import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from laminae.catalog.model import SourceRecord, ViewRecord
    from laminae.catalog.port import Catalog
    from laminae.views.emit import Strategy


def watermark_of(
    view: ViewRecord,
    sources: Sequence[SourceRecord],
    views: Sequence[ViewRecord],
    times: Mapping[int, int | None],
    idle: frozenset[int] = frozenset(),
) -> int | None:
    """The minimum of (latest event time - delay), in microseconds. None while a source that counts has had no event.

    A source without a watermark holds it back forever. An idle source does not count, unless all are idle.
    """
    below = list(sources_below(view, sources, views))
    counted = [source for source in below if source.id not in idle] or below
    marks = [_mark(source, times.get(source.id)) for source in counted]
    return None if not marks or None in marks else min(mark for mark in marks if mark is not None)


def closed_before(strategy: Strategy, watermark: int | None, bound: int | None, lateness: int) -> int | None:
    """Windows that end at or before this time are closed; None if no window is closed.

    `bound` is the window end up to which a view has emitted the changes it held back: closed windows stay closed.
    """
    reached = [] if watermark is None else [watermark - lateness]
    if bound is not None and strategy.kind in (Kind.ON_WINDOW_CLOSE, Kind.FINAL):
        reached.append(bound)
    elif bound is not None and strategy.kind is Kind.ON_WATERMARK:
        reached.append(bound - lateness)
    return max(reached, default=None)


def sources_below(
    view: ViewRecord, sources: Sequence[SourceRecord], views: Sequence[ViewRecord]
) -> Iterator[SourceRecord]:
    """The sources that a view depends on, also through other views, each once."""
    views_by_name = {other.name.casefold(): other for other in views}
    sources_by_name = {source.name.casefold(): source for source in sources}
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


def idle_sources(
    catalog: Catalog, sources: Sequence[SourceRecord], now: datetime, began: datetime | None = None
) -> frozenset[int]:
    """Sources that have had no rows for their `idle_timeout`.

    `began` is when the driver started to read: records that arrived while none was running are still unread. None:
    everything was read.
    """
    idle = set[int]()
    for source in sources:
        timeout = spec_of(source).idle_timeout
        if timeout is None:
            continue
        last = catalog.last_batch(source.id)
        since = source.created_at if last is None else last.committed_at
        if now - (since if began is None else max(since, began)) >= timeout:
            idle.add(source.id)
    return frozenset(idle)


def _mark(source: SourceRecord, time: int | None) -> int | None:
    return None if source.watermark is None or time is None else time - source.watermark.delay_us
