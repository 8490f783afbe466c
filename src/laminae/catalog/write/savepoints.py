"""Writes and restores savepoints, and clears the files of epochs that are no longer kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.model import SinkStatus, ViewStatus
from laminae.catalog.names import LONGEST_NAME, name_fault
from laminae.catalog.rows import instant_text
from laminae.errors import DuplicateObject, InvalidName, UnknownObject

if TYPE_CHECKING:
    from laminae.catalog.changelog_updates import ForgetSegments
    from laminae.catalog.updates import DropSavepoint, PutSavepoint, Rewind
    from laminae.catalog.write.transaction import Writing

KIND = "savepoint"


def put_savepoint(update: PutSavepoint, writing: Writing) -> int:
    if problem := name_fault(update.name):
        raise InvalidName(name=repr(update.name[:LONGEST_NAME]), kind=KIND, problem=problem)
    if writing.transaction.query("SELECT epoch FROM savepoints WHERE name = ?", update.name):
        raise DuplicateObject(kind=KIND, name=update.name)
    writing.transaction.execute(
        "INSERT INTO savepoints (name, epoch, created_at) VALUES (?, ?, ?)",
        update.name,
        writing.counters.epoch,
        instant_text(update.created_at),
    )
    return writing.counters.epoch


def drop_savepoint(update: DropSavepoint, writing: Writing) -> int:
    if not writing.transaction.execute("DELETE FROM savepoints WHERE name = ?", update.name):
        raise UnknownObject(kind=KIND, name=update.name, suggestion="")
    return 0


def rewind(update: Rewind, writing: Writing) -> int:
    rows = writing.transaction.query("SELECT epoch FROM savepoints WHERE name = ?", update.savepoint)
    if not rows:
        raise UnknownObject(kind=KIND, name=update.savepoint, suggestion="")
    (epoch,) = rows[0]
    writing.transaction.execute("DELETE FROM epochs WHERE epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM savepoints WHERE epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM advances WHERE epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM compacted_changes WHERE last_epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM manifests WHERE epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM manifests WHERE owner_id NOT IN (SELECT owner_id FROM advances)")
    writing.transaction.execute("UPDATE views SET applied = ? WHERE applied > ?", epoch, epoch)
    # A view created later has no state left and starts over.
    writing.transaction.execute(
        """UPDATE views SET state = ?, problem = NULL, applied = 0
           WHERE dropped_at IS NULL AND id NOT IN (SELECT owner_id FROM advances)""",
        ViewStatus.CREATING,
    )
    writing.transaction.execute("UPDATE epochs SET replayed_by = NULL WHERE replayed_by > ?", epoch)
    # A sink may have delivered more than its progress says, so each retracts what is after the savepoint.
    writing.transaction.execute(
        """UPDATE sinks SET state = ?, problem = NULL,
                            began = CASE WHEN began <= ? THEN began END,
                            progress = CASE WHEN began IS NULL OR began > ? THEN 0
                                            WHEN progress < ? THEN progress ELSE ? END
           WHERE dropped_at IS NULL""",
        SinkStatus.REWINDING,
        epoch,
        epoch,
        epoch,
        epoch,
    )
    return int(epoch)


def forget_segments(update: ForgetSegments, writing: Writing) -> int:
    forget = (
        "UPDATE epochs SET dead_letter_segment = NULL WHERE epoch = ?"
        if update.dead_letters
        else "UPDATE epochs SET segment = NULL WHERE epoch = ?"
    )
    return sum(writing.transaction.execute(forget, epoch) for epoch in update.epochs)
