"""How savepoints are made and gone back to, and what epochs forget when their files are no longer kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laminae.catalog.names import LONGEST_NAME, name_fault
from laminae.catalog.rows import instant_text
from laminae.errors import DuplicateObject, InvalidName, UnknownObject

if TYPE_CHECKING:
    from laminae.catalog.updates import DropSavepoint, ForgetSegments, PutSavepoint, Rewind
    from laminae.catalog.writing import Writing

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
    found = writing.transaction.query("SELECT epoch, created_at FROM savepoints WHERE name = ?", update.savepoint)
    if not found:
        raise UnknownObject(kind=KIND, name=update.savepoint, suggestion="")
    epoch, created_at = found[0]
    writing.transaction.execute("DELETE FROM epochs WHERE epoch > ?", epoch)
    writing.transaction.execute("DELETE FROM savepoints WHERE epoch > ?", epoch)
    writing.transaction.execute("UPDATE epochs SET replayed_by = NULL WHERE replayed_by > ?", epoch)
    writing.transaction.execute(
        """UPDATE sinks SET progress = 0, state = 'rewinding', problem = NULL
           WHERE dropped_at IS NULL AND created_at > ?""",
        created_at,
    )
    writing.transaction.execute(
        """UPDATE sinks SET progress = ?, state = 'rewinding', problem = NULL
           WHERE dropped_at IS NULL AND progress > ?""",
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
