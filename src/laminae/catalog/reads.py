"""All reads of the catalog. Each is one statement, or a second one bounded by what the first saw.

Versions and their history rows are immutable, so they are cached: a read queries which version is current,
and fetches only what it has not seen.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

import pyarrow as pa

from laminae.catalog import leases, rows
from laminae.catalog.model import EpochTotals
from laminae.catalog.names import name_fault, name_key
from laminae.errors import CatalogCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from laminae.catalog.drivers.protocol import Driver, Row
    from laminae.catalog.model import (
        AdvanceRecord,
        CompactedRecord,
        EpochRecord,
        HistoryRow,
        Lease,
        ManifestRecord,
        PendingRecord,
        SavepointRecord,
        SinkRecord,
        SourceRecord,
        VersionRecord,
        ViewRecord,
        WriterRecord,
    )

_SOURCES = """SELECT id, name, version, next_column_id, options, primary_key, watermark_column, watermark_delay_us,
                     last_verdict, created_at, definition_seq, problem
              FROM sources WHERE dropped_at IS NULL"""
_VIEW = """SELECT o.id, o.name, o.query, o.emit, o.options, o.state, o.problem, o.reads, o.created_at,
                  o.definition_seq, o.applied, o.written, o.former, o.keeps_held, o.reading
           FROM views o"""
_VIEWS = f"{_VIEW} WHERE dropped_at IS NULL"
# A replaced view is dropped by the same commit that creates its successor.
_REPLACED = f"""{_VIEW} JOIN views v ON v.id = ? AND o.name_key = v.name_key AND o.dropped_at = v.created_at
                AND o.id < v.id ORDER BY o.id DESC LIMIT 1"""
_SINKS = """SELECT id, name, relation, options, state, problem, progress, created_at, definition_seq, began
            FROM sinks WHERE dropped_at IS NULL"""
_ADVANCES = """SELECT epoch, files, row_count, anomalies, dropped, bound, late, late_files, refused,
                      refused_files, held_files, arrow_schema
               FROM advances
               WHERE owner_id = ? AND epoch > ? AND epoch <= ? ORDER BY epoch"""
_COMPACTED = """SELECT first_epoch, last_epoch, files, row_count, is_plain, created_at, arrow_schema
                FROM compacted_changes WHERE owner_id = ? AND last_epoch <= ? ORDER BY first_epoch, last_epoch"""
_LAST_ADVANCE = "SELECT coalesce(max(epoch), 0) FROM advances WHERE owner_id = ?"
_REFUSED = "SELECT coalesce(sum(refused), 0) FROM advances WHERE owner_id = ? AND refused > 0"
_EMISSION = """SELECT epoch, bound FROM advances WHERE owner_id = ? AND epoch <= ? AND bound IS NOT NULL
               ORDER BY epoch DESC LIMIT 1"""
_WATERMARK = "SELECT max(watermark) FROM advances WHERE owner_id = ? AND watermark IS NOT NULL"
# For each operator and shard, the newest manifest up to an epoch.
_MANIFESTS = """SELECT m.operator, m.shard, m.epoch, m.manifest FROM manifests m
                WHERE m.owner_id = ? AND m.epoch = (
                    SELECT max(o.epoch) FROM manifests o
                    WHERE o.owner_id = m.owner_id AND o.operator = m.operator AND o.shard = m.shard AND o.epoch <= ?)
                ORDER BY m.operator, m.shard"""
_WRITERS = """SELECT source_id, schema_id, after_epoch, registry_version, applied, refusal, avro, arrow_schema
              FROM writer_schemas WHERE source_id = ? ORDER BY after_epoch, schema_id"""
_NAMED = " AND name_key = ?"
_COUNTS = """SELECT (SELECT count(*) FROM schema_versions WHERE source_id = ?),
                    (SELECT count(*) FROM schema_versions WHERE source_id = ? AND position IS NOT NULL)"""
_VERSIONS = """SELECT version, set_off_by, compatibility, forced, schema_id, registry_version, position, applied_at
               FROM schema_versions WHERE source_id = ? AND version > ? AND version <= ? ORDER BY version"""
_SCHEMAS = "SELECT version, arrow_schema FROM schema_versions WHERE source_id = ? AND version >= ? AND version <= ?"
_PENDING = """SELECT p.id, p.source_id, s.name, p.base_version, p.fingerprint, p.summary, p.reasons, p.set_off_by,
                     p.schema_id, p.registry_version, p.state, p.created_at, p.resolved_at, p.arrow_schema
              FROM pending_changes p JOIN sources s ON s.id = p.source_id"""
_CURRENT = "SELECT id, name, version FROM sources WHERE dropped_at IS NULL"
_DROPPED = "SELECT max(dropped_at) FROM sources WHERE dropped_at IS NOT NULL"
_HISTORY = """SELECT h.version, h.change_type, h.column_name, h.old_type, h.new_type, h.old_name, h.default_value,
                     v.set_off_by, v.schema_id, v.registry_version, v.compatibility, v.forced, v.applied_at
              FROM schema_history h JOIN schema_versions v ON v.source_id = h.source_id AND v.version = h.version
              WHERE h.source_id = ? AND h.version > ? AND h.version <= ? ORDER BY h.version, h.ordinal"""
_EPOCH = """SELECT epoch, source_id, batch_id, start_offsets, end_offsets, version, row_count, committed_at,
                   segment, dead_letters, dead_letter_segment, replayed_by, waits_for, reading
            FROM epochs WHERE source_id = ?"""
_EPOCHS = _EPOCH + " AND epoch > ? ORDER BY epoch"
_BATCH = _EPOCH + " AND batch_id = ?"
_LAST_BATCH = _EPOCH + " AND batch_id >= 0 ORDER BY epoch DESC LIMIT 1"
_DEAD_LETTERS = _EPOCH + " AND dead_letter_segment IS NOT NULL AND replayed_by IS NULL ORDER BY epoch"
_TOTALS = "SELECT count(*), coalesce(sum(row_count), 0), coalesce(sum(dead_letters), 0) FROM epochs WHERE source_id = ?"


class _Versions(NamedTuple):
    """The versions of one source, of which `placed` have a position."""

    placed: int
    records: tuple[VersionRecord, ...]


class _History(NamedTuple):
    """The rows of one source up to and including `version`."""

    version: int
    rows: tuple[HistoryRow, ...]


# Above any epoch, and a BIGINT in both databases.
_LATEST = 2**62
_NO_VERSIONS = _Versions(0, ())
_UNREAD = _History(0, ())


# The exceptions that a damaged row causes when it is converted to a value.
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, pa.ArrowException)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _reading(read: Callable[Concatenate[CatalogReads, _P], _R]) -> Callable[Concatenate[CatalogReads, _P], _R]:
    """Raise CatalogCorrupt for a row that cannot be converted to its value."""

    @wraps(read)
    def checked(self: CatalogReads, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return read(self, *args, **kwargs)
        except _DAMAGE as error:
            problem = f"a stored row cannot be read: {type(error).__name__}: {error}"
            raise CatalogCorrupt(location=self.location, problem=problem) from error

    return checked


class CatalogReads:
    """The reading half of `laminae.catalog.port.Catalog`, over any driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._schemas: dict[tuple[int, int], pa.Schema] = {}
        self._versions: dict[int, _Versions] = {}
        self._histories: dict[int, _History] = {}

    @property
    def location(self) -> str:
        return self._driver.location

    @_reading
    def definition_seq(self) -> int:
        return int(self._driver.query("SELECT definition_seq FROM counters")[0][0])

    @_reading
    def last_epoch(self) -> int:
        return int(self._driver.query("SELECT epoch FROM counters")[0][0])

    @_reading
    def source(self, name: str) -> SourceRecord | None:
        return next((self._source(row) for row in self._named(_SOURCES, name)), None)

    @_reading
    def sources(self) -> tuple[SourceRecord, ...]:
        return tuple(sorted(map(self._source, self._driver.query(_SOURCES)), key=lambda source: source.name))

    @_reading
    def source_dropped_at(self, name: str) -> datetime | None:
        return next((rows.instant(row[0]) for row in self._named(_DROPPED, name) if row[0]), None)

    @_reading
    def versions(self, source_id: int) -> tuple[VersionRecord, ...]:
        # Versions are only added and positions only set, so two counts show whether anything is new.
        count, placed = self._driver.query(_COUNTS, source_id, source_id)[0]
        known = self._versions.get(source_id, _NO_VERSIONS)
        if (len(known.records), known.placed) != (count, placed):
            cached = known.records if known.placed == placed else ()
            new_rows = self._driver.query(_VERSIONS, source_id, len(cached), count)
            self._read_schemas(source_id, [row[0] for row in new_rows])
            fresh = [rows.version_record(source_id, row, self._schemas[source_id, row[0]]) for row in new_rows]
            known = self._versions[source_id] = _Versions(placed, (*cached, *fresh))
        return known.records

    @_reading
    def history(self, source_name: str | None = None) -> tuple[HistoryRow, ...]:
        if source_name is not None:
            return next((self._history(*row) for row in self._named(_CURRENT, source_name)), ())
        current = sorted(self._driver.query(_CURRENT), key=lambda row: row[1])
        return tuple([change for row in current for change in self._history(*row)])

    @_reading
    def pending(self, source_id: int | None = None) -> tuple[PendingRecord, ...]:
        if source_id is None:
            result = self._driver.query(_PENDING + " ORDER BY p.id")
        else:
            result = self._driver.query(_PENDING + " WHERE p.source_id = ? ORDER BY p.id", source_id)
        return tuple([rows.pending_record(row, self._decoded(row[-1])) for row in result])

    @_reading
    def view(self, name: str) -> ViewRecord | None:
        return next(map(rows.view_record, self._named(_VIEWS, name)), None)

    @_reading
    def views(self) -> tuple[ViewRecord, ...]:
        return tuple(sorted(map(rows.view_record, self._driver.query(_VIEWS)), key=lambda view: view.name))

    @_reading
    def replaced(self, view_id: int) -> ViewRecord | None:
        return next(map(rows.view_record, self._driver.query(_REPLACED, view_id)), None)

    @_reading
    def sink(self, name: str) -> SinkRecord | None:
        return next(map(rows.sink_record, self._named(_SINKS, name)), None)

    @_reading
    def sinks(self) -> tuple[SinkRecord, ...]:
        return tuple(sorted(map(rows.sink_record, self._driver.query(_SINKS)), key=lambda sink: sink.name))

    @_reading
    def epochs(self, source_id: int, since: int = 0) -> tuple[EpochRecord, ...]:
        return tuple(map(rows.epoch_record, self._driver.query(_EPOCHS, source_id, since)))

    @_reading
    def batch(self, source_id: int, batch_id: int) -> EpochRecord | None:
        return next(map(rows.epoch_record, self._driver.query(_BATCH, source_id, batch_id)), None)

    @_reading
    def last_batch(self, source_id: int) -> EpochRecord | None:
        return next(map(rows.epoch_record, self._driver.query(_LAST_BATCH, source_id)), None)

    @_reading
    def dead_letter_epochs(self, source_id: int) -> tuple[EpochRecord, ...]:
        return tuple(map(rows.epoch_record, self._driver.query(_DEAD_LETTERS, source_id)))

    @_reading
    def epoch_totals(self, source_id: int) -> EpochTotals:
        return EpochTotals(*map(int, self._driver.query(_TOTALS, source_id)[0]))

    @_reading
    def advances(self, owner_id: int, since: int = 0, until: int | None = None) -> tuple[AdvanceRecord, ...]:
        result = self._driver.query(_ADVANCES, owner_id, since, _LATEST if until is None else until)
        return tuple([rows.advance_record(row, self._decoded(row[-1])) for row in result])

    @_reading
    def compacted(self, owner_id: int, until: int | None = None) -> tuple[CompactedRecord, ...]:
        result = self._driver.query(_COMPACTED, owner_id, _LATEST if until is None else until)
        return tuple([rows.compacted_record(row, self._decoded(row[-1])) for row in result])

    @_reading
    def last_advance(self, owner_id: int) -> int:
        return int(self._driver.query(_LAST_ADVANCE, owner_id)[0][0])

    @_reading
    def refused(self, owner_id: int) -> int:
        return int(self._driver.query(_REFUSED, owner_id)[0][0])

    @_reading
    def last_emission(self, owner_id: int, until: int | None = None) -> tuple[int, int] | None:
        result = self._driver.query(_EMISSION, owner_id, _LATEST if until is None else until)
        return next(((int(epoch), int(bound)) for epoch, bound in result), None)

    @_reading
    def last_watermark(self, owner_id: int) -> int | None:
        (watermark,) = self._driver.query(_WATERMARK, owner_id)[0]
        return None if watermark is None else int(watermark)

    @_reading
    def event_time(self, source_id: int) -> int | None:
        (latest,) = self._driver.query("SELECT max(event_time) FROM epochs WHERE source_id = ?", source_id)[0]
        return None if latest is None else int(latest)

    @_reading
    def manifests(self, owner_id: int, until: int | None = None) -> tuple[ManifestRecord, ...]:
        result = self._driver.query(_MANIFESTS, owner_id, _LATEST if until is None else until)
        return tuple(rows.manifest_record(row) for row in result)

    @_reading
    def writers(self, source_id: int) -> tuple[WriterRecord, ...]:
        return tuple(map(rows.writer_record, self._driver.query(_WRITERS, source_id)))

    @_reading
    def savepoints(self) -> tuple[SavepointRecord, ...]:
        result = self._driver.query("SELECT name, epoch, created_at FROM savepoints ORDER BY epoch, name")
        return tuple(map(rows.savepoint_record, result))

    @_reading
    def dropped_sources(self) -> tuple[int, ...]:
        result = self._driver.query("SELECT id FROM sources WHERE dropped_at IS NOT NULL ORDER BY id")
        return tuple(int(row[0]) for row in result)

    @_reading
    def settings(self) -> dict[str, str]:
        return dict(sorted(self._driver.query("SELECT name, value FROM settings")))

    @_reading
    def lease(self) -> Lease | None:
        return leases.current_lease(self._driver)

    def _named(self, live: str, name: str) -> list[Row]:
        # An impossible name is not sent: PostgreSQL refuses NUL even in a comparison.
        return [] if name_fault(name) else self._driver.query(live + _NAMED, name_key(name))

    def _source(self, row: Row) -> SourceRecord:
        source_id, version = row[0], row[2]
        self._read_schemas(source_id, [version])
        return rows.source_record(row, self._schemas[source_id, version])

    def _read_schemas(self, source_id: int, versions: list[int]) -> None:
        unread = [version for version in versions if (source_id, version) not in self._schemas]
        if not unread:
            return
        for version, encoded in self._driver.query(_SCHEMAS, source_id, min(unread), max(unread)):
            # The first object stays: the schema engine caches by object identity, also across threads.
            self._schemas.setdefault((source_id, version), self._decoded(encoded))

    def _decoded(self, encoded: bytes) -> pa.Schema:
        try:
            return rows.schema(encoded)
        except (pa.ArrowException, OSError) as error:
            raise CatalogCorrupt(location=self.location, problem=f"a stored schema cannot be read: {error}") from error

    def _history(self, source_id: int, source_name: str, version: int) -> tuple[HistoryRow, ...]:
        seen = self._histories.get(source_id, _UNREAD)
        if seen.version < version:
            fresh = self._driver.query(_HISTORY, source_id, seen.version, version)
            seen = _History(version, (*seen.rows, *(rows.history_row(source_name, row) for row in fresh)))
            self._histories[source_id] = seen
        return seen.rows
