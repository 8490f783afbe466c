"""What may go: files that no committed epoch names, and what retention no longer keeps. Pure: it is told what is there.

Nothing that a sink still has to deliver, a savepoint could go back to or a SELECT reads is ever in a collection.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from laminae.catalog.updates import ForgetSegments
from laminae.engine.options import FILE_CONNECTORS, option, retention

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from laminae.catalog.model import EpochRecord, SavepointRecord, SinkRecord, SourceRecord

GRACE = timedelta(hours=1)
"""A younger file may belong to an attempt that has not committed yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file or directory below the home, with the newest time of anything in it."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Removal:
    """`kind` says why it may go."""

    kind: str
    source: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Collection:
    """`forgotten` is committed before any file goes; `floor` is the first item of the log that stays, if some go."""

    removals: tuple[Removal, ...]
    forgotten: tuple[ForgetSegments, ...]
    floor: int | None = None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """All that is known of one source. `items` are the files of its log by number, `place` the item it has reached."""

    source: SourceRecord
    epochs: Sequence[EpochRecord]
    sinks: Sequence[SinkRecord]
    savepoints: Sequence[SavepointRecord]
    settings: Mapping[str, str]
    stored: Sequence[Stored]
    items: Mapping[int, Stored]
    places: Sequence[int]


def plan_collection(facts: SourceFacts, now: datetime) -> Collection:
    delivered = tuple(_delivered(facts, now))
    letters = tuple(_old_letters(facts, now))
    going = {epoch.segment for epoch in delivered} | {epoch.dead_letter_segment for epoch in letters}
    named = {path for epoch in facts.epochs for path in (epoch.segment, epoch.dead_letter_segment) if path} - going
    floor = _floor(facts, now)
    items = [item for number, item in facts.items.items() if floor is not None and number < floor]
    removals = [
        *_removals("delivered", facts.source, (each for each in facts.stored if each.path in going)),
        *_removals(
            "orphan",
            facts.source,
            (each for each in facts.stored if each.path not in named | going and now - each.modified > GRACE),
        ),
        *_removals("spool", facts.source, items),
    ]
    forgotten = (
        ForgetSegments(tuple(epoch.epoch for epoch in delivered)),
        ForgetSegments(tuple(epoch.epoch for epoch in letters), dead_letters=True),
    )
    return Collection(tuple(removals), tuple(each for each in forgotten if each.epochs), floor)


def _delivered(facts: SourceFacts, now: datetime) -> Iterator[EpochRecord]:
    """Epochs whose rows every sink has, for longer than changes are kept."""
    kept = retention((), facts.settings, "changelog_retention")
    reached = (sink.progress if sink.state not in ("creating", "rewinding") else 0 for sink in facts.sinks)
    progress = min(reached, default=None)
    for epoch in facts.epochs:
        is_old = kept is not None and now - epoch.committed_at > kept
        if epoch.segment is not None and is_old and (progress is None or epoch.epoch <= progress):
            yield epoch


def _old_letters(facts: SourceFacts, now: datetime) -> Iterator[EpochRecord]:
    """Dead letters that nobody put through in time. Those that became rows are read again by every SELECT.

    So are those of files: one may stand for a whole file, which must not be read if it is mended later.
    """
    if option(facts.source.options, "connector") in FILE_CONNECTORS:
        return
    kept = retention(facts.source.options, facts.settings, "dead_letter_retention")
    pinned = max((savepoint.epoch for savepoint in facts.savepoints), default=0)
    for epoch in facts.epochs:
        waits = epoch.dead_letter_segment is not None and epoch.replayed_by is None
        if waits and epoch.epoch > pinned and kept is not None and now - epoch.committed_at > kept:
            yield epoch


def _floor(facts: SourceFacts, now: datetime) -> int | None:
    """The first item to keep: behind it lies nothing that is young, unread, or needed to go back to a savepoint."""
    kept = retention(facts.source.options, facts.settings, "spool_retention")
    if kept is None or option(facts.source.options, "connector") != "push" or not facts.places:
        return None
    reached = min(facts.places)
    going = itertools.takewhile(
        lambda number: number < reached and now - facts.items[number].modified > kept, sorted(facts.items)
    )
    return max((number + 1 for number in going), default=None)


def _removals(kind: str, source: SourceRecord, found: Iterable[Stored]) -> Iterator[Removal]:
    return (Removal(kind, source.name, each.path, each.size) for each in found)
