"""Converts rows of the catalog's tables to the values of `laminae.catalog.model`, and values to columns.

Times are ISO 8601 text in UTC, lists and options are JSON, schemas are Arrow IPC bytes. No SQL runs here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from laminae.catalog.model import (
    AdvanceRecord,
    CompactedRecord,
    EpochRecord,
    HistoryRow,
    ManifestRecord,
    PendingRecord,
    PendingState,
    SavepointRecord,
    SinkRecord,
    SinkStatus,
    SourceRecord,
    VersionRecord,
    ViewRecord,
    ViewStatus,
    WatermarkRecord,
    WriterRecord,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laminae.catalog.drivers.protocol import Row
    from laminae.catalog.model import Options, Written


def instant_text(instant: datetime) -> str:
    if instant.tzinfo is None:
        raise ValueError(f"the catalog takes aware datetimes only, not {instant!r}")
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def schema_bytes(schema: pa.Schema) -> bytes:
    encoded: bytes = schema.serialize().to_pybytes()
    return encoded


def schema(encoded: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(encoded))


def options_text(options: Options) -> str:
    return json.dumps(dict(options), sort_keys=True)


def options(text: str) -> Options:
    return tuple(sorted(json.loads(text).items()))


def ids_text(ids: Sequence[int]) -> str:
    return json.dumps(list(ids))


def reads_text(reads: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return json.dumps(reads)


def written_text(written: Written) -> str:
    return json.dumps(written)


def _written(text: str) -> Written:
    return tuple((relation, tuple((id_, name) for id_, name in columns)) for relation, columns in json.loads(text))


def shown_text(text: str) -> str:
    """Text for people without what no database stores: NUL and lone surrogates, from hostile data."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def optional_text(text: str | None) -> str | None:
    return None if text is None else shown_text(text)


def _optional_instant(text: str | None) -> datetime | None:
    return None if text is None else instant(text)


def source_record(row: Row, source_schema: pa.Schema) -> SourceRecord:
    (
        source_id,
        name,
        version,
        next_column_id,
        option_text,
        key_text,
        watermark_column,
        delay_us,
        verdict,
        created_at,
        seq,
        problem,
    ) = row
    return SourceRecord(
        id=source_id,
        name=name,
        version=version,
        schema=source_schema,
        next_column_id=next_column_id,
        options=options(option_text),
        primary_key=tuple(json.loads(key_text)),
        watermark=None if watermark_column is None else WatermarkRecord(watermark_column, delay_us),
        last_verdict=verdict,
        created_at=instant(created_at),
        definition_seq=seq,
        problem=problem,
    )


def version_record(source_id: int, row: Row, version_schema: pa.Schema) -> VersionRecord:
    version, trigger, compatibility, forced, schema_id, registry_version, position, applied_at = row
    return VersionRecord(
        source_id=source_id,
        version=version,
        schema=version_schema,
        trigger=trigger,
        compatibility=compatibility,
        forced=bool(forced),
        schema_id=schema_id,
        registry_version=registry_version,
        position=position,
        applied_at=instant(applied_at),
    )


def history_row(source_name: str, row: Row) -> HistoryRow:
    *columns, forced, applied_at = row
    return HistoryRow._make((source_name, *columns, bool(forced), instant(applied_at)))


def pending_record(row: Row, proposed: pa.Schema) -> PendingRecord:
    change_id, source_id, source_name, base_version, *details, state, created_at, resolved_at, _ = row
    fingerprint, summary, reasons, trigger, schema_id, registry_version = details
    return PendingRecord(
        id=change_id,
        source_id=source_id,
        source_name=source_name,
        base_version=base_version,
        schema=proposed,
        fingerprint=fingerprint,
        summary=summary,
        reasons=reasons,
        trigger=trigger,
        schema_id=schema_id,
        registry_version=registry_version,
        state=PendingState(state),
        created_at=instant(created_at),
        resolved_at=_optional_instant(resolved_at),
    )


def view_record(row: Row) -> ViewRecord:
    view_id, name, query, emit, option_text, state, problem, read_text, created_at, seq, *own = row
    applied, written, former, keeps_held, reading = own
    return ViewRecord(
        id=view_id,
        name=name,
        query=query,
        emit=emit,
        options=options(option_text),
        state=ViewStatus(state),
        problem=problem,
        reads=tuple((relation, tuple(ids)) for relation, ids in json.loads(read_text)),
        created_at=instant(created_at),
        definition_seq=seq,
        applied=applied,
        written=_written(written),
        former=former,
        keeps_held=bool(keeps_held),
        reading=reading,
    )


def advance_record(row: Row, changelog: pa.Schema) -> AdvanceRecord:
    epoch, files, count, anomalies, dropped, bound, late, late_files, refused, refused_files, held_files, _ = row
    held = (bound, late, tuple(json.loads(late_files)))
    aside = (refused, tuple(json.loads(refused_files)), tuple(json.loads(held_files)))
    return AdvanceRecord(epoch, tuple(json.loads(files)), count, anomalies, dropped, *held, changelog, *aside)


def compacted_record(row: Row, columns: pa.Schema) -> CompactedRecord:
    first, last, files, count, is_plain, created_at, _ = row
    return CompactedRecord(first, last, tuple(json.loads(files)), count, bool(is_plain), instant(created_at), columns)


def manifest_record(row: Row) -> ManifestRecord:
    return ManifestRecord(*row)


def sink_record(row: Row) -> SinkRecord:
    sink_id, name, relation, option_text, state, problem, progress, created_at, seq, began = row
    return SinkRecord(
        id=sink_id,
        name=name,
        relation=relation,
        options=options(option_text),
        state=SinkStatus(state),
        problem=problem,
        progress=progress,
        created_at=instant(created_at),
        definition_seq=seq,
        began=began,
    )


def writer_record(row: Row) -> WriterRecord:
    source_id, schema_id, after_epoch, registry_version, applied, refusal, avro, columns = row
    place = (source_id, schema_id, after_epoch, registry_version)
    return WriterRecord(*place, bool(applied), refusal, avro, schema(columns))


def savepoint_record(row: Row) -> SavepointRecord:
    name, epoch, created_at = row
    return SavepointRecord(name, epoch, instant(created_at))


def epoch_record(row: Row) -> EpochRecord:
    epoch, source_id, batch_id, start_offsets, end_offsets, version, row_count, committed_at, *files = row
    segment, dead_letters, dead_letter_segment, replayed_by, waits_for, reading = files
    return EpochRecord(
        epoch=epoch,
        source_id=source_id,
        batch_id=batch_id,
        start_offsets=start_offsets,
        end_offsets=end_offsets,
        version=version,
        rows=row_count,
        committed_at=instant(committed_at),
        segment=segment,
        dead_letters=dead_letters,
        dead_letter_segment=dead_letter_segment,
        replayed_by=replayed_by,
        waits_for=waits_for,
        reading=reading,
    )
