"""Writes updates of views, sinks, epochs and settings, and drops any object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laminae.catalog.model import READING, SinkStatus
from laminae.catalog.names import claim_name
from laminae.catalog.rows import instant_text, optional_text, options_text, reads_text, written_text
from laminae.catalog.write.sources import supersede_pending
from laminae.errors import CheckpointDiverged, ConcurrentChange

if TYPE_CHECKING:
    from laminae.catalog.updates import (
        CommitEpoch,
        DropObject,
        PutSetting,
        PutSink,
        PutView,
        SetSinkProgress,
        SetViewState,
    )
    from laminae.catalog.write.transaction import Writing


@dataclass(frozen=True, slots=True)
class _Drop:
    mark: str
    has_pending: bool


_DROPS = {
    "source": _Drop("UPDATE sources SET dropped_at = ? WHERE id = ? AND dropped_at IS NULL", has_pending=True),
    "view": _Drop("UPDATE views SET dropped_at = ? WHERE id = ? AND dropped_at IS NULL", has_pending=False),
    "sink": _Drop("UPDATE sinks SET dropped_at = ? WHERE id = ? AND dropped_at IS NULL", has_pending=False),
}


def drop_object(update: DropObject, writing: Writing) -> int:
    drop = _DROPS[update.kind]
    dropped_at = instant_text(update.dropped_at)
    if not writing.transaction.execute(drop.mark, dropped_at, update.object_id):
        raise _gone(update.name, update.object_id)
    if drop.has_pending:
        supersede_pending(writing, update.object_id, dropped_at)
    return 0


def put_view(update: PutView, writing: Writing) -> int:
    created_at = instant_text(update.created_at)
    if update.replaces is not None and not writing.transaction.execute(
        _DROPS["view"].mark, created_at, update.replaces
    ):
        raise _gone(update.name, update.replaces)
    key = claim_name(writing.transaction, "view", update.name)
    view_id = writing.next_object_id()
    writing.transaction.execute(
        """INSERT INTO views (id, name, name_key, query, emit, options, state, reads, created_at, definition_seq,
                              written, former, applied, reading, keeps_held)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)""",
        view_id,
        update.name,
        key,
        update.query,
        update.emit,
        options_text(update.options),
        update.state,
        reads_text(update.reads),
        created_at,
        writing.counters.definition_seq,
        written_text(update.written),
        update.replaces if update.keeps_state else None,
        # An epoch that was planned with the old view and commits later no longer changes it.
        writing.counters.epoch if update.keeps_state else 0,
        update.reading,
    )
    return view_id


def set_view_state(update: SetViewState, writing: Writing) -> int:
    changed = writing.transaction.execute(
        """UPDATE views SET state = ?, problem = ?, definition_seq = ?, applied = coalesce(?, applied)
           WHERE id = ? AND dropped_at IS NULL""",
        update.state,
        optional_text(update.problem),
        writing.counters.definition_seq,
        update.applied,
        update.view_id,
    )
    if not changed and not update.if_there:
        raise _gone("The view", update.view_id)
    return 0


def put_sink(update: PutSink, writing: Writing) -> int:
    key = claim_name(writing.transaction, "sink", update.name)
    sink_id = writing.next_object_id()
    writing.transaction.execute(
        """INSERT INTO sinks (id, name, name_key, relation, options, state, progress, created_at, definition_seq)
           VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)""",
        sink_id,
        update.name,
        key,
        update.relation,
        options_text(update.options),
        update.state,
        instant_text(update.created_at),
        writing.counters.definition_seq,
    )
    return sink_id


def set_sink_progress(update: SetSinkProgress, writing: Writing) -> int:
    changed = writing.transaction.execute(
        """UPDATE sinks SET began = coalesce(began, CASE WHEN state = ? AND ? <> ? THEN ? END),
                            progress = CASE WHEN progress < ? THEN ? ELSE progress END, state = ?, problem = ?
           WHERE id = ? AND dropped_at IS NULL""",
        SinkStatus.CREATING,
        update.state,
        SinkStatus.CREATING,
        update.progress,
        update.progress,
        update.progress,
        update.state,
        optional_text(update.problem),
        update.sink_id,
    )
    if not changed:
        raise _gone("The sink", update.sink_id)
    return 0


def commit_epoch(update: CommitEpoch, writing: Writing) -> int:
    offsets = (update.start_offsets, update.end_offsets)
    for epoch, *stored in writing.transaction.query(
        "SELECT epoch, start_offsets, end_offsets FROM epochs WHERE source_id = ? AND batch_id = ?",
        update.source_id,
        update.batch_id,
    ):
        if tuple(stored) == offsets:
            return int(epoch)
        raise CheckpointDiverged(
            batch=update.batch_id,
            source=update.source_name,
            problem=f"{stored[0]} to {stored[1]} is committed, {offsets[0]} to {offsets[1]} was offered",
        )
    writing.live_source(update.source_id, update.source_name, update.version)
    if update.options is not None and not writing.is_read(update.source_id):
        ((stored,),) = writing.transaction.query("SELECT options FROM sources WHERE id = ?", update.source_id)
        if stored != options_text(update.options):
            raise ConcurrentChange(name=update.source_name, expected="the options it was read with", found="others")
    epoch = writing.next_epoch()
    writing.transaction.execute(
        """INSERT INTO epochs (epoch, source_id, batch_id, start_offsets, end_offsets, version, row_count, committed_at,
                               segment, dead_letters, dead_letter_segment, event_time, waits_for, reading)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        epoch,
        update.source_id,
        update.batch_id,
        *offsets,
        update.version,
        update.rows,
        instant_text(update.committed_at),
        update.segment,
        update.dead_letters,
        update.dead_letter_segment,
        update.event_time,
        update.waits_for,
        READING,
    )
    for replayed in update.replays:
        taken = writing.transaction.execute(
            "UPDATE epochs SET replayed_by = ? WHERE epoch = ? AND source_id = ? AND replayed_by IS NULL",
            epoch,
            replayed,
            update.source_id,
        )
        if not taken:
            raise ConcurrentChange(name=update.source_name, expected="its dead letters", found="another replay of them")
    return epoch


def put_setting(update: PutSetting, writing: Writing) -> int:
    insert = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO "
    otherwise = "NOTHING" if update.if_absent else "UPDATE SET value = excluded.value"
    writing.transaction.execute(insert + otherwise, update.name, update.value)
    return 0


def _gone(name: str, object_id: int) -> ConcurrentChange:
    return ConcurrentChange(name=name, expected=f"with id {object_id}", found="that it was dropped or replaced")
