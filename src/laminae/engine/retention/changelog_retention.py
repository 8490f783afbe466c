"""Decides which changelog files of a view or a source table can be deleted. Pure: all facts are passed in.

Retention never deletes what a sink has not delivered, a view has not applied, or a savepoint refers to.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.catalog.changelog_updates import ForgetChanges, ForgetCompacted
from laminae.catalog.model import STARTING_SINKS
from laminae.engine.options import retention
from laminae.engine.options.rows import duration
from laminae.engine.retention.changelog_compaction import Coverage
from laminae.engine.retention.source_retention import GRACE, Removal, Stored
from laminae.engine.views.order import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from laminae.catalog.model import (
        AdvanceRecord,
        CompactedRecord,
        Options,
        SavepointRecord,
        SinkRecord,
        ViewRecord,
    )

RETENTION = "changelog_retention"


@dataclass(frozen=True, slots=True)
class ChangesFacts:
    """All facts about one changelog. `sinks` and `views` are its readers, `stored` its files by path.

    `is_table`: the rows of the view are the sum of its changelog and are stored nowhere else except in compacted
    ranges, which `stored` lists by directory. `emissions` are the epochs as of which downstream views read it.
    """

    owner_id: int
    name: str
    options: Options
    advances: Sequence[AdvanceRecord]
    sinks: Sequence[SinkRecord]
    views: Sequence[ViewRecord]
    savepoints: Sequence[SavepointRecord]
    settings: Mapping[str, str]
    stored: Sequence[Stored]
    is_table: bool = False
    compacted: Sequence[CompactedRecord] = ()
    emissions: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ChangesCollection:
    """`forgotten` is committed before any file is deleted."""

    removals: tuple[Removal, ...]
    forgotten: ForgetChanges | None
    replaced: ForgetCompacted | None = None


def plan_changes_collection(facts: ChangesFacts, now: datetime) -> ChangesCollection:
    old = _old(facts, now)
    late = _old_asides(facts, now, "late_retention", lambda advance: advance.late_files)
    refused = _old_asides(facts, now, "dead_letter_retention", lambda advance: advance.refused_files)
    kind_by_path = {file: "changes" for advance in old for file in advance.files}
    kind_by_path |= {file: "late rows" for advance in late for file in advance.late_files}
    kind_by_path |= {file: "dead letters" for advance in refused for file in advance.refused_files}
    held = _emitted(facts)
    kind_by_path |= {file: "changes" for advance in held for file in advance.held_files}
    replaced = _replaced(facts, now)
    kind_by_path |= {_directory(file): "compacted" for record in replaced for file in record.files}
    named = {
        file
        for advance in facts.advances
        for file in (*advance.files, *advance.late_files, *advance.refused_files, *advance.held_files)
    } | {_directory(file) for record in facts.compacted for file in record.files}
    removals = [
        Removal(kind_by_path[stored.path], facts.name, stored.path, stored.size)
        for stored in facts.stored
        if stored.path in kind_by_path
    ]
    removals += [
        Removal("orphan", facts.name, stored.path, stored.size)
        for stored in facts.stored
        if stored.path not in named and now - stored.modified > GRACE
    ]
    epochs = [tuple(advance.epoch for advance in advances) for advances in (old, late, refused, held)]
    ranges = tuple((record.first, record.last) for record in replaced)
    return ChangesCollection(
        tuple(removals),
        ForgetChanges(facts.owner_id, *epochs) if any(epochs) else None,
        ForgetCompacted(facts.owner_id, ranges) if ranges else None,
    )


def expired_until(facts: ChangesFacts, now: datetime) -> int:
    """The last epoch whose changes could be deleted once a compacted range contains its rows; 0 if there is none."""
    return max((advance.epoch for advance in _outdated(facts, now)), default=0) if facts.is_table else 0


def _old_asides(
    facts: ChangesFacts, now: datetime, name: str, files_of: Callable[[AdvanceRecord], tuple[str, ...]]
) -> list[AdvanceRecord]:
    """Epochs whose late rows or dead letters are older than their retention."""
    max_age = retention(facts.options, facts.settings, name)
    if max_age is None:
        return []
    modified = {stored.path: stored.modified for stored in facts.stored}
    return [
        advance
        for advance in facts.advances
        if files_of(advance) and all(now - modified[file] > max_age for file in files_of(advance) if file in modified)
    ]


def _old(facts: ChangesFacts, now: datetime) -> list[AdvanceRecord]:
    """Epochs whose segments no reader needs any more."""
    outdated = _outdated(facts, now)
    if not facts.is_table:
        return outdated
    coverage = Coverage.at(facts.compacted, _points(facts))
    # A SELECT that was planned before the merge still opens the segments.
    settled = Coverage.at([record for record in facts.compacted if now - record.created_at > GRACE], ())
    return list(
        itertools.takewhile(
            lambda advance: not (coverage.reads_segment(advance.epoch) or settled.reads_segment(advance.epoch)),
            outdated,
        )
    )


def _replaced(facts: ChangesFacts, now: datetime) -> list[CompactedRecord]:
    """Compacted ranges that larger ones have replaced for every reader, for longer than the grace period."""
    coverage = Coverage.at(facts.compacted, _points(facts))
    settled = [record for record in facts.compacted if now - record.created_at > GRACE]
    return [
        record
        for record in facts.compacted
        if not coverage.reads_range(record) and any(_contains(other, record) for other in settled)
    ]


def _contains(outer: CompactedRecord, inner: CompactedRecord) -> bool:
    return outer is not inner and outer.first <= inner.first and inner.last <= outer.last


def _points(facts: ChangesFacts) -> list[int]:
    """The epochs as of which the rows of the view may still be read.

    A sink's progress is one of them: it retracts the rows as of that epoch when the view is replaced.
    """
    places = [savepoint.epoch for savepoint in facts.savepoints]
    places += [sink.progress for sink in facts.sinks]
    places += [view.applied for view in facts.views if view.state != LIVE]
    return [*places, *facts.emissions]


def _directory(file: str) -> str:
    return file.rpartition("/")[0]


def _kept_for(facts: ChangesFacts) -> timedelta | None:
    """The retention of the changelog; None keeps it forever.

    A changelog that is the table of its view has no default retention: without an explicit setting it is kept.
    """
    if not facts.is_table:
        return retention(facts.options, facts.settings, RETENTION)
    text = dict(facts.options).get(RETENTION) or facts.settings.get(RETENTION)
    return None if text is None else duration(text)


def _outdated(facts: ChangesFacts, now: datetime) -> list[AdvanceRecord]:
    """Expired epochs, without gaps: readers of changes rely on one epoch from which on the changelog is complete."""
    max_age = _kept_for(facts)
    if max_age is None:
        return []
    # Restoring a savepoint restores the changelog as of its epoch, so those segments stay.
    pinned = max((savepoint.epoch for savepoint in facts.savepoints), default=0)
    reached = min(_reached(facts), default=None)
    modified = {stored.path: stored.modified for stored in facts.stored}
    candidates = [advance for advance in facts.advances if advance.epoch > pinned and advance.files]
    return list(
        itertools.takewhile(
            lambda advance: (
                (reached is None or advance.epoch <= reached)
                and all(now - modified[file] > max_age for file in advance.files if file in modified)
            ),
            candidates,
        )
    )


def _emitted(facts: ChangesFacts) -> list[AdvanceRecord]:
    """Epochs whose held-back changes a timer has emitted since. Those up to the last savepoint stay for a restore."""
    pinned = max((savepoint.epoch for savepoint in facts.savepoints), default=0)
    last = max((advance.epoch for advance in facts.advances if advance.bound is not None), default=0)
    return [advance for advance in facts.advances if advance.held_files and pinned < advance.epoch <= last]


def _reached(facts: ChangesFacts) -> list[int]:
    """The progress of each reader. A live view applies every epoch as it is committed and needs no older ones."""
    sinks = [0 if sink.state in STARTING_SINKS else sink.progress for sink in facts.sinks]
    return [*sinks, *(view.applied for view in facts.views if view.state != LIVE)]
