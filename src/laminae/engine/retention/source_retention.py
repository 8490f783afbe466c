"""Decides which files of a source can be deleted: those that no committed epoch names, and those past retention.

Never includes anything that a sink still has to deliver, a savepoint may restore or a SELECT reads. Pure: all facts are
passed in.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from laminae.catalog.changelog_updates import ForgetSegments
from laminae.catalog.model import STARTING_SINKS
from laminae.engine.options import retention
from laminae.engine.source_spec import spec_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from laminae.catalog.model import EpochRecord, SavepointRecord, SinkRecord, SourceRecord

GRACE = timedelta(hours=1)
"""A younger file may belong to an attempt that has not committed yet."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file or directory below the home, with the latest modification time of anything in it."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Removal:
    """`kind` is the reason for the removal."""

    kind: str
    source: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Collection:
    """`forgotten` is committed before any file is deleted; `floor` is the first log item that stays, None if all do."""

    removals: tuple[Removal, ...]
    forgotten: tuple[ForgetSegments, ...]
    floor: int | None = None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """All facts about one source. `items` are the files of its log by number, `places` those its readers have reached.

    `rejected` are the ids of changes that a person has rejected.
    """

    source: SourceRecord
    epochs: Sequence[EpochRecord]
    sinks: Sequence[SinkRecord]
    savepoints: Sequence[SavepointRecord]
    settings: Mapping[str, str]
    stored: Sequence[Stored]
    items: Mapping[int, Stored]
    places: Sequence[int]
    rejected: Container[int] = ()


def plan_collection(facts: SourceFacts, now: datetime) -> Collection:
    delivered = tuple(_delivered(facts, now))
    letters = tuple(_old_letters(facts, now))
    removed = {epoch.segment for epoch in delivered} | {epoch.dead_letter_segment for epoch in letters}
    named = {path for epoch in facts.epochs for path in (epoch.segment, epoch.dead_letter_segment) if path} - removed
    floor = _floor(facts, now)
    items = [item for number, item in facts.items.items() if floor is not None and number < floor]
    removals = [
        *_removals("delivered", facts.source, (stored for stored in facts.stored if stored.path in removed)),
        *_removals(
            "orphan",
            facts.source,
            (stored for stored in facts.stored if stored.path not in named | removed and now - stored.modified > GRACE),
        ),
        *_removals("spool", facts.source, items),
    ]
    forgotten = (
        ForgetSegments(tuple(epoch.epoch for epoch in delivered)),
        ForgetSegments(tuple(epoch.epoch for epoch in letters), dead_letters=True),
    )
    return Collection(tuple(removals), tuple(update for update in forgotten if update.epochs), floor)


def _delivered(facts: SourceFacts, now: datetime) -> Iterator[EpochRecord]:
    """Epochs whose rows every sink has delivered and that are older than the changelog retention."""
    max_age = retention((), facts.settings, "changelog_retention")
    reached = (0 if sink.state in STARTING_SINKS else sink.progress for sink in facts.sinks)
    progress = min(reached, default=None)
    for epoch in facts.epochs:
        is_old = max_age is not None and now - epoch.committed_at > max_age
        if epoch.segment is not None and is_old and (progress is None or epoch.epoch <= progress):
            yield epoch


def _old_letters(facts: SourceFacts, now: datetime) -> Iterator[EpochRecord]:
    """Expired dead letters that were not replayed. Replayed ones stay: every SELECT reads them again as rows.

    Those that wait for a change stay until it is rejected: once it is confirmed, the next run replays them.

    Dead letters of files stay too: one may represent a whole file, which must not be read if it is repaired later.
    """
    if spec_of(facts.source).connector.items_are_files:
        return
    max_age = retention(facts.source.options, facts.settings, "dead_letter_retention")
    pinned = max((savepoint.epoch for savepoint in facts.savepoints), default=0)
    for epoch in facts.epochs:
        waits = epoch.dead_letter_segment is not None and epoch.replayed_by is None
        if epoch.waits_for is not None and epoch.waits_for not in facts.rejected:
            continue
        if waits and epoch.epoch > pinned and max_age is not None and now - epoch.committed_at > max_age:
            yield epoch


def _floor(facts: SourceFacts, now: datetime) -> int | None:
    """The first item to keep: every item before it is expired, read, and not needed to restore a savepoint."""
    max_age = retention(facts.source.options, facts.settings, "spool_retention")
    if max_age is None or not spec_of(facts.source).connector.takes_inserts or not facts.places:
        return None
    reached = min(facts.places)
    expired = itertools.takewhile(
        lambda number: number < reached and now - facts.items[number].modified > max_age, sorted(facts.items)
    )
    return max((number + 1 for number in expired), default=None)


def _removals(kind: str, source: SourceRecord, found: Iterable[Stored]) -> Iterator[Removal]:
    return (Removal(kind, source.name, stored.path, stored.size) for stored in found)
