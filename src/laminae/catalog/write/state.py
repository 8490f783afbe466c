"""Writes the state and the changelog of a view, or of a source's table, with the epoch that produced them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from laminae.catalog.rows import schema_bytes
from laminae.errors import ConcurrentChange

if TYPE_CHECKING:
    from laminae.catalog.changelog_updates import ForgetChanges
    from laminae.catalog.updates import AdoptState, AdvanceOwner
    from laminae.catalog.write.transaction import Writing

_IS_LIVE = """SELECT 1 FROM views WHERE id = ? AND dropped_at IS NULL
              UNION ALL SELECT 1 FROM sources WHERE id = ? AND dropped_at IS NULL"""


def advance_owner(update: AdvanceOwner, writing: Writing) -> int:
    epoch, transaction = writing.epoch, writing.transaction
    # None: the epoch was already committed, and this update with it.
    if epoch is None or not transaction.query(_IS_LIVE, update.owner_id, update.owner_id):
        return 0
    last = transaction.query("SELECT coalesce(max(epoch), 0) FROM advances WHERE owner_id = ?", update.owner_id)[0][0]
    if last != update.expected:
        raise ConcurrentChange(
            name=update.name, expected=f"its state of epoch {update.expected}", found=f"that of {last}"
        )
    transaction.execute(
        """INSERT INTO advances (owner_id, epoch, files, row_count, anomalies, dropped, bound, late, late_files,
                                 arrow_schema, refused, refused_files, held_files, watermark)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        update.owner_id,
        epoch,
        json.dumps(update.files),
        update.rows,
        update.anomalies,
        update.dropped,
        update.bound,
        update.late,
        json.dumps(update.late_files),
        schema_bytes(update.schema),
        update.refused,
        json.dumps(update.refused_files),
        json.dumps(update.held_files),
        update.watermark,
    )
    for operator, shard, manifest in update.manifests:
        transaction.execute(
            "INSERT INTO manifests (owner_id, operator, shard, epoch, manifest) VALUES (?, ?, ?, ?, ?)",
            update.owner_id,
            operator,
            shard,
            epoch,
            manifest,
        )
    return epoch


def adopt_state(update: AdoptState, writing: Writing) -> int:
    epoch, transaction = writing.epoch, writing.transaction
    if epoch is None or not transaction.query(_IS_LIVE, update.owner_id, update.owner_id):
        return 0
    for operator in update.operators:
        transaction.execute(
            """INSERT INTO manifests (owner_id, operator, shard, epoch, manifest)
               SELECT ?, m.operator, m.shard, CAST(? AS BIGINT), m.manifest FROM manifests m
               WHERE m.owner_id = ? AND m.operator = ? AND m.epoch = (
                   SELECT max(o.epoch) FROM manifests o
                   WHERE o.owner_id = m.owner_id AND o.operator = m.operator AND o.shard = m.shard)""",
            update.owner_id,
            epoch,
            update.former_id,
            operator,
        )
    transaction.execute("UPDATE views SET former = NULL WHERE id = ?", update.owner_id)
    return 0


def forget_changes(update: ForgetChanges, writing: Writing) -> int:
    gone = (
        ("UPDATE advances SET files = '[]' WHERE owner_id = ? AND epoch = ?", update.epochs),
        ("UPDATE advances SET late_files = '[]' WHERE owner_id = ? AND epoch = ?", update.late),
        ("UPDATE advances SET refused_files = '[]' WHERE owner_id = ? AND epoch = ?", update.refused),
        ("UPDATE advances SET held_files = '[]' WHERE owner_id = ? AND epoch = ?", update.held),
    )
    return sum(
        writing.transaction.execute(forget, update.owner_id, epoch) for forget, epochs in gone for epoch in epochs
    )
