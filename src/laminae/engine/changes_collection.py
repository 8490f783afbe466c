"""Which files of a view's changelog, or of a table's, may go. Pure: it is told what is there, like the rest of gc.

What a sink has yet to deliver, a view has yet to take along or a savepoint would find again stays, however old it is.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.catalog.updates import ForgetChanges
from laminae.engine.collection import GRACE, Removal, Stored
from laminae.engine.options import retention
from laminae.engine.view_order import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from laminae.catalog.model import AdvanceRecord, Options, SavepointRecord, SinkRecord, ViewRecord


@dataclass(frozen=True, slots=True)
class ChangesFacts:
    """All that is known of one changelog. `sinks` and `views` are those that read it, `stored` its files by path."""

    owner_id: int
    name: str
    options: Options
    advances: Sequence[AdvanceRecord]
    sinks: Sequence[SinkRecord]
    views: Sequence[ViewRecord]
    savepoints: Sequence[SavepointRecord]
    settings: Mapping[str, str]
    stored: Sequence[Stored]


@dataclass(frozen=True, slots=True)
class ChangesCollection:
    """`forgotten` is committed before any file goes."""

    removals: tuple[Removal, ...]
    forgotten: ForgetChanges | None


def plan_changes_collection(facts: ChangesFacts, now: datetime) -> ChangesCollection:
    old = _old(facts, now)
    late = _old_asides(facts, now, "late_retention", lambda advance: advance.late_files)
    refused = _old_asides(facts, now, "dead_letter_retention", lambda advance: advance.refused_files)
    going = {file: "changes" for advance in old for file in advance.files}
    going |= {file: "late rows" for advance in late for file in advance.late_files}
    going |= {file: "dead letters" for advance in refused for file in advance.refused_files}
    named = {file for each in facts.advances for file in (*each.files, *each.late_files, *each.refused_files)}
    removals = [
        Removal(going[each.path], facts.name, each.path, each.size) for each in facts.stored if each.path in going
    ]
    removals += [
        Removal("orphan", facts.name, each.path, each.size)
        for each in facts.stored
        if each.path not in named and now - each.modified > GRACE
    ]
    epochs = [tuple(advance.epoch for advance in found) for found in (old, late, refused)]
    return ChangesCollection(tuple(removals), ForgetChanges(facts.owner_id, *epochs) if any(epochs) else None)


def _old_asides(
    facts: ChangesFacts, now: datetime, name: str, files_of: Callable[[AdvanceRecord], tuple[str, ...]]
) -> list[AdvanceRecord]:
    """Epochs whose rows that were set aside are older than they are kept."""
    kept = retention(facts.options, facts.settings, name)
    if kept is None:
        return []
    modified = {each.path: each.modified for each in facts.stored}
    return [
        advance
        for advance in facts.advances
        if files_of(advance) and all(now - modified[file] > kept for file in files_of(advance) if file in modified)
    ]


def _old(facts: ChangesFacts, now: datetime) -> list[AdvanceRecord]:
    """Without a gap: whoever asks for changes is told one epoch from which on there are all."""
    kept = retention(facts.options, facts.settings, "changelog_retention")
    if kept is None:
        return []
    # Going back to a savepoint leaves the changelog as it was then.
    pinned = max((savepoint.epoch for savepoint in facts.savepoints), default=0)
    reached = min(_reached(facts), default=None)
    modified = {each.path: each.modified for each in facts.stored}
    found = [advance for advance in facts.advances if advance.epoch > pinned and advance.files]
    return list(
        itertools.takewhile(
            lambda advance: (
                (reached is None or advance.epoch <= reached)
                and all(now - modified[file] > kept for file in advance.files if file in modified)
            ),
            found,
        )
    )


def _reached(facts: ChangesFacts) -> list[int]:
    """How far each reader is; a live view takes every epoch along as it comes, and needs nothing that was."""
    sinks = [0 if sink.state in ("creating", "rewinding") else sink.progress for sink in facts.sinks]
    return [*sinks, *(view.applied for view in facts.views if view.state != LIVE)]
