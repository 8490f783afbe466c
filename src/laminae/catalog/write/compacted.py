"""Writes compacted ranges of a changelog, and deletes them when larger ones contain their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from laminae.catalog.rows import instant_text, schema_bytes
from laminae.errors import ConcurrentChange

if TYPE_CHECKING:
    from laminae.catalog.changelog_updates import ForgetCompacted, PutCompacted
    from laminae.catalog.write.transaction import Writing

_IS_LIVE = "SELECT 1 FROM views WHERE id = ? AND dropped_at IS NULL"
# Epoch numbers are never reused: if both ends exist, no epoch between them was undone.
_ENDS = "SELECT count(*) FROM advances WHERE owner_id = ? AND epoch IN (?, ?)"
_RANGE = "SELECT 1 FROM compacted_changes WHERE owner_id = ? AND first_epoch = ? AND last_epoch = ?"
_ACROSS = """SELECT 1 FROM compacted_changes WHERE owner_id = ?
             AND ((first_epoch < ? AND last_epoch >= ? AND last_epoch < ?)
                  OR (first_epoch > ? AND first_epoch <= ? AND last_epoch > ?))"""


def put_compacted(update: PutCompacted, writing: Writing) -> int:
    transaction, owner = writing.transaction, update.owner_id
    first, last = update.first, update.last
    if not transaction.query(_IS_LIVE, owner):
        return 0
    if transaction.query(_ENDS, owner, first, last)[0][0] != len({first, last}):
        raise _changed(update, "that epochs of it were undone")
    if not all(transaction.query(_RANGE, owner, *epochs) for epochs in update.inputs):
        raise _changed(update, "that a range it was merged from is gone")
    if transaction.query(_RANGE, owner, first, last) or transaction.query(
        _ACROSS, owner, first, first, last, first, last, last
    ):
        raise _changed(update, "that another merge has been there")
    transaction.execute(
        """INSERT INTO compacted_changes (owner_id, first_epoch, last_epoch, files, row_count, is_plain, created_at,
                                          arrow_schema)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        owner,
        first,
        last,
        json.dumps(update.files),
        update.rows,
        int(update.is_plain),
        instant_text(update.created_at),
        schema_bytes(update.schema),
    )
    return last


def forget_compacted(update: ForgetCompacted, writing: Writing) -> int:
    return sum(
        writing.transaction.execute(
            "DELETE FROM compacted_changes WHERE owner_id = ? AND first_epoch = ? AND last_epoch = ?",
            update.owner_id,
            *epochs,
        )
        for epochs in update.ranges
    )


def _changed(update: PutCompacted, found: str) -> ConcurrentChange:
    expected = f"its changes of epochs {update.first} to {update.last}"
    return ConcurrentChange(name=update.name, expected=expected, found=found)
