"""Writes updates of sources: their definition, their versions and the changes that wait for confirmation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from laminae.catalog.model import PendingState
from laminae.catalog.names import claim_name
from laminae.catalog.rows import ids_text, instant_text, optional_text, options_text, schema_bytes, shown_text
from laminae.catalog.updates import AddVersion
from laminae.errors import ChangeNotPending, ConcurrentChange, UnknownObject

if TYPE_CHECKING:
    from laminae.catalog.updates import (
        AddPending,
        BindWriter,
        CreateSource,
        RecordVerdict,
        ResolvePending,
        SetPosition,
        SetSourceOptions,
        SetSourceProblem,
    )
    from laminae.catalog.write.transaction import Writing

CREATED = "Created"
_RESOLUTIONS = frozenset({PendingState.CONFIRMED, PendingState.REJECTED})


def create_source(update: CreateSource, writing: Writing) -> int:
    key = claim_name(writing.transaction, "source", update.name)
    source_id = writing.next_object_id()
    watermark = update.watermark
    writing.transaction.execute(
        """INSERT INTO sources (id, name, name_key, version, next_column_id, options, primary_key, watermark_column,
                                watermark_delay_us, created_at, definition_seq)
           VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)""",
        source_id,
        update.name,
        key,
        update.next_column_id,
        options_text(update.options),
        ids_text(update.primary_key),
        watermark.column_id if watermark else None,
        watermark.delay_us if watermark else None,
        instant_text(update.applied_at),
        writing.counters.definition_seq,
    )
    first = AddVersion(
        source_id=source_id,
        source_name=update.name,
        expected_version=0,
        schema=update.schema,
        next_column_id=update.next_column_id,
        history=update.history,
        trigger=CREATED,
        compatibility=update.compatibility,
        forced=False,
        applied_at=update.applied_at,
        schema_id=None if update.writer is None else update.writer.schema_id,
        registry_version=None if update.writer is None else update.writer.registry_version,
    )
    _insert_version(first, writing)
    if update.writer is not None:
        bind_writer(replace(update.writer, source_id=source_id), writing)
    return source_id


def bind_writer(update: BindWriter, writing: Writing) -> int:
    place = (update.source_id, update.schema_id, writing.counters.epoch)
    # A binding for the next epoch can be replaced: no epoch has been read with it yet.
    writing.transaction.execute(
        "DELETE FROM writer_schemas WHERE source_id = ? AND schema_id = ? AND after_epoch = ?", *place
    )
    writing.transaction.execute(
        """INSERT INTO writer_schemas (source_id, schema_id, after_epoch, registry_version, applied, refusal, avro,
                                       arrow_schema)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        *place,
        update.registry_version,
        int(update.applied),
        optional_text(update.refusal),
        update.avro,
        schema_bytes(update.columns),
    )
    return 0


def add_version(update: AddVersion, writing: Writing) -> int:
    version, seq = writing.live_source(update.source_id, update.source_name, update.expected_version)
    if version != update.expected_version:
        raise ConcurrentChange(name=update.source_name, expected=update.expected_version, found=version)
    if update.expected_seq not in (None, seq):
        raise ConcurrentChange(name=update.source_name, expected=update.expected_version, found="other options")
    writing.transaction.execute(
        "UPDATE sources SET version = ?, next_column_id = ?, definition_seq = ? WHERE id = ?",
        version + 1,
        update.next_column_id,
        writing.counters.definition_seq,
        update.source_id,
    )
    _insert_version(update, writing)
    supersede_pending(writing, update.source_id, instant_text(update.applied_at))
    return version + 1


def set_source_options(update: SetSourceOptions, writing: Writing) -> int:
    _, seq = writing.live_source(update.source_id, update.source_name, update.expected_seq)
    if seq != update.expected_seq:
        raise ConcurrentChange(name=update.source_name, expected=update.expected_seq, found=seq)
    if update.unread and writing.is_read(update.source_id):
        raise ConcurrentChange(name=update.source_name, expected="no epoch", found="one that has read it")
    writing.transaction.execute(
        "UPDATE sources SET options = ?, definition_seq = ? WHERE id = ?",
        options_text(update.options),
        writing.counters.definition_seq,
        update.source_id,
    )
    return 0


def record_verdict(update: RecordVerdict, writing: Writing) -> int:
    changed = writing.transaction.execute(
        "UPDATE sources SET last_verdict = ? WHERE id = ?", shown_text(update.verdict), update.source_id
    )
    if not changed:
        raise UnknownObject(kind="source", name=f"with id {update.source_id}", suggestion="")
    return 0


def set_source_problem(update: SetSourceProblem, writing: Writing) -> int:
    # It does not matter if the source was dropped in the meantime, so the row count is not checked.
    writing.transaction.execute(
        "UPDATE sources SET problem = ? WHERE id = ?", optional_text(update.problem), update.source_id
    )
    return 0


def set_position(update: SetPosition, writing: Writing) -> int:
    changed = writing.transaction.execute(
        "UPDATE schema_versions SET position = coalesce(position, ?) WHERE source_id = ? AND version = ?",
        update.position,
        update.source_id,
        update.version,
    )
    if not changed:
        raise UnknownObject(
            kind="version", name=f"{update.version} of the source with id {update.source_id}", suggestion=""
        )
    return 0


def add_pending(update: AddPending, writing: Writing) -> int:
    present = writing.transaction.query(
        "SELECT id FROM pending_changes WHERE source_id = ? AND base_version = ? AND fingerprint = ?",
        update.source_id,
        update.base_version,
        update.fingerprint,
    )
    if present:
        return int(present[0][0])
    version, _ = writing.live_source(update.source_id, update.source_name, update.base_version)
    if version != update.base_version:
        raise ConcurrentChange(name=update.source_name, expected=update.base_version, found=version)
    change_id = writing.next_change_id()
    writing.transaction.execute(
        """INSERT INTO pending_changes (id, source_id, base_version, arrow_schema, fingerprint, summary, reasons,
                                        set_off_by, schema_id, registry_version, state, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        change_id,
        update.source_id,
        update.base_version,
        schema_bytes(update.schema),
        update.fingerprint,
        shown_text(update.summary),
        shown_text(update.reasons),
        update.trigger,
        update.schema_id,
        update.registry_version,
        PendingState.PENDING.value,
        instant_text(update.created_at),
    )
    return change_id


def resolve_pending(update: ResolvePending, writing: Writing) -> int:
    state = PendingState(update.state)
    if state not in _RESOLUTIONS:
        raise ValueError(f"a person can confirm or reject a change, not make it {state}")
    if problem := _not_pending(update, writing):
        raise ChangeNotPending(change_id=update.change_id, source=update.source_name, problem=problem)
    writing.transaction.execute(
        "UPDATE pending_changes SET state = ?, resolved_at = ? WHERE id = ?",
        state.value,
        instant_text(update.resolved_at),
        update.change_id,
    )
    return 0


def supersede_pending(writing: Writing, source_id: int, at: str) -> None:
    """Supersede every pending change of the source: all are bound to a version that is no longer current."""
    writing.transaction.execute(
        "UPDATE pending_changes SET state = ?, resolved_at = ? WHERE source_id = ? AND state = ?",
        PendingState.SUPERSEDED.value,
        at,
        source_id,
        PendingState.PENDING.value,
    )


def _not_pending(update: ResolvePending, writing: Writing) -> str | None:
    rows = writing.transaction.query(
        """SELECT p.state, p.base_version, s.version FROM pending_changes p JOIN sources s ON s.id = p.source_id
           WHERE p.id = ? AND p.source_id = ?""",
        update.change_id,
        update.source_id,
    )
    if not rows:
        return "the source has no such change"
    state, base_version, version = rows[0]
    if state != PendingState.PENDING:
        return f"it is {state}"
    if base_version != version:
        return f"it was found against version {base_version}, the source is at version {version}"
    return None


def _insert_version(update: AddVersion, writing: Writing) -> None:
    version = update.expected_version + 1
    writing.transaction.execute(
        """INSERT INTO schema_versions (source_id, version, arrow_schema, set_off_by, compatibility, forced,
                                        schema_id, registry_version, applied_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        update.source_id,
        version,
        schema_bytes(update.schema),
        update.trigger,
        update.compatibility,
        int(update.forced),
        update.schema_id,
        update.registry_version,
        instant_text(update.applied_at),
    )
    writing.transaction.execute_many(
        """INSERT INTO schema_history (source_id, version, ordinal, change_type, column_name, old_type, new_type,
                                       old_name, default_value)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            (update.source_id, version, ordinal, *map(optional_text, change))
            for ordinal, change in enumerate(update.history)
        ],
    )
